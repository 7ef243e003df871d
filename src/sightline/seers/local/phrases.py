"""Words as they are compared: phrases in what was read, and labels and values within one line."""

from __future__ import annotations

import re

_ALIKE = str.maketrans("oil", "011")  # letters that a reader takes for digits, and the other way round
_LONG = 8  # letters from which on a name is known with one of them lost
PLAIN = 5  # letters from which on a word is looked for also where a reader has lost the spaces around it
_BRIEF = 4  # words of a value that no colon sets off
_word = re.compile(r"[^\W_]+")
_aside = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*|\s*\*\s*")
_number_of = re.compile(r"\b(?:no|nr)(?:\.|$)|#", re.IGNORECASE)
_valued = re.compile(r"[\d$€£¥+\-−\"“'#(]")
_next_label = re.compile(r"(?<=\d)(?P<unit> ?[^\W\d]{1,3}|%)?,? +[A-Z]\w*:(?: .*)?$")  # behind a number and its unit
_opening = re.compile(r"[\[{(]+")  # of what goes on below

_between = re.compile(r"[,;|·•]\s+| +[|·•] *")
_WORD = (  # of a label: none that only sentences have
    r"(?!(?:an?|and|at|by|for|from|in|is|are|of|on|or|over|since|than|the|to|under|until|was|with|your?)\b)"
    r"[^\W\d_]+(?:[-'/][^\W\d_]+)*\.?"
)
_pair = re.compile(
    rf"(?P<label>{_WORD}(?: {_WORD}){{0,3}})(?:(?P<colon>[:=]) *| +)"
    r"(?P<value>(?(colon)\S.*|(?:[$€£¥#] ?)?(?=\S*\d)\S+(?: (?:%|[^\W\d_]{1,3}))?))", re.IGNORECASE
)  # fmt: skip

EXACT, LABEL, WITHIN = 0, 1, 2


def words(text: str) -> list[str]:
    return _word.findall(text.casefold())


def key(text: str) -> str:
    """A text as it is compared: spaces, signs and letters that look alike make no difference."""
    return "".join(words(text)).translate(_ALIKE)


def match(text: str, phrase: str) -> int | None:
    """How well a text that was read answers to a phrase; None: not at all."""
    wanted = key(phrase)
    if not wanted:
        return None
    if key(text) == wanted:
        return EXACT
    label = _number_of.sub(" number ", label_of(text))
    if key(label) == wanted or key(without_asides(text)) == wanted:
        return LABEL
    if one_letter_lost("".join(words(text)), "".join(words(phrase))):
        return LABEL
    if f" {' '.join(words(phrase))} " in f" {' '.join(words(text))} ":
        return WITHIN
    return WITHIN if len(wanted) >= PLAIN and wanted in key(text) and " " in phrase.strip() else None


def one_letter_lost(read: str, meant: str, least: int = _LONG) -> bool:
    """Whether a reader has lost one letter of a long name, or seen one twice. A figure less is another name."""
    short, long = sorted((read, meant), key=len)
    if len(short) < least or len(long) != len(short) + 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return long[at].isalpha() and short[at:] == long[at + 1 :]


def label_of(text: str) -> str:
    """What stands before a colon, or before a value; an aside is no part of it."""
    head, colon, _ = text.partition(":")
    if not colon:
        value = value_in(text)
        head = text.removesuffix(value) if value else text
    return without_asides(head).strip(" :=–-")


def value_in(text: str) -> str:
    """The value within a line that has its label in front of it."""
    head, colon, rest = text.partition(":")
    if colon:
        return after_colon(head, rest)
    pieces = text.split(" ")
    for at in range(1, len(pieces)):
        if _valued.match(pieces[at]) and re.search(r"\d", pieces[at]) and not pieces[at].startswith("("):
            return " ".join(pieces[at:]) if len(pieces) - at <= _BRIEF else ""  # more is a sentence
    return ""


def after_colon(head: str, rest: str) -> str:
    value = _next_label.sub(r"\g<unit>", rest.strip())
    value = value.removesuffix(",") if head.lstrip().startswith('"') else value  # a member of an object
    return "" if _opening.fullmatch(value) else value


def pairs(text: str) -> list[tuple[str, str]]:
    """Labels and values of a line that is nothing but several of them: "exit code 3, trace 7f3a"."""
    found = [_pair.fullmatch(piece.strip()) for piece in _between.split(text)]
    return [(each["label"], each["value"]) for each in found if each] if len(found) > 1 and all(found) else []


def without_asides(text: str) -> str:
    """Without what stands in brackets, and without the star of a field that must be filled."""
    return _aside.sub(" ", text)


def begins_value(text: str) -> bool:
    """Whether a text begins as values do, and labels do not."""
    return _valued.match(text) is not None
