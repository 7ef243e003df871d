"""Several questions in one: "Which migration failed, and what is the trace?"."""

from __future__ import annotations

import re

_MOST = 6
_ASKING = r"(?:what|which|who|whose|when|where|how)\b"
_stop = re.compile(r"(?<=[.!])\s+|(?<=\?)\s*")
_and = re.compile(rf",?\s+(?:and|or)\s+(?:also\s+)?(?={_ASKING})|[,;]\s+(?={_ASKING})", re.IGNORECASE)
_asks = re.compile(
    rf"(?:please )?(?:{_ASKING}|(?:is|are|was|were|does|do|tell|give|show|read|find|list)\b)", re.IGNORECASE
)
# Whoever says so before asking tells what is the case, and does not change what is asked.
_tells = re.compile(r"(?:the|my|our|this|that|it|i|we|a|an|there|here|hi|hello|hey|thanks)\b", re.IGNORECASE)
_changes = re.compile(
    r"\b(?:if|would|could|should|were|assum\w*|suppos\w*|imagin\w*|instead|ignor\w*|exclud\w*|except|without|not|only|but"
    r"|mean|doubl\w*|half|will|want\w*|before|after)\b|n't\b", re.IGNORECASE
)  # fmt: skip
_back = re.compile(
    r"\b(?:it|its|he|she|his|her|hers|him|they|their|them|that|those|one|ones|same|other|others|else)\b", re.IGNORECASE
)


def questions(text: str) -> list[str]:
    """The questions, each as it can be asked by itself; none where the text is one, or where one needs the others."""
    sentences = [each.strip() for each in _stop.split(" ".join(text.split())) if each.strip(" .!?")]
    told = [each for each in sentences if not _asks.match(each)]
    asked = [one.strip(" ,;") for each in sentences if each not in told for one in _and.split(each)]
    if any(not _tells.match(each) or _changes.search(each) for each in told):
        return []
    if len(asked) + len(told) < 2 or len(asked) > _MOST or any(_back.search(each) for each in asked[1:]):
        return []
    return asked
