"""Rewrites the blocks of a prompt that name an image instead of containing it, or that the agent does not accept.

Every agent accepts text and links. An image block needs pixels in it, and an embedded file needs an agent that says so.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sightline.model.fence import to_one_line
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.scene import JsonPath as Way
from sightline.passes.wording import write_absence
from sightline.pixels.probe import probe
from sightline.sources.files import PathPolicy, read_permitted_file
from sightline.wire.content_blocks import find_block_name, find_prompt
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_text

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
        path = _get_file_path(get_text(block, "uri"))
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


def _get_file_path(uri: str) -> str:
    """Return the path of a file: address on this machine, or an empty text."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if is_local else ""


def _is_image_file(block: Block, path: str) -> bool:
    return get_text(block, "mimeType").strip().lower().startswith("image/") or path.lower().endswith(_IMAGE_SUFFIXES)
