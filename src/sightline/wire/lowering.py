"""Write the fates of sights as edits; every wire's `lower` uses this.

There are three ways. A sight in its own block is replaced there (`lower_in_place`). A tool result whose images move
elsewhere, or have to be cut out of its text, is rebuilt (`lower_tool_result`), and the moved images become blocks for
their new place (`build_hoisted_blocks`). In text that can't become blocks, words replace the images (`lower_in_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import assert_never

from sightline.model.labels import SHOWN_BELOW, build_label, build_note, is_plain_reference
from sightline.model.scene import (
    AS_SENT,
    Edit,
    InlineSource,
    Insert,
    Json,
    JsonPath,
    LinkSource,
    Rebuild,
    Refitted,
    Refused,
    Repeated,
    Replace,
    Retired,
    Shown,
    Sight,
    Source,
    Told,
)
from sightline.model.value import value_class
from sightline.wire import text_images
from sightline.wire.image_blocks import to_standard_base64
from sightline.wire.json_edits import WrittenLabel, graft
from sightline.wire.json_tree import Block, get_at, get_known, get_text, get_value

_PIXEL_FATES = (Shown, Refitted, type(None))  # a tuple: a union would be built again for every sight
_INSERTIONS = {Insert}
_LABELS_KEPT = 4096
_MAX_OWN_STEPS = 2  # from a list of blocks to an image or a text of one of them; more: the block contains blocks


@value_class
class BlockFormat:
    """How one wire writes text and images as blocks."""

    build_text: Callable[[str], Block]
    build_image: Callable[[str, str], Block]  # from a media type and a base64 text
    replace_image: Callable[[Block, str, str], Block]  # the same block with other pixels: media type, base64 text
    accepts: Callable[[Json], bool] | None = None  # whether an image block is one of this wire; None: any is
    build_link: Callable[[str], Block] | None = None  # from an address; None: a foreign block with one is not read
    has_cache_marks: bool = True  # whether blocks of this wire may have `cache_control`


def has_pixels(sight: Sight) -> bool:
    return isinstance(sight.fate, _PIXEL_FATES)


def is_unchanged(sight: Sight) -> bool:
    """Return whether a sight is sent exactly as it came."""
    fate = sight.fate
    return fate is AS_SENT or fate is None or (isinstance(fate, Shown) and fate.mime is None)


def get_note(sight: Sight) -> str:
    """Return the text before an image that says how it was laid out or scaled; empty if there is none."""
    return build_note(sight.fate.note) if isinstance(sight.fate, Refitted) and sight.fate.note else ""


def build_block(sight: Sight, tree: Json, blocks: BlockFormat) -> Block:
    """Return the block that a sight becomes; its own, if it stays as it is."""
    own = get_known(tree, sight.place) if sight.path_in_text is None else None
    old = own if isinstance(own, dict) and (blocks.accepts is None or blocks.accepts(own)) else {}
    fate = sight.fate
    match fate:
        case None | Shown(mime=None) if old:
            return old
        case None | Shown() | Refitted():
            new = _build_image(sight.source, fate, old, blocks)
            return new if old else _move_cache_mark(new, own, blocks)
        case Told(text=text) | Retired(text=text) | Refused(text=text):
            return _move_cache_mark(blocks.build_text(text), own, blocks)
        case Repeated():
            return blocks.build_text(text_images.PLACEHOLDER)
        case _:
            assert_never(fate)


def _build_image(source: Source, fate: Shown | Refitted | None, old: Block, blocks: BlockFormat) -> Block:
    """Return the block of an image: `old` with other pixels, or a new one if the wire doesn't know the old one."""
    if isinstance(fate, Refitted):
        mime, data = fate.image.mime, fate.image.base64
    elif isinstance(source, InlineSource):
        mime = (fate.mime if fate else None) or source.declared_mime
        data = source.leaf if old else to_standard_base64(source)
    else:
        assert isinstance(source, LinkSource), "no wire reads another source from a foreign block"
        assert blocks.build_link is not None, "nor an address, if it can't write one"
        return blocks.build_link(source.url)
    return blocks.replace_image(old, mime, data) if old else blocks.build_image(mime, data)


