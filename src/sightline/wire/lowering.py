"""How fates are written, as far as all wires do it alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import assert_never

from sightline.model.edit import Edit, Insert, Rebuild, Replace
from sightline.model.fate import Refitted, Refused, Repeated, Retired, Shown, Told
from sightline.model.marks import MARKER, label
from sightline.model.scene import Json, Path, Sight
from sightline.model.source import Inline
from sightline.wire import rescue
from sightline.wire.inline import standard
from sightline.wire.jsonedits import graft
from sightline.wire.shape import at, text_in

Block = dict[str, Json]
_PIXELS = (Shown, Refitted, type(None))  # a tuple: a union would be made anew for every sight
_OWN = 2  # steps at the most from a list of blocks to an image or a text of one of them


@dataclass(frozen=True, slots=True)
class Dialect:
    """The blocks of one wire."""

    words: Callable[[str], Block]
    pixels: Callable[[str, str], Block]  # of a media type and a base64 text
    recoded: Callable[[Block, str, str], Block]  # the same block with other pixels: media type, base64 text
    knows: Callable[[Json], bool] | None = None  # may this block of an image stay as it is? None: any may


def has_pixels(sight: Sight) -> bool:
    return isinstance(sight.fate, _PIXELS)


def as_sent(sight: Sight) -> bool:
    """Does it go on just as it came?"""
    return sight.fate is None or (isinstance(sight.fate, Shown) and sight.fate.mime is None)


def block(sight: Sight, tree: Json, dialect: Dialect) -> Block:
    """The block that a sight becomes; its own, where it stays as it is."""
    own = at(tree, *sight.place) if sight.within is None else None
    old = own if isinstance(own, dict) and (dialect.knows is None or dialect.knows(own)) else {}
    fate = sight.fate
    match fate:
        case None | Shown(mime=None) if old:
            return old
        case None | Shown():
            assert isinstance(sight.source, Inline)
            mime = (fate.mime if fate else None) or sight.source.declared
            if old:
                return dialect.recoded(old, mime, sight.source.leaf)
            return dialect.pixels(mime, standard(sight.source))
        case Refitted(image=image):
            return dialect.recoded(old, image.mime, image.base64) if old else dialect.pixels(image.mime, image.base64)
        case Told(words=words) | Retired(words=words) | Refused(words=words):
            return marked(dialect.words(words), own)
        case Repeated():
            return dialect.words(rescue.HERE)
        case _:
            assert_never(fate)


def marked(new: Block, old: Json) -> Block:
    """A cache mark stays with whatever stands in the block's place."""
    mark = at(old, "cache_control")
    return new if mark is None or "cache_control" in new else {**new, "cache_control": mark}


def unmarked(one: Block) -> Block:
    """The cache mark stays behind: it says where the client's own prefix ends."""
    return {key: value for key, value in one.items() if key != "cache_control"} if "cache_control" in one else one


def in_place(sights: Sequence[Sight], tree: Json, dialect: Dialect) -> list[Edit]:
    """Edits for sights that stand in blocks of their own and stay there."""
    edits: list[Edit] = []
    for sight in sights:
        if sight.within is not None:
            continue
        if sight.label and not sight.held and not _is_led(sight, tree):
            edits.append(Insert(sight.place, dialect.words(sight.label)))
        if not _stays(sight, tree, dialect):
            edits.append(Replace(sight.place, block(sight, tree, dialect)))
    return edits


def _is_led(sight: Sight, tree: Json) -> bool:
    """Do its words stand before it already? Who spoke here may be one of us."""
    *here, index = sight.place
    return isinstance(index, int) and index > 0 and text_in(at(tree, *here, index - 1), "text") == sight.label


def _stays(sight: Sight, tree: Json, dialect: Dialect) -> bool:
    """Is the block of a sight right as it is?"""
    return as_sent(sight) and (dialect.knows is None or dialect.knows(at(tree, *sight.place)))


def result(place: Path, sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool) -> list[Edit]:
    """Edits for a tool's result, whose content stands at `place`; with `hoist`, its pixels leave for elsewhere."""
    content = at(tree, *place)
    if isinstance(content, dict):
        return _alone(place, content, sights, dialect, hoist=hoist)
    leaving = hoist and any(map(has_pixels, sights))
    if not leaving and all(sight.within is None for sight in sights):
        return in_place(sights, tree, dialect)
    if isinstance(content, str):
        apart = _text_apart(content, sights, tree, dialect, hoist=hoist)
        return [Replace(place, _joined([*apart, dialect.words(MARKER)] if leaving else apart))]
    assert isinstance(content, list)
    return [Rebuild(place, tuple(_list_apart(place, content, sights, tree, dialect, hoist=hoist)))]


