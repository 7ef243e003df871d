"""A prompt with images, looked at: as its agent takes it. All that is heavy is loaded with this, and not before."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sightline.api import door
from sightline.api.bodies import find_runtime
from sightline.commands import is_command
from sightline.commands.answer import answer_text
from sightline.engine import MOST_IMAGES, Prepared, Reading
from sightline.model.edit import Edit, Replace
from sightline.model.fate import Refitted, Refused, Shown, Told
from sightline.model.fence import json_line, one_line, sound
from sightline.model.profile import Lesson, Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.scene import Path as Way
from sightline.model.source import Link
from sightline.model.upstream import Upstream, Visitor
from sightline.pixels.probe import probe
from sightline.runtime import Runtime, readable_folders
from sightline.settings import Settings, load
from sightline.settings.upstreams import NOBODY, owner
from sightline.sources.file import Policy, policy_for, read
from sightline.surfaces.acp.capability import LOADING, Agent, Ready, meant_for
from sightline.vision.bridge import begin, wait
from sightline.wire.content_blocks import prompt
from sightline.wire.contents import ACP
from sightline.wire.jsonedits import graft
from sightline.wire.jsontext import Document, lift
from sightline.wire.lowering import Block
from sightline.wire.shape import at, entries, text_in
from sightline.wire.typed import is_plain_text

_LINKS = 20  # files of one prompt that are opened
_LONGEST_NAME = 64
_LONGEST_ADDRESS = 4096
_SILENT = ("image", "audio", "resource_link")
_LOOKS = (["status"], ["list"], ["describe"], ["redescribe"])  # commands that change nothing
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".ico", ".psd")
_THROUGH = re.compile(r"\([^()]*\)$")  # by which of an agent's ways a model is asked: no part of its name


@dataclass(frozen=True, slots=True)
class Where:
    """A session, as far as looking has to know it."""

    folders: tuple[str, ...] = ()  # in which it works, the first one foremost
    model: str = ""  # as its agent calls it
    suspected: bool = False  # the agent has said that it does not see
    lessons: tuple[Lesson, ...] = ()  # of this conversation, about a model that has no name


@dataclass(frozen=True, slots=True)
class Looked:
    """A prompt as it goes to the agent."""

    line: bytes = field(repr=False)
    references: tuple[str, ...]  # of its images that are remembered
    prepared: Prepared = field(repr=False)
    visitor: Visitor = field(repr=False)
    links: frozenset[Way] = frozenset()  # where files were only named, and opened here
    at: Runtime | None = field(default=None, repr=False)

    @property
    def shows(self) -> bool:
        """Does the agent get pixels?"""
        return any(isinstance(sight.fate, Shown | Refitted) for sight in self.prepared.scene.sights)


def look(line: bytes, agent: Agent, where: Where) -> Future[Looked | None] | Refusal | None:
    """The same prompt with every image refitted, described, or as it was; None: it has none that could be read.

    An address in the web stays what it is: whether it is fetched is for the agent to ask.
    """
    settings = load()
    found = find_runtime(settings)
    document = lift(line, f"sightline-{secrets.token_hex(8)}-")
    if isinstance(found, Refusal) or document is None:
        return found if isinstance(found, Refusal) else None
    linked = dict(_linked(document.tree, _reach(settings, where)))
    tree = graft(document.tree, [Replace(place, block) for place, block in linked.items()])
    preset, model = _model(where.model, found)
    read_all = replace(ACP.read(tree, document), model=model)
    scene = read_all.with_sights(tuple(each for each in read_all.sights if not isinstance(each.source, Link)))
    if not 0 < len(scene.sights) <= MOST_IMAGES:
        return None
    known = Ready(settings.image_capability, settings.trust_peer_capability, refits=True, looks=True)
    name = sound(agent.name)[:_LONGEST_NAME]

    def meant(profile: Profile) -> Profile:
        for lesson in () if model else where.lessons:
            profile = profile.learnt(lesson)
        return meant_for(profile, known, agent, suspected=where.suspected)

    async def work() -> Looked:
        visitor = Visitor(Upstream(name, {}, preset), "openai_chat", found.record.scope_of(""))
        reading = Reading(ACP, tree, document, scene)
        done = await found.engine.prepare(reading, visitor, references=settings.references, meant=meant)
        return _looked(done, visitor, frozenset(linked), found)

    return begin(work())


def again(before: Looked, error: str) -> Future[Looked | None]:
    """The prompt once more, after the agent has refused it; None: not because of its images."""
    assert before.at is not None
    found = before.at

    async def work() -> Looked | None:
        after = await found.engine.repair(before.prepared, before.visitor, 400, error)
        return None if after is None else _looked(after, before.visitor, before.links, found)

    return begin(work())


def taken(looked: Looked) -> tuple[str, Lesson | None]:
    """What it took to make the agent take a prompt is remembered: what to say of it, and what is not for the record.

    An agent that does not say which model it has may have another one tomorrow.
    """
    taught, model = looked.prepared.taught, looked.prepared.scene.model
    assert looked.at is not None
    assert taught is not None
    lesson = taught.lesson
    kept = replace(taught, lesson=lesson if model else None)
    wait(looked.at.engine.taken(replace(looked.prepared, taught=kept), looked.visitor))
    said = f"{one_line(looked.visitor.upstream.name) or 'the agent'} has refused a prompt because of its images"
    return f"{said}; {_undone(looked.visitor.upstream.name, model, lesson)}", None if model else lesson


def _undone(agent: str, model: str, lesson: Lesson | None) -> str:
    """What a refusal leads to, for how long, and how it is taken back."""
    if lesson is None:
        return "it was sent again without what could not be taken"
    done = "described" if lesson.blind else "made to fit"
    if not model:
        return f"images are {done} until it is started again"
    said, name = f"images are {done} for {one_line(model)} for a week", one_line(f"{agent}/{model}")
    if agent and "/" not in agent:
        return f"{said} (sightline config forget {shlex.quote(name)} takes it back)"
    return f"{said} (in the setting models, {json_line({name: {'vision': True}})} says that it sees)"


def refuses(text: str) -> bool:
    """Are these the words of an agent whose model does not see?"""
    with LOADING:
        from sightline.profiles.rejections import lesson

    said = lesson(400, text)
    return said is not None and said.kind == "blind"


def typed(line: bytes) -> tuple[str, bool] | None:
    """Return the command with which a prompt begins, and whether the user's plain text is all that the prompt says.

    Only a plain text block is a command. What stands beside other words may have come out of a file: there, only a
    command that changes nothing counts. A question may stand behind a file that is mentioned.
    """
    document = lift(line, f"sightline-{secrets.token_hex(8)}-")
    found = at(document.tree, *prompt(document.tree)) if document else None
    blocks = [block for block in (found if isinstance(found, list) else ()) if not _is_silent(block)]
    if not blocks or not is_plain_text(blocks[0]):
        return None
    words = [text_in(block, "text").strip() for block in blocks if is_plain_text(block)]
    if not is_command(words[0]):
        return None
    if len(blocks) == 1:
        return words[0], True
    asked = " ".join([words[0], *(each for each in words[1:] if each.startswith("--question"))])
    return (asked, False) if words[0].split()[1:2] in _LOOKS else None


def _is_silent(block: Json) -> bool:
    """Return whether a block says nothing in words: an image, sound, a link, an embedded file of bytes, blank text."""
    if is_plain_text(block):
        return not text_in(block, "text").strip()
    kind = at(block, "type")
    if kind == "resource":
        return isinstance(at(block, "resource", "blob"), str) and at(block, "resource", "text") is None
    return kind in _SILENT and at(block, "text") is None


def command(text: str, line: bytes, where: Where, images: Sequence[str], *, owner: bool) -> tuple[str, tuple[str, ...]]:
    """What a command answers, and the images that came with it; those that it is to describe need no other name."""
    looked = look(line, Agent(images=True), replace(where, model="", suspected=False))
    done = looked.result() if isinstance(looked, Future) else None
    pasted = done.references if done else ()
    verb = text.split()[1:2]
    if pasted and verb in (["describe"], ["redescribe"]):
        text = " ".join([text, *(each.split()[0] for each in pasted)])
    settings = load()
    own = replace(door(settings), policy=_reach(settings, where))
    return answer_text(text, own, [*images, *pasted], owner=owner), pasted


def _looked(done: Prepared, visitor: Visitor, links: frozenset[Way], found: Runtime) -> Looked:
    document = done.reading.texts
    assert isinstance(document, Document)
    line = b"".join(document.splice([*_edits(done, links, document.token)]))
    return Looked(line, tuple(found.engine.references(done.reading, visitor)), done, visitor, links, found)


def _edits(done: Prepared, links: frozenset[Way], token: str) -> Iterator[Edit]:
    """What is changed. A link stays one where the agent may open it; words that stand for a file name it."""
    fates = {sight.place: sight.fate for sight in done.scene.sights}
    for edit in done.edits:
        fate = fates.get(edit.place)
        if not isinstance(edit, Replace) or not isinstance(fate, Told | Refused):
            if edit.place not in links or isinstance(fate, Refitted):
                yield edit
        elif edit.place not in links or isinstance(fate, Told) or done.rules.blind:
            name = _name(at(done.reading.tree, *edit.place), token)
            yield Replace(edit.place, {"type": "text", "text": f"{name}\n{fate.words}"}) if name else edit


def _name(block: Json, token: str) -> str:
    """The address by which an agent, or whoever talks with it, knows a file; pixels in an address are no name."""
    uri = text_in(block, "uri") or text_in(at(block, "resource"), "uri")
    is_one = len(uri) <= _LONGEST_ADDRESS and token not in uri and not uri.lower().startswith("data:")
    return one_line(uri) if is_one else ""


def _linked(tree: Json, policy: Policy) -> Iterator[tuple[Way, Block]]:
    """Files of images that a prompt only names, as if they stood in it; those that may not be read stay links."""
    place = prompt(tree)
    named = [
        (index, block, path)
        for index, block in entries(at(tree, *place))
        if block.get("type") == "resource_link" and (path := _path(text_in(block, "uri"))) and _is_picture(block, path)
    ]
    for index, block, path in named[:_LINKS]:
        file = read(path, policy)
        picture = file if isinstance(file, Refusal) else probe(file.data, len(file.data))
        if picture is None or isinstance(picture, Refusal) or isinstance(file, Refusal):
            continue
        data = b64encode(file.data).decode("ascii")
        yield (*place, index), {"type": "image", "mimeType": picture.mime, "uri": text_in(block, "uri"), "data": data}


def _path(uri: str) -> str:
    """The path that an address of a file on this machine means, or nothing."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if here else ""


