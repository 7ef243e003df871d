"""Compare texts that were read with phrases, and split lines into labels and values."""

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


_ALIKE = str.maketrans("oil", "011")  # letters and digits that are often confused in reading
_LONG = 8  # a name of at least this many letters is recognised with one letter missing
MIN_PLAIN = 5  # a word of at least this many letters is found even where the spaces around it were lost
_BRIEF = 4  # words that a value without a colon has at most
_WORDS = re.compile(r"[^\W_]+")
_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*|\s*\*\s*")
_NUMBER_OF = re.compile(r"\b(?:no|nr)(?:\.|$)|#", re.IGNORECASE)
_VALUE_START = re.compile(r"[\d$€£¥+\-−\"“'#(]")
_NEXT_LABEL = re.compile(r"(?<=\d)(?P<unit> ?[^\W\d]{1,3}|%)?,? +[A-Z]\w*:(?: .*)?$")  # after a number and its unit
_OPENING = re.compile(r"[\[{(]+")  # the beginning of something that continues below

_SEPARATOR = re.compile(r"[,;|·•]\s+| +[|·•] *")
_WORD = (  # a word of a label: not one that occurs only in sentences
    r"(?!(?:an?|and|at|by|for|from|in|is|are|of|on|or|over|since|than|the|to|under|until|was|with|your?)\b)"
    r"[^\W\d_]+(?:[-'/][^\W\d_]+)*\.?"
)
_PAIR = re.compile(
    rf"(?P<label>{_WORD}(?: {_WORD}){{0,3}})(?:(?P<colon>[:=]) *| +)"
    r"(?P<value>(?(colon)\S.*|(?:[$€£¥#] ?)?(?=\S*\d)\S+(?: (?:%|[^\W\d_]{1,3}))?))", re.IGNORECASE
)  # fmt: skip

EXACT, LABEL, WITHIN = 0, 1, 2


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORDS.findall(text.casefold())


def normalize(text: str) -> str:
    """Return a text for comparison: spaces, punctuation and look-alike letters make no difference."""
    return "".join(split_words(text)).translate(_ALIKE)


def match_phrase(text: str, phrase: str) -> int | None:
    """Return how well a text matches a phrase (EXACT, LABEL or WITHIN), or None."""
    wanted = normalize(phrase)
    if not wanted:
        return None
    if normalize(text) == wanted:
        return EXACT
    label = _NUMBER_OF.sub(" number ", find_label_in(text))
    if normalize(label) == wanted or normalize(remove_asides(text)) == wanted:
        return LABEL
    if differs_by_one_letter("".join(split_words(text)), "".join(split_words(phrase))):
        return LABEL
    if f" {' '.join(split_words(phrase))} " in f" {' '.join(split_words(text))} ":
        return WITHIN
    return WITHIN if len(wanted) >= MIN_PLAIN and wanted in normalize(text) and " " in phrase.strip() else None


def differs_by_one_letter(read: str, meant: str, least: int = _LONG) -> bool:
    """Return whether a long name lost or doubled one letter in reading. A digit less is another name."""
    short, long = sorted((read, meant), key=len)
    if len(short) < least or len(long) != len(short) + 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return long[at].isalpha() and short[at:] == long[at + 1 :]


def find_label_in(text: str) -> str:
    """Return what comes before a colon or before a value, without asides in brackets."""
    head, colon, _ = text.partition(":")
    if not colon:
        value = find_value_in(text)
        head = text.removesuffix(value) if value else text
    return remove_asides(head).strip(" :=–-")


def find_value_in(text: str) -> str:
    """Return the value in a line that begins with its label, or ""."""
    head, colon, rest = text.partition(":")
    if colon:
        return extract_value(head, rest)
    pieces = text.split(" ")
    for at in range(1, len(pieces)):
        if _VALUE_START.match(pieces[at]) and re.search(r"\d", pieces[at]) and not pieces[at].startswith("("):
            return " ".join(pieces[at:]) if len(pieces) - at <= _BRIEF else ""  # more is a sentence
    return ""


def extract_value(head: str, rest: str) -> str:
    value = _NEXT_LABEL.sub(r"\g<unit>", rest.strip())
    value = value.removesuffix(",") if head.lstrip().startswith('"') else value  # a member of an object
    return "" if _OPENING.fullmatch(value) else value


def split_pairs(text: str) -> list[tuple[str, str]]:
    """Return the labels and values of a line that consists of several: "exit code 3, trace 7f3a"."""
    found = [_PAIR.fullmatch(piece.strip()) for piece in _SEPARATOR.split(text)]
    return [(each["label"], each["value"]) for each in found if each] if len(found) > 1 and all(found) else []


def remove_asides(text: str) -> str:
    """Remove what is in brackets, and the star of a required field."""
    return _ASIDE.sub(" ", text)


def begins_like_value(text: str) -> bool:
    """Return whether a text begins as values do and labels don't."""
    return _VALUE_START.match(text) is not None
