"""Numbers as people write them: with a sign, thousands separators, decimals, a scale and a unit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_NUMBER = re.compile(
    r"(?P<open>\()?(?P<sign>[+\-−–])?\s?(?P<money>US\$|R\$|[$€£¥₹])?\s?(?P<minus>[\-−–])?"
    r"(?P<digits>\d[\d., '’\u202f\u00a0]*|\.\d+)(?P<power>[eE][+\-]?\d+)?\s?"
    r"(?P<tail>[%‰$€£¥₹]|°[CF]?|[^\W\d_]{1,4}(?:/[^\W\d_]{1,3})?)?\)?"
)
_ROUND = re.compile(r"^[oO](?=[kKM%]?$)")  # a zero that was read as a letter
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "mn": 1e6, "Mio": 1e6, "B": 1e9, "bn": 1e9, "T": 1e12, "tn": 1e12}
_UNITS = frozenset("BTKM")  # after a space these are bytes, tonnes, degrees or metres
# How thousands and decimals are separated; the first form that matches applies.
_FORMS: tuple[tuple[str, str, str], ...] = (
    (r"\d{1,3}(?:[,'’ \u202f\u00a0]\d{3})+(?:\.\d+)?", r"[,'’ \u202f\u00a0]", "."),
    (r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?", r",", "."),
    (r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+", r"\.", ","),
    (r"\d{1,3}(?:[ \u202f\u00a0]\d{3})+,\d+", r"[ \u202f\u00a0]", ","),
    (r"\d+,\d+", "", ","),
    (r"\d+(?:\.\d+)?|\.\d+", "", "."),
)
_POINTED = r"[1-9]\d{0,2}(?:\.\d{3})+"  # "0.125" always has decimals


def parse_number(text: str) -> float | None:
    """Return the number that a text is, or None."""
    read = parse_amount(text)
    return None if read is None else read[0]


def parse_amount(text: str, *, pointed: bool = False) -> tuple[float, str] | None:
    """Return the number and its unit, or None; with `pointed`, points separate thousands."""
    match = _NUMBER.fullmatch(_ROUND.sub("0", text.strip()))
    if match is None:
        return None
    digits = match["digits"].strip()
    plain = _parse_digits(digits.replace(".", "") if pointed else digits, match["power"] or "")
    if plain is None:
        return None
    tail = match["tail"] or ""
    scale = 1.0 if tail in _UNITS and match["digits"] != digits else _SCALES.get(tail, 1.0)
    negative = match["open"] or match["sign"] not in (None, "+") or match["minus"]
    value = plain * scale
    return -value if negative else value, match["money"] or ("" if scale != 1.0 else tail)


def _parse_digits(digits: str, power: str) -> float | None:
    for form, thousands, decimal in _FORMS:
        if re.fullmatch(form, digits):
            bare = re.sub(thousands, "", digits) if thousands else digits
            value = float(bare.replace(decimal, ".") + power)
            return value if math.isfinite(value) else None
    return None


def points_separate_thousands(texts: Sequence[str]) -> bool:
    """Return whether points separate thousands in a column: beside whole numbers, or with two in one number."""
    digits = [re.sub(r"[^\d.,]", "", text) for text in texts if parse_number(text) is not None]
    grouped = [each for each in digits if re.fullmatch(_POINTED, each)]
    sure = any(each.isdigit() for each in digits) or any(each.count(".") > 1 for each in grouped)
    return bool(grouped) and sure and all(each in grouped or each.isdigit() for each in digits)


def parse_whole_number(text: str) -> int | None:
    """Return the whole number that a text is, or None: "1.200" can only be twelve hundred."""
    read = parse_amount(text, pointed=points_separate_thousands(("0", text)))
    return int(read[0]) if read is not None and read[0].is_integer() else None