def keep_cache_mark(new: Block, old: Json) -> Block:
    """Return the new block with the cache mark of the block that it replaces."""
    mark = get_value(old, "cache_control")
    return new if mark is None or "cache_control" in new else {**new, "cache_control": mark}


def _move_cache_mark(new: Block, old: Json, blocks: BlockFormat) -> Block:
    """Return the new block with the cache mark of an image block; without it, if only another API has such marks."""
    is_known = blocks.has_cache_marks or blocks.accepts is None or blocks.accepts(old)
    return keep_cache_mark(new, old) if is_known else new


def drop_cache_mark(block: Block) -> Block:
    """Return a block that moves, without its cache mark: that marks where the client's own prefix ends."""
    return {key: value for key, value in block.items() if key != "cache_control"} if "cache_control" in block else block


def lower_in_place(
    sights: Sequence[Sight], tree: Json, blocks: BlockFormat, parent: JsonPath | None = None, siblings: Json = None
) -> list[Edit]:
    """Return the edits for sights that are in blocks of their own and stay there.

    `siblings` is the value at `parent`, if it is known: most images of a message are in one list.
    """
    edits: list[Edit] = []
    for sight in sights:
        if sight.path_in_text is not None:
            continue
        place = sight.place
        if place[:-1] != parent:
            parent = place[:-1]
            siblings = get_known(tree, parent)
        stays = can_stay(sight, get_known(siblings, place[-1:]), blocks)
        if not stays:
            edits += [Insert(place, blocks.build_text(text)) for text in _list_texts_before(sight, siblings)]
            edits.append(Replace(place, build_block(sight, tree, blocks)))
        elif sight.label and _lacks_label(sight, siblings):  # it has no note, which only other pixels have
            edits.append(Insert(place, _write_label(sight.label, blocks.build_text)))
    return edits


@lru_cache(_LABELS_KEPT)
def _write_label(label: str, build_text: Callable[[str], Block]) -> Block:
    """Return the block of a label. That of a reference is written once: it is in each request of its conversation."""
    block = build_text(label)
    return WrittenLabel(block) if is_plain_reference(label) else block


def lower_in_messages(sights: Iterable[Sight], tree: Json, blocks: BlockFormat) -> list[Edit]:
    """Return the edits for sights in messages, where they stay: in blocks of their own, or among the words."""
    all_sights = list(sights)
    if not [sight for sight in all_sights if sight.path_in_text is not None]:  # as nearly always
        return lower_in_place(all_sights, tree, blocks)
    edits: list[Edit] = []
    for _, group in groupby(all_sights, key=lambda sight: sight.message):
        message_sights = list(group)
        written = next((sight for sight in message_sights if sight.path_in_text is not None), None)
        if written is None:
            edits += lower_in_place(message_sights, tree, blocks)
        else:
            content = _find_content_place(written)
            edits += lower_tool_result(content, message_sights, tree, blocks, hoist=False)
    return edits


def _find_content_place(sight: Sight) -> JsonPath:
    """Return the place of the content that has this text: the text itself, a list of blocks, or a single block."""
    *content, last = sight.place
    if last != "text":
        return sight.place
    return tuple(content[:-1]) if isinstance(content[-1], int) else tuple(content)


def _list_texts_before(sight: Sight, siblings: Json) -> Sequence[str]:
    """Return the texts to write before an image that stays. The label is next to it, where readers look for it."""
    note, label = get_note(sight), sight.label if _lacks_label(sight, siblings) else ""
    return [text for text in (note, label) if text] if note or label else ()


def _lacks_label(sight: Sight, siblings: Json) -> bool:
    """Return whether an image of a message still needs its label; another Sightline may have put it there before."""
    label, index = sight.label, sight.place[-1]
    if not label or sight.is_in_tool_result:
        return False
    if not index or not isinstance(index, int) or not isinstance(siblings, list):
        return True
    before = siblings[index - 1]
    return not isinstance(before, dict) or before.get("text") != label


def can_stay(sight: Sight, block: Json, blocks: BlockFormat) -> bool:
    """Return whether a sight is sent in the block in which it came."""
    return is_unchanged(sight) and (blocks.accepts is None or blocks.accepts(block))


