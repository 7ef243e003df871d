"""What a client can list: the verbs of /vision-proxy as prompts, and images of the record as resources. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sightline.commands import NAME, USAGE, usage
from sightline.commands.values import SETTINGS
from sightline.commands.words import split, typed
from sightline.model.fence import one_line
from sightline.model.image import Kept
from sightline.model.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Blank:
    """One thing to fill in."""

    name: str
    meaning: str
    required: bool = False
    option: bool = False  # it goes by its name; else by its place
    several: bool = False  # words that are told apart


_IMAGE = "a path, or sha256: and at least 12 hex digits"
_MODEL = Blank("model", "the model that looks, as provider/model-id", option=True)
_BLANKS: Mapping[str, tuple[Blank, ...]] = {
    "describe": (
        Blank("images", f"{_IMAGE}; several with spaces between them", required=True, several=True),
        Blank("question", "what you want to know", option=True),
        Blank("crop", "a part of an image: 0:r=top-left, 0:n=x,y,w,h or 0:p=x,y,w,h", option=True, several=True),
        _MODEL,
    ),
    "redescribe": (Blank("image", _IMAGE, required=True), _MODEL),
    "consent": (Blank("answer", "list, yes or no"), Blank("provider", "whose; empty: the configured one")),
    "model": (Blank("model", "provider/model-id, or local", required=True),),
    **{verb: (Blank("value", USAGE[verb], required=True),) for verb in SETTINGS},
    "grounding-models": (
        Blank("action", "add, remove, list or reset", required=True),
        Blank("model", "provider/model-id"),
        Blank("format", "how it writes coordinates", option=True),
    ),
    "list": (),
    "status": (),
}
_WHAT: Mapping[str, str] = {
    "describe": "What is to be seen in images, or the answer to a question about them",
    "redescribe": "Describe an image anew, and keep that as its description",
    "consent": "Where images may be sent to be looked at",
    "model": "The model that looks",
    "grounding-models": "How models write coordinates",
    "list": "The images that can be seen again",
    "status": "Who looks, who may be asked, and what is set",
}
LIKE: Mapping[str, str] = {"describe": "analyze_image", "redescribe": "analyze_image", "list": "list_images"}  # tools
PROMPTS: Mapping[str, tuple[str, tuple[Blank, ...]]] = {
    verb: (_WHAT.get(verb, f"The setting {verb}"), _BLANKS[verb]) for verb in USAGE
}


def command(verb: str, filled: Mapping[str, str]) -> str | Refusal:
    """A prompt as it would be typed into a chat."""
    if verb not in PROMPTS:
        return Refusal("not_found", f"there is no prompt {verb!r:.60}", f"one of {', '.join(PROMPTS)}")
    _, blanks = PROMPTS[verb]
    if unknown := sorted(filled.keys() - {blank.name for blank in blanks}):
        return Refusal("invalid_input", f"{verb} has no argument {unknown[0]!r:.60}", f"usage: {usage(verb)}")
    places: list[str] = []
    options: list[str] = []
    for blank in blanks:
        given = filled.get(blank.name, "").strip()
        if not given and blank.required:
            return Refusal("invalid_input", f"{verb} needs {blank.name}", f"usage: {usage(verb)}")
        words = split(given) if blank.several else [given] if given else []
        if isinstance(words, Refusal):
            return words
        options += [f"--{blank.name}={word}" for word in words if blank.option]
        places += [word for word in words if not blank.option]
    ends = ["--"] if any(place.startswith("--") for place in places) else []
    return " ".join([NAME, verb, *map(typed, [*options, *ends, *places])])


TEMPLATE = "sightline://sha256/{sha256}"
_URI = re.compile(r"sightline://sha256/([0-9a-f]{64})/?", re.IGNORECASE | re.ASCII)


def uri(sha256: str) -> str:
    return TEMPLATE.format(sha256=sha256)


def sha256_of(address: str) -> str | None:
    found = _URI.fullmatch(address)
    return found[1].lower() if found else None


def title(kept: Kept) -> str:
    """As a person finds it in a list."""
    name = one_line(re.split(r"[/\\]", kept.path)[-1]) or f"sha256:{kept.sha256[:12]}"
    return f"{name} ({kept.mime}, {kept.size})"
