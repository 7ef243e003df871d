"""Images come again with every request of a conversation: known by comparison, at a fraction of what a hash costs."""

from __future__ import annotations

from sightline.model.source import Inline
from sightline.vision.lru_cache import LruCache

_BYTES = 32 * 1024 * 1024  # of texts that are held to compare with
_SAMPLE = 32
_MET = 4096


class Again:
    def __init__(self) -> None:
        self._texts: LruCache[tuple[bytes, str]] = LruCache(_BYTES)
        self._met: LruCache[str] = LruCache(_MET)

    def key(self, image: Inline) -> str:
        """Its own key. A text is held from the second time on: most that come once do not come again."""
        if image.is_named:
            return image.key
        text, sample = image.text, _sample(image)
        known = self._texts.get(sample)
        if known is not None and len(known[0]) == len(text) and known[0].startswith(text):
            image.named(known[1])
        elif image.key in self._met:
            self._texts.put(sample, (bytes(text), image.key), len(text))
        else:
            self._met.put(image.key, image.key)
        return image.key


def _sample(image: Inline) -> tuple[int, bytes]:
    """Where two pictures of one kind and size differ, it is in the middle."""
    text, length = image.text, len(image.text)
    places = (length // 4, length // 2, length - _SAMPLE)
    return length, b"".join([bytes(text[at : at + _SAMPLE]) for at in places if at >= 0])
