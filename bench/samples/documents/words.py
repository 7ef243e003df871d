"""Count the words of a text, in any script."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

WORD = re.compile(r"\w+(?:['’]\w+)?")


def count_words(text: str, *, most: int = 10) -> list[tuple[str, int]]:
    """Return the most frequent words, e.g. "naïve", "Größe" or "שלום"."""
    words = (found[0].casefold() for found in WORD.finditer(text))
    return Counter(words).most_common(most)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: words.py FILE", file=sys.stderr)
        return 2
    for word, count in count_words(Path(sys.argv[1]).read_text("utf-8")):
        print(f"{count:>8,}  {word}")  # aligned, 0x1F wide at most
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