def find_converted(sights: Iterable[Sight], edits: Sequence[Edit]) -> frozenset[JsonPath]:
    """Return the places of unchanged images whose blocks the edits replace, because the wire doesn't know them."""
    if {*map(type, edits)} <= _INSERTIONS:
        return frozenset()
    replaced = {edit.place for edit in edits if isinstance(edit, Replace)}
    kept = {edit.place: edit.elements for edit in edits if isinstance(edit, Rebuild)}
    if not replaced and not kept:
        return frozenset()
    unchanged = (sight.place for sight in sights if is_unchanged(sight))
    return frozenset(
        place for place in unchanged if place in replaced or place[-1] not in kept.get(place[:-1], (place[-1],))
    )


def lower_tool_result(
    place: JsonPath, sights: Sequence[Sight], tree: Json, blocks: BlockFormat, *, hoist: bool
) -> list[Edit]:
    """Return the edits for a tool's result with its content at `place`; with `hoist`, its pixels move elsewhere."""
    content = get_known(tree, place)
    if isinstance(content, dict):
        return _lower_single_part(place, content, sights, blocks, hoist=hoist)
    pixels_leave = hoist and any(map(has_pixels, sights))
    if not pixels_leave and all(sight.path_in_text is None for sight in sights):
        return lower_in_place(sights, tree, blocks, place, content)
    if isinstance(content, str):
        pieces = _split_text(content, sights, tree, blocks, hoist=hoist)
        return [Replace(place, _join_texts([*pieces, blocks.build_text(SHOWN_BELOW)] if pixels_leave else pieces))]
    assert isinstance(content, list)
    return [Rebuild(place, tuple(_rebuild_list(place, content, sights, tree, blocks, hoist=hoist)))]


def _lower_single_part(
    place: JsonPath, content: Block, sights: Sequence[Sight], blocks: BlockFormat, *, hoist: bool
) -> list[Edit]:
    """Return the edits for a part that some clients write instead of a list of parts: it becomes a list."""
    wrapper: Json = {"content": [content]}
    moved = [replace(sight, place=("content", 0, *sight.place[len(place) :])) for sight in sights]
    edits = lower_tool_result(("content",), moved, wrapper, blocks, hoist=hoist)
    return [Replace(place, get_at(graft(wrapper, edits), "content"))] if edits else []


def _join_texts(blocks: list[Block]) -> Json:
    """Return one text, as it was before, if all blocks are plain text; else the blocks."""
    texts = [text for each in blocks if isinstance(text := each.get("text"), str)]
    plain = len(texts) == len(blocks) and not any(map(text_images.is_json_container, texts))
    return "\n".join(texts) if plain else [*blocks]


def _split_text(text: str, sights: Sequence[Sight], tree: Json, blocks: BlockFormat, *, hoist: bool) -> list[Block]:
    pieces: list[Block] = []
    for piece in text_images.split_at_images(text, sights):
        if isinstance(piece, str):
            pieces += [blocks.build_text(piece)] if piece.strip() else []  # no wire accepts a blank text
        elif not (hoist and has_pixels(piece)):
            pieces.append(build_block(piece, tree, blocks))
    return pieces


def _rebuild_list(
    place: JsonPath, content: list[Json], sights: Sequence[Sight], tree: Json, blocks: BlockFormat, *, hoist: bool
) -> list[int | Block]:
    """Return the elements of a result without the pixels that leave it, and one marker at the end for all of them."""
    kept: list[int | Block] = []
    marker: Block = blocks.build_text(SHOWN_BELOW)
    by_index: dict[str | int, list[Sight]] = {}
    for sight in sights:
        by_index.setdefault(sight.place[len(place)], []).append(sight)
    for index, block in enumerate(content):
        block_sights = by_index.get(index)
        if not block_sights:
            kept.append(index)
        elif len(block_sights[0].place) > len(place) + _MAX_OWN_STEPS:
            kept.append(_lower_nested_block(block, len(place) + 1, block_sights, tree, blocks, hoist=hoist))
        elif block_sights[0].path_in_text is None:
            if hoist and has_pixels(block_sights[0]):
                marker = _move_cache_mark(marker, block, blocks)
            else:
                sight = block_sights[0]
                kept += map(blocks.build_text, _list_texts_before(sight, get_known(tree, sight.place[:-1])))
                stays = can_stay(sight, get_known(tree, sight.place), blocks)
                kept.append(index if stays else build_block(sight, tree, blocks))
        else:
            text = get_at(tree, *block_sights[0].place)
            assert isinstance(text, str)
            pieces = _split_text(text, block_sights, tree, blocks, hoist=hoist)
            marker = keep_cache_mark(marker, block) if not pieces else marker
            kept += [*pieces[:-1], *(keep_cache_mark(last, block) for last in pieces[-1:])]
    return [*kept, marker] if hoist and any(map(has_pixels, sights)) else kept


