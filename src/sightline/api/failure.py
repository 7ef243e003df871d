"""Why a call of the library or of a tool failed: a falsy value in the error format of its tool, never an exception."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, ParamSpec, TypeVar, final, get_args

from sightline.api.tool_results import Wire, write_content, write_json
from sightline.model.fence import dump_json_line
from sightline.model.refusal import Refusal, RefusalCode, RefusalStage
from sightline.model.scene import Json

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")

Reason = Literal[
    "invalid_input", "not_found", "unsupported_type", "too_large", "not_permitted", "corrupt", "render_unavailable"
]
REASONS: tuple[Reason, ...] = get_args(Reason)
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
FailureKind = Literal["view", "analyze", "ask"]
"""How a failure is reported: by tools for files and images, by `analyze`, or by questions about one file."""

# view_image, read_file and the like report fewer codes, and blame the file only for its own faults.
_REASONS: Mapping[RefusalCode, Reason] = {
    **{reason: reason for reason in REASONS},
    "no_consent": "not_permitted",
    "unavailable": "render_unavailable",
    "pending": "render_unavailable",
}

# vision_analyze and video_analyze begin an error with a word that depends on the stage at which the call failed, and
# for a file also on the reason.
_PREFIXES: Mapping[RefusalStage, Prefix] = {
    "model": "VISION_NOT_SUPPORTED",
    "vision": "VISION_NOT_SUPPORTED",
    "pdf": "PDF_NOT_SUPPORTED",
    "video": "VIDEO_NOT_SUPPORTED",
    "pages": "PDF_TOO_MANY_PAGES",
    "answer": "RESPONSE_NOT_JSON",
}
_FILE_PREFIXES: Mapping[RefusalCode, Prefix] = {
    "invalid_input": "INVALID_INPUT",
    "not_found": "FILE_NOT_FOUND",
    "not_permitted": "FILE_NOT_FOUND",
    "too_large": "FILE_TOO_LARGE",
    "unsupported_type": "UNSUPPORTED_FILE_TYPE",
    "corrupt": "UNSUPPORTED_FILE_TYPE",
    "render_unavailable": "UNSUPPORTED_FILE_TYPE",
}
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


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed, in the error format of its tool. It is falsy."""

    refusal: Refusal
    tool: FailureKind = "view"

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.error if self.tool == "ask" else self.message

    def __repr__(self) -> str:
        return f"<Failure {self.prefix if self.tool == 'ask' else self.reason}: {self.message}>"

    @property
    def message(self) -> str:
        """What is wrong, and what to do about it."""
        return str(self.refusal)

    @property
    def reason(self) -> RefusalCode:
        """The reason code of `view` and `analyze`; `view` uses fewer of them."""
        return _REASONS[self.refusal.code] if self.tool == "view" else self.refusal.code

    @property
    def prefix(self) -> Prefix:
        """The prefix of an error of `vision_analyze` and `video_analyze`."""
        code, stage = self.refusal.code, self.refusal.stage
        if stage in _PREFIXES:
            return _PREFIXES[stage]
        if stage == "address":
            return "FILE_TOO_LARGE" if code == "too_large" else "URL_BLOCKED"
        if stage == "file" or (stage == "" and code == "invalid_input"):
            return _FILE_PREFIXES.get(code, "LLM_ERROR")
        return "LLM_ERROR"

    @property
    def code(self) -> FailureCode:
        """The kind of failure that `vision_analyze` and `video_analyze` report."""
        return CODES[self.prefix]

    @property
    def error(self) -> str:
        """The message of `vision_analyze` and `video_analyze`, with its prefix."""
        return f"{self.prefix}: {self.message}"

    def as_dict(self) -> dict[str, Json]:
        if self.tool == "ask":
            return {"ok": False, "error": self.error, "code": self.code}
        return {"ok": False, "reason": self.reason, "message": self.message}

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this failure to a model on `wire`, with a remedy that a model can follow."""
        told = replace(self, refusal=self.refusal.for_model())
        if self.tool == "analyze":
            return write_content(wire, [f"Error ({told.reason}): {told.message}"])
        if self.tool == "ask":
            return write_content(wire, [write_json(told.as_dict())])
        return write_content(wire, [dump_json_line(told.as_dict())])


INTERNAL_ERROR = Refusal("unavailable", "Sightline failed because of a bug in itself", "give it in another format")


def never_raise(instead: F) -> Callable[[Callable[P, T]], Callable[P, T | F]]:
    """Make a function return `instead` of raising, even if a source, a setting or a library raises.

    A call with arguments that the function doesn't have still raises its TypeError.
    """

    def decorate(core: Callable[P, T]) -> Callable[P, T | F]:
        @functools.wraps(core)
        def guard(*args: P.args, **kwargs: P.kwargs) -> T | F:
            try:
                return core(*args, **kwargs)
            except Exception:  # the outermost edge of the library
                if not _accepts(core, *args, **kwargs):
                    raise
                _log.warning("a bug in Sightline", exc_info=True)
                return instead

        return guard

    return decorate


def _accepts(core: Callable[..., object], *args: object, **kwargs: object) -> bool:
    """Return whether a function can be called with these arguments at all."""
    try:
        inspect.signature(core).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
