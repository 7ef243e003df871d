"""Time one way of processing an image, in a process of its own: python pixel_task.py WAY FILE COUNT.

Prints the CPU milliseconds of each time as JSON. Runs in Sightline's environment and in that of imagehash.
"""

import io
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

EDGE = 1568
AT_ONCE = 500  # of what takes microseconds


def _probe(data: bytes) -> Callable[[], object]:
    from sightline.pixels.probe import probe

    return lambda: probe(data, len(data))


def _open(data: bytes) -> Callable[[], object]:
    from PIL import Image

    return lambda: Image.open(io.BytesIO(data)).size


def _resize(data: bytes) -> Callable[[], object]:
    from sightline.model.image import ImageInfo
    from sightline.pixels.decode import decode_at_size
    from sightline.pixels.probe import probe_within_limits

    def once() -> object:
        picture = probe_within_limits(data)
        assert isinstance(picture, ImageInfo)
        return decode_at_size(data, picture, picture.size.fit_within(EDGE))

    return once


def _thumbnail(data: bytes) -> Callable[[], object]:
    from PIL import Image

    def once() -> object:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        scale = EDGE / max(image.size)
        return image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)

    return once


def _fit(data: bytes) -> Callable[[], object]:
    from sightline.model.image import ImageTarget
    from sightline.pixels.fit_image import fit_image

    target = ImageTarget(("image/png", "image/jpeg", "image/webp"), edge=EDGE)
    return lambda: fit_image(data, target)


def _hash(data: bytes) -> Callable[[], object]:
    from sightline.pixels.similarity import hash_image

    return lambda: hash_image(data)


def _imagehash(data: bytes) -> Callable[[], object]:
    import imagehash
    from PIL import Image

    return lambda: imagehash.phash(Image.open(io.BytesIO(data)))


WAYS: dict[str, tuple[Callable[[bytes], Callable[[], object]], int, str]] = {
    "probe": (_probe, AT_ONCE, "sightline"),
    "open": (_open, AT_ONCE, "pillow"),
    "resize": (_resize, 1, "sightline"),
    "thumbnail": (_thumbnail, 1, "pillow"),
    "fit": (_fit, 1, "sightline"),
    "hash": (_hash, 1, "sightline"),
    "imagehash": (_imagehash, 1, "imagehash"),
}


def main(way: str, file: str, count: int) -> None:
    prepare, at_once, package = WAYS[way]
    once = prepare(Path(file).read_bytes())
    once()
    taken = []
    for _ in range(count):
        start = time.process_time()
        for _ in range(at_once):
            once()
        taken.append((time.process_time() - start) / at_once * 1000)
    print(json.dumps({"version": version(package), "taken": taken}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