def _lower_nested_block(
    block: Json, depth: int, sights: Sequence[Sight], tree: Json, blocks: BlockFormat, *, hoist: bool
) -> Block:
    """Return a block that contains other blocks, with words in the places of the images that leave it."""
    edits = lower_in_text(
        [sight for sight in sights if sight.path_in_text is not None], tree, blocks, text_images.PLACEHOLDER
    )
    for sight in (sight for sight in sights if sight.path_in_text is None):
        placeholder = _move_cache_mark(blocks.build_text(text_images.PLACEHOLDER), get_at(tree, *sight.place), blocks)
        leaves = hoist and has_pixels(sight)
        if not leaves and (note := get_note(sight)):
            edits.append(Insert(sight.place, blocks.build_text(note)))
        edits.append(Replace(sight.place, placeholder if leaves else build_block(sight, tree, blocks)))
    edited = graft(block, [replace(edit, place=edit.place[depth:]) for edit in edits])
    assert isinstance(edited, dict)
    return edited


def lower_in_text(sights: Sequence[Sight], tree: Json, blocks: BlockFormat, marker: str = SHOWN_BELOW) -> list[Edit]:
    """Return the edits for texts that must stay texts: words replace each of their images.

    The words for the last image that has moved are `marker`, which says where the images are.
    """
    edits: list[Edit] = []
    last = max((index for index, sight in enumerate(sights) if has_pixels(sight)), default=-1)
    for place, group in groupby(enumerate(sights), key=lambda each: each[1].place):
        text = get_at(tree, *place)
        assert isinstance(text, str)
        replacements: dict[JsonPath, str] = {}
        for index, sight in group:
            moved = marker if index == last else text_images.PLACEHOLDER
            replacements[sight.path_in_text or ()] = (
                moved if has_pixels(sight) else get_text(build_block(sight, tree, blocks), "text")
            )
        edits.append(Replace(place, text_images.replace_text_images(text, replacements)))
    return edits


def build_hoisted_blocks(sights: Sequence[Sight], tree: Json, blocks: BlockFormat) -> list[Json]:
    """Return the blocks of sights that have left their results, each after a label that names its call."""
    content: list[Json] = []
    for sight in sights:
        # The passes label what a profile moves. A result that itself can't contain images is found only here.
        label = sight.label or (build_label(sight.call) if sight.call else "")
        content += [blocks.build_text(text) for text in (get_note(sight), label) if text]
        content.append(drop_cache_mark(build_block(sight, tree, blocks)))
    return content


def sort_by_call(sights: list[Sight], order: Mapping[str, int]) -> list[Sight]:
    """Return sights in the order of their calls, by the ids of these; sights of unknown calls come last."""
    return sorted(sights, key=lambda sight: order.get(sight.call.id if sight.call else "", len(order)))


def group_by_run(sights: Iterable[Sight], find_end: Callable[[int], int]) -> Iterator[tuple[int, list[Sight]]]:
    """Yield the sights of each run of messages, with the index after the run.

    `sights` are in the order of their messages. `find_end` returns that index for a message, and is called once a run.
    """
    end, run = -1, list[Sight]()
    for sight in sights:
        if sight.message >= end:
            run_end = find_end(sight.message)
            if run and run_end != end:
                yield end, run
                run = []
            end = run_end
        run.append(sight)
    if run:
        yield end, run
