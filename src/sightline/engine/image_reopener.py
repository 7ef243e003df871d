"""Images that a client has sent as damaged text: opened again from the file that the client has read.

The file must be in a folder that may be read, and what is left of its bytes in the text must be what is left of its
bytes now. The result is pinned to its place in the conversation: later requests get the same, even if the file changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from sightline.engine.inline_images import InlineImages
from sightline.model.facts import Fact, Need, ReopenFile
from sightline.model.ports import DescriptionStore
from sightline.model.profile import RequestOrigin
from sightline.model.records import PinnedDescription
from sightline.model.refusal import Refusal
from sightline.model.scene import DamagedSource, InlineSource
from sightline.sources.files import PathPolicy, read_permitted_file
from sightline.wire.hash_chain import HashChain
from sightline.wire.image_bytes import build_from_bytes, is_same_image

_DAMAGED = Refusal(
    "corrupt", "its bytes were sent as text, which damaged them", "open the file with a tool that returns images"
)


class ImageReopener:
    def __init__(
        self, images: InlineImages, descriptions: DescriptionStore, find_policy: Callable[[], PathPolicy]
    ) -> None:
        self._images = images
        self._descriptions = descriptions
        self._find_policy = find_policy

    def reopen_all(
        self, needs: Sequence[ReopenFile], chain: HashChain | None, origin: RequestOrigin
    ) -> dict[Need, Fact]:
        """Return the image of each need, or a refusal."""
        names = chain.names if chain else ()
        return {
            need: self._reopen(need.image, names[need.message] if need.message < len(names) else "", origin)
            for need in needs
        }

    def _reopen(self, image: DamagedSource, name: str, origin: RequestOrigin) -> InlineSource | Refusal:
        """Return the image of one place; `name` is that of its message, empty if it has none."""
        about = (f"reopened {sha256(image.remains).hexdigest()}",)
        pinned = self._descriptions.read_pin(origin.scope, name, about) if name else None
        if pinned is not None:
            return self._images.load(str(pinned.result.get("image")), origin) or _DAMAGED
        found = self._open(image)
        kept = self._images.keep_now(found, origin) if found is not None else None
        if name and (kept is not None or found is None):
            digest = kept.sha256 if kept else ""
            self._descriptions.pin(origin.scope, PinnedDescription(name, about, {"image": digest}))
        return found if found is not None else _DAMAGED

    def _open(self, image: DamagedSource) -> InlineSource | None:
        """Return the file that the client has read, if it may be read and still is that file."""
        file = read_permitted_file(image.path, self._find_policy()) if image.path else None
        if file is None or isinstance(file, Refusal) or not is_same_image(image.remains, file.data):
            return None
        return build_from_bytes(file.data)
