"""Several images at once: the words of a joint look, and what names and likeness hint at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from sightline.model.fence import one_line
from sightline.model.geometry import Size

_PROMPT = """\
You are analysing {count} images that the user has provided together.
Refer to them as Image 1 (filename), Image 2 (filename), ... .
Each image's dimensions will be visible to your reasoning as
"Image N: WxH pixels".

Read the user's question carefully. If the user is asking about
comparison, difference, change, or relationship between the images,
structure your response as:
  (1) similarities across the images,
  (2) specific differences,
  (3) a direct, step-by-step answer to the user's question.

Otherwise, describe each image in turn and note any obvious relationships
between them.
"""


def prompt(count: int, question: str, hints: Sequence[str] = ()) -> str:
    """What whoever looks at several images is told. Hints are advice, and said to be no more."""
    told = f"[Structural hints (advisory; the user's prompt wins): {'; '.join(hints)}]\n" if hints else ""
    return f"{_PROMPT.format(count=count)}\n{told}[User's prompt: {question}]"


def introduced(images: Sequence[tuple[Size, str]]) -> str:
    """The sizes and names of the images, in the order in which they are shown."""
    lines = (
        f"Image {number}: {size} pixels" + (f" ({one_line(name)})" if name else "")
        for number, (size, name) in enumerate(images, 1)
    )
    return "\n".join(lines)


def filename_hint(names: Sequence[str]) -> str:
    """What file names say about each other: the first pattern that fits, or nothing."""
    lowered = [name.lower() for name in names if name]
    for pattern, other, hint in _PAIRS[:2]:
        if _pair(lowered, pattern, other):
            return hint
    if _versioned(lowered):
        return "versioned sequence"
    for pattern, other, hint in _PAIRS[2:]:
        if _pair(lowered, pattern, other):
            return hint
    dated = [name for name in lowered if _dated(name)]
    return "time-ordered sequence" if len(dated) > 1 else ""


_PAIRS = (
    (r"before(?![^\W\d_])", r"after(?![^\W\d_])", "before/after pair"),
    (r"old(?![^\W\d_])", r"new(?![^\W\d_])", "old/new pair"),
    (r".*_1\.", r".*_2\.", "numbered sequence"),
    (r".*-1\.", r".*-2\.", "numbered sequence"),
)
_version = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\Z", re.ASCII).search
_dated = re.compile(r"\d{4}-\d{2}-\d{2}_.*\.", re.ASCII | re.DOTALL).match


def _pair(names: Sequence[str], pattern: str, other: str) -> bool:
    ones = [index for index, name in enumerate(names) if re.match(pattern, name, re.DOTALL)]
    others = [index for index, name in enumerate(names) if re.match(other, name, re.DOTALL)]
    return any(one != another for one in ones for another in others)


def _versioned(names: Sequence[str]) -> bool:
    """Two names that are the same up to a number right before the extension, and another number there."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for name in names:
        stem = name.rpartition(".")[0] or name
        if number := _version(stem):
            found.setdefault(stem[: number.start()], set()).add(tuple(map(int, number[1].split("."))))
    return any(len(versions) > 1 for versions in found.values())


def similar(likeness: Sequence[Sequence[float]], threshold: float) -> Iterator[tuple[int, int, float]]:
    """The pairs of images, counted from 1, that are at least so much alike."""
    for one, other in combinations(range(len(likeness)), 2):
        if likeness[one][other] >= threshold:
            yield one + 1, other + 1, likeness[one][other]


def hints(names: Sequence[str], alike: Sequence[tuple[int, int, float]]) -> list[str]:
    """All that is known of how the images belong together."""
    named = filename_hint(names)
    said = [f"the filenames suggest a {named}"] if named else []
    return said + [f"Image {one} and Image {other} look alike (similarity {how:.2f})" for one, other, how in alike]
