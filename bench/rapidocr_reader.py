"""A process that reads text with rapidocr: one JSON line with the path of an image in, one with texts and boxes out."""

import json
import logging
import sys

from rapidocr import RapidOCR

# The classifier turns long lines of a terminal upside down. The reader's own shrinking is off: what a provider
# leaves of an image is what is read.
SETTINGS = {
    "Global.use_cls": False,
    "Global.max_side_len": 8000,
    "Global.log_level": "error",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


def main() -> None:
    logging.disable(logging.WARNING)
    read, answer = RapidOCR(params=SETTINGS), sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        found = read(json.loads(line))
        boxes = [] if found.boxes is None else found.boxes.tolist()
        print(
            json.dumps([[text, box] for text, box in zip(found.txts or (), boxes, strict=True)]),
            file=answer,
            flush=True,
        )


if __name__ == "__main__":
    main()
