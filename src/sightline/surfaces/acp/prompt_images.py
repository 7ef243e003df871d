"""Prepares the images of one prompt for its agent, and answers commands that are typed as a prompt.

Every agent accepts text and links. An image block needs pixels in it, and an embedded file needs an agent that says so.
So blocks that name an image instead of containing it, or that the agent does not accept, are rewritten first.

Importing this module imports the engine, so it is imported with the first prompt that needs it.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import tempfile
from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from sightline.api import Session
from sightline.api.body_preparation import find_runtime
from sightline.commands.execution import answer_text
from sightline.commands.grammar import is_command
from sightline.engine import MAX_IMAGES, PreparedRequest, Reading
from sightline.engine.requests import RepairLesson
from sightline.model.fence import dump_json_line, replace_surrogates, to_one_line
from sightline.model.profile import Lesson, Profile, RequestOrigin, Upstream
from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Edit,
    Json,
    JsonPath,
    LinkSource,
    Message,
    Refitted,
    Refused,
    Replace,
    Scene,
    Shown,
    Told,
)
from sightline.model.scene import JsonPath as Way
from sightline.passes.wording import write_absence
from sightline.pixels.probe import probe
from sightline.runtime import Runtime, build_read_policy
from sightline.settings import Settings
from sightline.settings.live_settings import get_process_settings
from sightline.settings.upstreams import UNKNOWN_UPSTREAM, find_owner
from sightline.sources import parse_file_url
from sightline.sources.files import PathPolicy, build_path_policy, read_permitted_file
from sightline.surfaces.acp import IMPORT_LOCK
from sightline.surfaces.acp.messages import SessionMessage
from sightline.surfaces.acp.negotiation import AcpAgent, ImageSupport, adapt_profile
from sightline.vision.background_loop import run_blocking, start_coroutine
from sightline.wire import ACP
from sightline.wire.content_blocks import find_block_name, find_prompt
from sightline.wire.json_document import JsonDocument, lift
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_text
from sightline.wire.message_texts import is_plain_text

_MAX_FILES = 20  # files of one prompt that are opened
_MAX_ADDRESS = 4096
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".ico", ".psd")
_EMPTY = Refusal("corrupt", "the image is empty", "send a file that has content")


@dataclass(frozen=True, slots=True)
class RewrittenBlocks:
    """Blocks in the place of those of a prompt."""

    linked: Mapping[Way, Block] = field(default_factory=dict)  # the images of links, which stay if the agent sees
    repaired: Mapping[Way, Block] = field(default_factory=dict)  # in place of blocks that no agent could use

    @property
    def all(self) -> dict[Way, Block]:
        return {**self.linked, **self.repaired}


def rewrite_blocks(tree: Json, texts: Texts, policy: PathPolicy, *, embeds: bool) -> RewrittenBlocks:
    """Open the image files that a prompt names, if they may be read, and repair blocks that have no pixels.

    `embeds`: the agent accepts embedded files.
    """
    place = find_prompt(tree)
    linked: dict[Way, Block] = {}
    repaired: dict[Way, Block] = {}
    files = _FileReader(policy)
    for index, block in enumerate_objects(get_at(tree, *place)):
        match block.get("type"):
            case "resource_link":
                if (image := files.read_image(block)) is not None:
                    linked[(*place, index)] = image
            case "image":
                if (other := _repair_image(block, texts, files)) is not None:
                    repaired[(*place, index)] = other
            case "resource" if not embeds:
                repaired |= {(*place, index): each for each in _unpack_resource(block)}
    return RewrittenBlocks(linked, repaired)


class _FileReader:
    """Reads the files that a prompt names: only a few, and only those that may be read."""

    def __init__(self, policy: PathPolicy) -> None:
        self._policy, self._opened = policy, 0

    def read_image(self, block: Block) -> Block | None:
        """Return an image block with the pixels of the file that a block names; None: it names no readable image."""
        path = parse_file_url(get_text(block, "uri"))
        if not path or not _is_image_file(block, path) or self._opened >= _MAX_FILES:
            return None
        self._opened += 1
        file = read_permitted_file(path, self._policy)
        picture = file if isinstance(file, Refusal) else probe(file.data, len(file.data))
        if picture is None or isinstance(picture, Refusal) or isinstance(file, Refusal):
            return None
        data = b64encode(file.data).decode("ascii")
        return {"type": "image", "mimeType": picture.mime, "uri": get_text(block, "uri"), "data": data}


def _repair_image(block: Block, texts: Texts, files: _FileReader) -> Block | None:
    """Return a block in place of an image block without base64 in it; None: it has some."""
    data, uri = get_text(block, "data").strip(), get_text(block, "uri").strip()
    written_as_url = next((each for each in (data, "" if data else uri) if each[:5].lower() == "data:"), "")
    if written_as_url:
        head, _, payload = written_as_url.partition(",")
        mime = head[5:].partition(";")[0].strip().lower() or get_text(block, "mimeType")
        return {"type": "image", "mimeType": mime, "data": payload}
    if data:
        return None
    if not uri:
        return {"type": "text", "text": write_absence(_EMPTY, None)}
    return files.read_image(block) or _build_link(block, uri, texts)


def _build_link(block: Block, uri: str, texts: Texts) -> Block:
    mime = get_text(block, "mimeType")
    link: Block = {"type": "resource_link", "uri": uri, "name": find_block_name(block, texts) or "image"}
    return {**link, "mimeType": mime} if mime else link


def _unpack_resource(block: Block) -> Iterator[Block]:
    """Yield the image block for an image that is embedded as a file."""
    resource = get_at(block, "resource")
    mime, blob, uri = (get_text(resource, key) for key in ("mimeType", "blob", "uri"))
    if blob and mime.strip().lower().startswith("image/"):
        yield {"type": "image", "mimeType": mime, "data": blob, **({"uri": uri} if uri else {})}


def get_address(block: Json, token: str) -> str:
    """Return the address of a file for people to read, or an empty text; a data: address is none."""
    uri = get_text(block, "uri") or get_text(get_at(block, "resource"), "uri")
    is_readable = len(uri) <= _MAX_ADDRESS and token not in uri and not uri.lower().startswith("data:")
    return to_one_line(uri) if is_readable else ""


def _is_image_file(block: Block, path: str) -> bool:
    return get_text(block, "mimeType").strip().lower().startswith("image/") or path.lower().endswith(_IMAGE_SUFFIXES)


_MAX_NAME = 64
_WORDLESS_TYPES = ("image", "audio", "resource_link")
_READ_ONLY_VERBS = (["status"], ["list"], ["describe"], ["redescribe"])
_ROUTE_SUFFIX = re.compile(r"\([^()]*\)$")  # how the agent reaches a model: not part of the model's name


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What preparing a prompt needs to know about its session."""

    folders: tuple[str, ...] = ()  # where the agent works, the main one first
    model: str = ""  # by the agent's name for it
    suspected_blind: bool = False  # the agent has said that it can't see images
    lessons: tuple[Lesson, ...] = ()  # learned in this conversation about a model without a name
    history: tuple[SessionMessage, ...] = ()  # the last messages before the prompt


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A prompt as the agent gets it."""

    line: bytes = field(repr=False)
    references: tuple[str, ...]  # of its images that are in the record
    request: PreparedRequest = field(repr=False)
    visitor: RequestOrigin = field(repr=False)
    blocks: RewrittenBlocks = field(repr=False)  # in place of those that name an image instead of containing it
    runtime: Runtime = field(repr=False)

    @property
    def shows_pixels(self) -> bool:
        """Whether the agent gets pixels."""
        return any(isinstance(sight.fate, Shown | Refitted) for sight in self.request.scene.sights)

    @property
    def repair_lesson(self) -> RepairLesson | None:
        return self.request.repair_lesson


def prepare_prompt(
    line: bytes, agent: AcpAgent, context: PromptContext, *, keep_images: bool = False
) -> Future[PreparedPrompt | None] | Refusal | None:
    """Start to prepare a prompt: each image is resized, described or left alone. None: there is nothing to prepare.

    Links to web addresses stay: it is up to the agent to fetch them. `keep_images`: the record keeps all images.
    """
    settings = get_process_settings().get()
    runtime = find_runtime(settings)
    document = lift(line, f"sightline-{secrets.token_hex(8)}-")
    if isinstance(runtime, Refusal) or document is None:
        return runtime if isinstance(runtime, Refusal) else None
    embeds = agent.takes_embedded_files or not agent.takes_images  # without images, all become text
    blocks = rewrite_blocks(document.tree, document, _build_policy(settings, context), embeds=embeds)
    tree = graft(document.tree, [Replace(place, block) for place, block in blocks.all.items()])
    preset, model = _find_model(context.model, runtime)
    scene = _read_scene(tree, document, model, context.history)
    if len(scene.sights) > MAX_IMAGES or not (scene.sights or blocks.repaired):
        return None
    support = ImageSupport(settings.image_capability, settings.trust_peer_capability, can_refit=True, can_describe=True)
    name = replace_surrogates(agent.name)[:_MAX_NAME]

    def adjust_profile(profile: Profile) -> Profile:
        for lesson in () if model else context.lessons:
            profile = profile.apply_lesson(lesson)
        return adapt_profile(profile, support, agent, suspected_blind=context.suspected_blind)

    async def prepare() -> PreparedPrompt:
        visitor = RequestOrigin(Upstream(name, {}, preset), "openai_chat", runtime.record.compute_scope(""))
        reading = Reading(ACP, tree, document, scene, earlier=_build_messages(context.history))
        request = await runtime.engine.prepare(
            reading, visitor, references=settings.references, adjust_profile=adjust_profile
        )
        if keep_images:
            await runtime.engine.keep_images(reading, visitor)
        return _build_prepared_prompt(request, visitor, blocks, runtime)

    return start_coroutine(prepare())


def _read_scene(tree: Json, document: JsonDocument, model: str, history: Sequence[SessionMessage]) -> Scene:
    """Return the images of a prompt that are in it, as the last message of the conversation."""
    scene = ACP.read(tree, document)
    earlier = tuple(Message(each.role, opens_turn=each.role == "user") for each in history)
    sights = (each for each in scene.sights if not isinstance(each.source, LinkSource))
    moved = tuple(replace(each, message=each.message + len(earlier)) for each in sights)
    return replace(scene, model=model, messages=(*earlier, *scene.messages), sights=moved)


def _build_messages(history: Sequence[SessionMessage]) -> tuple[Json, ...]:
    return tuple({"role": each.role, "content": each.text} for each in history)


def repair_prompt(prompt: PreparedPrompt, error: str) -> Future[PreparedPrompt | None]:
    """Start to prepare a prompt again that the agent has rejected; None: not because of its images."""

    async def repair() -> PreparedPrompt | None:
        repaired = await prompt.runtime.engine.repair(prompt.request, prompt.visitor, 400, error)
        if repaired is None:
            return None
        return _build_prepared_prompt(repaired, prompt.visitor, prompt.blocks, prompt.runtime)

    return start_coroutine(repair())


def record_lesson(prompt: PreparedPrompt) -> tuple[str, Lesson | None]:
    """Record what the agent's rejection has taught. Return what to tell the user, and a lesson for this process only.

    If the agent doesn't name its model, the lesson is not recorded: it may use another model tomorrow.
    """
    taught, model, agent = prompt.repair_lesson, prompt.request.scene.model, prompt.visitor.upstream.name
    assert taught is not None
    lesson = taught.lesson
    kept = replace(taught, lesson=lesson if model else None)
    run_blocking(prompt.runtime.engine.confirm_repair(replace(prompt.request, repair_lesson=kept), prompt.visitor))
    status = f"{to_one_line(agent) or 'the agent'} rejected a prompt because of its images"
    return f"{status}; {_describe_lesson(agent, model, lesson)}", None if model else lesson


def _describe_lesson(agent: str, model: str, lesson: Lesson | None) -> str:
    """Tell what a rejection changes, for how long, and how to undo it."""
    if lesson is None:
        return "it was sent again without the images that were the reason"
    change = "described" if lesson.blind else "resized"
    if not model:
        return f"images are {change} until the agent is restarted"
    status, name = f"images for {to_one_line(model)} are {change} for a week", to_one_line(f"{agent}/{model}")
    if agent and "/" not in agent:
        return f"{status} (to undo it, run: sightline config forget {shlex.quote(name)})"
    return f"{status} (to undo it, put {dump_json_line({name: {'vision': True}})} into the setting models)"


def reports_blind_model(text: str) -> bool:
    """Return whether an agent's error says that its model can't see images."""
    with IMPORT_LOCK:
        from sightline.profiles.rejections import parse_rejection

    taught = parse_rejection(400, text)
    return taught is not None and taught.kind == "blind"


def find_typed_command(line: bytes) -> tuple[str, bool] | None:
    """Return the command with which a prompt begins, and whether the user's plain text is all that the prompt says.

    Only a plain text block is a command. Text beside other text may come from a file, so there only a command that
    changes nothing counts. A question may follow a file that is mentioned.
    """
    document = lift(line, f"sightline-{secrets.token_hex(8)}-")
    found = get_at(document.tree, *find_prompt(document.tree)) if document else None
    blocks = [block for block in (found if isinstance(found, list) else ()) if not _is_wordless(block)]
    if not blocks or not is_plain_text(blocks[0]):
        return None
    words = [get_text(block, "text").strip() for block in blocks if is_plain_text(block)]
    if not is_command(words[0]):
        return None
    if len(blocks) == 1:
        return words[0], True
    command = " ".join([words[0], *(each for each in words[1:] if each.startswith("--question"))])
    return (command, False) if words[0].split()[1:2] in _READ_ONLY_VERBS else None


def _is_wordless(block: Json) -> bool:
    """Return whether a block says nothing in words: an image, sound, a link, an embedded file of bytes, blank text."""
    if is_plain_text(block):
        return not get_text(block, "text").strip()
    kind = get_at(block, "type")
    if kind == "resource":
        return isinstance(get_at(block, "resource", "blob"), str) and get_at(block, "resource", "text") is None
    return kind in _WORDLESS_TYPES and get_at(block, "text") is None


def run_command(
    text: str, line: bytes, context: PromptContext, images: Sequence[str], *, owner: bool
) -> tuple[str, tuple[str, ...]]:
    """Answer a command, and return the answer and the images that came with it, which `describe` then describes."""
    unknown = replace(context, model="", suspected_blind=False)
    started = prepare_prompt(line, AcpAgent(takes_images=True), unknown, keep_images=True)
    prepared = started.result() if isinstance(started, Future) else None
    pasted = prepared.references if prepared else ()
    verb = text.split()[1:2]
    if pasted and verb in (["describe"], ["redescribe"]):
        text = " ".join([text, *(each.split()[0] for each in pasted)])
    live = get_process_settings()
    settings = live.get()
    own = replace(Session(settings).tool_context, policy=_build_policy(settings, context))
    known = {each.split()[0]: each for each in (*images, *pasted)}  # by the hash; the newest name counts
    answer = answer_text(text, own, [*known.values()], owner=owner)
    live.check_soon()
    return answer, pasted


def _build_prepared_prompt(
    request: PreparedRequest, visitor: RequestOrigin, blocks: RewrittenBlocks, runtime: Runtime
) -> PreparedPrompt:
    document = request.reading.texts
    assert isinstance(document, JsonDocument)
    edits = [*_select_edits(request, blocks.linked, document.token)]
    replaced = {edit.place for edit in edits if isinstance(edit, Replace)}
    edits += [Replace(place, block) for place, block in blocks.repaired.items() if place not in replaced]
    line = b"".join(document.splice(edits))
    return PreparedPrompt(
        line, tuple(runtime.engine.list_references(request.reading, visitor)), request, visitor, blocks, runtime
    )


def _select_edits(request: PreparedRequest, links: Container[JsonPath], token: str) -> Iterator[Edit]:
    """Yield the edits for the images of a prompt.

    A link stays as it is if the agent can open it. A text that replaces a file begins with the file's address.
    """
    fates = {sight.place: sight.fate for sight in request.scene.sights}
    for edit in request.edits:
        fate = fates.get(edit.place)
        if not isinstance(edit, Replace) or not isinstance(fate, Told | Refused):
            if edit.place not in links or isinstance(fate, Refitted):
                yield edit
        elif edit.place not in links or isinstance(fate, Told) or request.rules.is_blind:
            name = get_address(get_at(request.reading.tree, *edit.place), token)
            yield Replace(edit.place, {"type": "text", "text": f"{name}\n{fate.text}"}) if name else edit


def _build_policy(settings: Settings, context: PromptContext) -> PathPolicy:
    """Return the policy for the folders of the session, and those that the user's own tools may read.

    A folder that contains the home folder is left out: editors name it when no project is open.
    """
    usual = build_read_policy(settings)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111, unlike Path.home() it never raises
    own = build_path_policy(None, None, [Path(each) for each in context.folders if _is_absolute(each)], None)
    narrow = [root for root in own.roots if not Path(home).is_relative_to(root)]
    others = build_path_policy(None, Path(tempfile.gettempdir()), settings.fs_reach, None)
    return replace(usual, roots=tuple(dict.fromkeys([*narrow, *others.roots])))


def _is_absolute(folder: str) -> bool:
    return os.path.isabs(folder) and "\0" not in folder  # noqa: PTH117, pathlib rejects some texts


def _find_model(name: str, runtime: Runtime) -> tuple[str, str]:
    """Return the provider that knows a model which the agent names in its own way, and its name there."""
    bare = _ROUTE_SUFFIX.sub("", name).rpartition("|")[2].strip()
    parts = bare.split("/")
    for start in range(len(parts)):
        there, model = find_owner("/".join(parts[start:]), runtime.directory.by_name)
        if there is not UNKNOWN_UPSTREAM:
            return there.preset or there.name, model
    return "", bare
