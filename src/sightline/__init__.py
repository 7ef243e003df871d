"""Sightline gives AI agents eyes."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # a type checker takes it as true; `typing` itself would be most of what importing this costs
__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from sightline.look import analyze as analyze
    from sightline.look import call as call
    from sightline.look import describe as describe
    from sightline.look import door as door
    from sightline.look import edit_file as edit_file
    from sightline.look import fit_for as fit_for
    from sightline.look import may_send as may_send
    from sightline.look import read_file as read_file
    from sightline.look import recall as recall
    from sightline.look import tools as tools
    from sightline.look import video_analyze as video_analyze
    from sightline.look import view as view
    from sightline.look import vision_analyze as vision_analyze
    from sightline.look.bodies import prepare as prepare
    from sightline.look.capable import supports_pdf as supports_pdf
    from sightline.look.capable import supports_video as supports_video
    from sightline.look.capable import supports_vision as supports_vision
    from sightline.look.hoisting import hoist as hoist
    from sightline.look.hoisting import hoist_tool_result_images as hoist_tool_result_images
    from sightline.model.capability import read_audio_capability as read_audio_capability
    from sightline.model.capability import read_image_capability as read_image_capability

_LOOK = (
    *("analyze", "call", "describe", "door", "edit_file", "fit_for"),
    *("may_send", "read_file", "recall", "tools", "video_analyze", "view", "vision_analyze"),
)
_HOISTING = ("hoist", "hoist_tool_result_images")
_BODIES = ("prepare",)
_CAPABLE = ("supports_pdf", "supports_video", "supports_vision")
_CAPABILITY = ("read_audio_capability", "read_image_capability")

__all__ = ["__version__", *_CAPABILITY, *_CAPABLE, *_LOOK, *_HOISTING, *_BODIES]  # noqa: PLE0604, names all the same


def __getattr__(name: str) -> Any:
    """What is asked for loads what it needs: `import sightline` alone loads nothing."""
    if name in _LOOK:
        return getattr(import_module("sightline.look"), name)
    if name in _HOISTING:
        return getattr(import_module("sightline.look.hoisting"), name)
    if name in _BODIES:
        return getattr(import_module("sightline.look.bodies"), name)
    if name in _CAPABLE:
        return getattr(import_module("sightline.look.capable"), name)
    if name in _CAPABILITY:
        return getattr(import_module("sightline.model.capability"), name)
    raise AttributeError(f"module 'sightline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
