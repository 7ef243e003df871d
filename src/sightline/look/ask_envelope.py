"""What asking about one file answers: an envelope of a bounded size, or a no that begins with a word to match."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, final

from sightline.model.asking import Usage, is_cut
from sightline.model.fence import one_line
from sightline.model.refusal import Code, Refusal
from sightline.model.scene import Json

Prefix = Literal[
    "INVALID_INPUT",
    "FILE_NOT_FOUND",
    "URL_BLOCKED",
    "FILE_TOO_LARGE",
    "UNSUPPORTED_FILE_TYPE",
    "VISION_NOT_SUPPORTED",
    "PDF_NOT_SUPPORTED",
    "VIDEO_NOT_SUPPORTED",
    "PDF_TOO_MANY_PAGES",
    "LLM_ERROR",
    "RESPONSE_NOT_JSON",
]
FailureCode = Literal["input_invalid", "not_available", "execution_failed"]
CODES: Mapping[Prefix, FailureCode] = {
    "INVALID_INPUT": "input_invalid",
    "FILE_NOT_FOUND": "input_invalid",
    "URL_BLOCKED": "input_invalid",
    "FILE_TOO_LARGE": "input_invalid",
    "UNSUPPORTED_FILE_TYPE": "input_invalid",
    "VISION_NOT_SUPPORTED": "not_available",
    "PDF_NOT_SUPPORTED": "not_available",
    "VIDEO_NOT_SUPPORTED": "not_available",
    "PDF_TOO_MANY_PAGES": "execution_failed",
    "LLM_ERROR": "execution_failed",
    "RESPONSE_NOT_JSON": "execution_failed",
}
_OF_A_FILE: Mapping[Code, Prefix] = {
    "invalid_input": "INVALID_INPUT",
    "not_found": "FILE_NOT_FOUND",
    "not_permitted": "FILE_NOT_FOUND",
    "too_large": "FILE_TOO_LARGE",
    "unsupported_type": "UNSUPPORTED_FILE_TYPE",
    "corrupt": "UNSUPPORTED_FILE_TYPE",
    "render_unavailable": "UNSUPPORTED_FILE_TYPE",
}
MOST_OF_AN_IMAGE = 8_000  # characters of a whole envelope
MOST_OF_A_VIDEO = 30_000
_MOST_ERRORS = 10
_MARK = "[truncated — {} chars total]"


@final
@dataclass(frozen=True, slots=True)
class Unanswered:
    """A no about one file. It is false, as every no is."""

    prefix: Prefix
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.error

    @property
    def code(self) -> FailureCode:
        return CODES[self.prefix]

    @property
    def error(self) -> str:
        return f"{self.prefix}: {self.message}"

    def as_dict(self) -> dict[str, Json]:
        return {"ok": False, "error": self.error, "code": self.code}

    def content(self) -> list[Json]:
        return [{"type": "text", "text": _written(self.as_dict())}]

    @staticmethod
    def of_file(refusal: Refusal) -> Unanswered:
        """What a file is refused for; whatever is left is a trouble of this machine's."""
        return Unanswered(_OF_A_FILE.get(refusal.code, "LLM_ERROR"), str(refusal))

    @staticmethod
    def of_address(refusal: Refusal) -> Unanswered:
        return Unanswered("FILE_TOO_LARGE" if refusal.code == "too_large" else "URL_BLOCKED", str(refusal))


@final
@dataclass(frozen=True, slots=True)
class Envelope:
    """One answer. The object holds all of it; as JSON it is clipped to `most` characters."""

    text: str
    model: str
    provider: str
    usage: Usage
    cost_usd: float | None  # None: the price is not known
    parsed: dict[str, Json] | None = None  # there where a schema was given
    schema_errors: tuple[str, ...] = ()
    cached: bool = False
    fitted: bool = False
    most: int = field(default=MOST_OF_AN_IMAGE, repr=False)

    @property
    def truncated(self) -> bool:
        return bool(self.as_dict()["truncated"])

    def as_dict(self) -> dict[str, Json]:
        whole = self._with(self.text, self.parsed, truncated=is_cut(self.text))
        if len(_written(whole)) <= self.most:
            return whole
        parsed = self.parsed
        if len(_written(self._with(_mark(self.text), parsed, truncated=True))) > self.most:
            parsed = None  # alone it is too much already, and half of it would be no JSON
        return self._with(self._clipped(parsed), parsed, truncated=True)

    def content(self) -> list[Json]:
        return [{"type": "text", "text": _written(self.as_dict())}]

    def _clipped(self, parsed: dict[str, Json] | None) -> str:
        """As much of the text as there is room for; JSON writes some letters longer than they are."""
        mark, low, high = _mark(self.text), 0, len(self.text)
        while low < high:
            middle = (low + high + 1) // 2
            tried = self._with(self.text[:middle] + mark, parsed, truncated=True)
            low, high = (middle, high) if len(_written(tried)) <= self.most else (low, middle - 1)
        return self.text[:low] + mark

    def _with(self, text: str, parsed: dict[str, Json] | None, *, truncated: bool) -> dict[str, Json]:
        shaped: dict[str, Json] = {} if self.parsed is None else {"parsed": cast("Json", parsed)}
        if self.schema_errors:
            shaped["schema_errors"] = [error[:200] for error in self.schema_errors[:_MOST_ERRORS]]
        return {
            "text": text,
            **shaped,
            "model": self.model,
            "provider": self.provider,
            "cost_usd": self.cost_usd,
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "cached": self.cached,
            "fitted": self.fitted,
            "truncated": truncated,
        }


def _mark(text: str) -> str:
    return _MARK.format(len(text))


def _written(found: dict[str, Json]) -> str:
    return json.dumps(found, ensure_ascii=False)