def _alone(place: Path, content: Block, sights: Sequence[Sight], dialect: Dialect, *, hoist: bool) -> list[Edit]:
    """Edits for a part that stands alone, where a list of parts is meant: it becomes one."""
    listed: Json = {"content": [content]}
    inside = [replace(sight, place=("content", 0, *sight.place[len(place) :])) for sight in sights]
    edits = result(("content",), inside, listed, dialect, hoist=hoist)
    return [Replace(place, at(graft(listed, edits), "content"))] if edits else []


def _joined(blocks: list[Block]) -> Json:
    """One text, as it was before, where plain words are all that there is."""
    texts = [text for each in blocks if isinstance(text := each.get("text"), str)]
    plain = len(texts) == len(blocks) and not any(map(rescue.is_data, texts))
    return "\n".join(texts) if plain else [*blocks]


def _text_apart(text: str, sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool) -> list[Block]:
    found: list[Block] = []
    for piece in rescue.pieces(text, sights):
        if isinstance(piece, str):
            found += [dialect.words(piece)] if piece.strip() else []  # no wire takes a text without a letter
        elif not (hoist and has_pixels(piece)):
            found.append(block(piece, tree, dialect))
    return found


def _list_apart(
    place: Path, content: list[Json], sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool
) -> list[int | Block]:
    """What else a result held, then one marker where pixels have left it."""
    kept: list[int | Block] = []
    marker: Block = dialect.words(MARKER)
    standing: dict[str | int, list[Sight]] = {}
    for sight in sights:
        standing.setdefault(sight.place[len(place)], []).append(sight)
    for index, one in enumerate(content):
        here = standing.get(index)
        if not here:
            kept.append(index)
        elif len(here[0].place) > len(place) + _OWN:
            kept.append(_amid(one, len(place) + 1, here, tree, dialect, hoist=hoist))
        elif here[0].within is None:
            if hoist and has_pixels(here[0]):
                marker = marked(marker, one)
            else:
                kept.append(index if _stays(here[0], tree, dialect) else block(here[0], tree, dialect))
        else:
            text = at(tree, *here[0].place)
            assert isinstance(text, str)
            apart = _text_apart(text, here, tree, dialect, hoist=hoist)
            marker = marked(marker, one) if not apart else marker
            kept += [*apart[:-1], *(marked(last, one) for last in apart[-1:])]
    return [*kept, marker] if hoist and any(map(has_pixels, sights)) else kept


def _amid(one: Json, depth: int, sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool) -> Block:
    """A block that holds others: in it, words stand where images have left it."""
    edits = in_words([sight for sight in sights if sight.within is not None], tree, dialect, rescue.HERE)
    for sight in (sight for sight in sights if sight.within is None):
        word = marked(dialect.words(rescue.HERE), at(tree, *sight.place))
        edits.append(Replace(sight.place, word if hoist and has_pixels(sight) else block(sight, tree, dialect)))
    held = graft(one, [replace(edit, place=edit.place[depth:]) for edit in edits])
    assert isinstance(held, dict)
    return held


def in_words(sights: Sequence[Sight], tree: Json, dialect: Dialect, marker: str = MARKER) -> list[Edit]:
    """Edits for texts that must stay such: what stands for each of their images is said in its very place.

    The last one that has moved says where they are.
    """
    edits: list[Edit] = []
    last = max((number for number, sight in enumerate(sights) if has_pixels(sight)), default=-1)
    for place, group in groupby(enumerate(sights), key=lambda each: each[1].place):
        text = at(tree, *place)
        assert isinstance(text, str)
        words: dict[Path, str] = {}
        for number, sight in group:
            shown = marker if number == last else rescue.HERE
            words[sight.within or ()] = shown if has_pixels(sight) else text_in(block(sight, tree, dialect), "text")
        edits.append(Replace(place, rescue.worded(text, words)))
    return edits


def moved(sights: Sequence[Sight], tree: Json, dialect: Dialect) -> list[Json]:
    """The blocks of those that have left their results, each led by the words that name its call."""
    content: list[Json] = []
    for sight in sights:
        # Where a result is the only one that cannot hold its image, nobody knew before that this one would leave it.
        led = sight.label or (label(sight.call) if sight.call else "")
        content += [dialect.words(led)] if led else []
        content.append(unmarked(block(sight, tree, dialect)))
    return content


def by_run(sights: Iterable[Sight], end_of: Callable[[int], int]) -> Iterator[tuple[int, list[Sight]]]:
    """The sights of each run of messages, with the index behind the run; `end_of` a message finds that once for a run.

    The sights are in the order of their messages.
    """
    end, run = -1, list[Sight]()
    for sight in sights:
        if sight.message >= end:
            found = end_of(sight.message)
            if run and found != end:
                yield end, run
                run = []
            end = found
        run.append(sight)
    if run:
        yield end, run