def _is_picture(block: Block, path: str) -> bool:
    return text_in(block, "mimeType").strip().lower().startswith("image/") or path.lower().endswith(_PICTURES)


def _reach(settings: Settings, where: Where) -> Policy:
    """The folders of the session, in which its agent works, and those that the user's own tools may read.

    One that holds the home folder, as an editor names it that has none open, is no folder to work in.
    """
    usual = readable_folders(settings)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111, which raises nothing where there is none
    own = policy_for(None, None, [Path(each) for each in where.folders if _is_whole(each)], None)
    narrow = [root for root in own.roots if not Path(home).is_relative_to(root)]
    others = policy_for(None, Path(tempfile.gettempdir()), settings.fs_reach, None)
    return replace(usual, roots=tuple(dict.fromkeys([*narrow, *others.roots])))


def _is_whole(folder: str) -> bool:
    return os.path.isabs(folder) and "\0" not in folder  # noqa: PTH117, which would not take every text


def _model(said: str, found: Runtime) -> tuple[str, str]:
    """By whom a model is known that an agent names in its own way, and its name there."""
    bare = _THROUGH.sub("", said).rpartition("|")[2].strip()
    parts = bare.split("/")
    for start in range(len(parts)):
        there, model = owner("/".join(parts[start:]), found.directory.named)
        if there is not NOBODY:
            return there.preset or there.name, model
    return "", bare
