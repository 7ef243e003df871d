"""A process of its own that keeps images, descriptions and views and says which ones it was told are safe.

    python -m tests.store.writer FOLDER NAME COUNT

Prints the number of each image after all calls have returned.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.records import StoredView
from sightline.store import open_record


def image_of(name: str, number: int) -> Image:
    data = f"{name} {number} ".encode() * 500
    return Image(hashlib.sha256(data).hexdigest(), "image/png", Size(number + 1, 7), data)


def description_of(name: str, number: int) -> Description:
    image = image_of(name, number)
    return Description(image.sha256, image.size, f"{name} sees {number}", "ollama/llava")


def perception_of(name: str, number: int) -> StoredView:
    whole, part = image_of(name, number), image_of(f"part of {name}", number)
    result = {"image": f"sha256:{whole.sha256}", "ok": True, "source": f"{name}-{number}.png"}
    return StoredView(json.dumps(result, sort_keys=True), whole.sha256, part, f"{number} columns")


def main() -> None:
    folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    record = open_record(folder)
    for number in range(count):
        record.images.keep(name, image_of(name, number))
        record.descriptions.keep(name, description_of(name, number), "v1")
        record.images.keep_view(name, perception_of(name, number))
        print(number, flush=True)
    record.close()


if __name__ == "__main__":
    main()
