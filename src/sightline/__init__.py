"""Sightline gives AI agents eyes.

Every function answers with a result or with a no, which is false: `if not (seen := sightline.view("shot.png")): …`.
`await sightline.view.aio("shot.png")` is the same for an event loop.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # a type checker takes it as true; `typing` itself would be most of what importing this costs
__version__ = "0.1.0"

if TYPE_CHECKING:
    from sightline.look import Analysis as Analysis
    from sightline.look import Door as Door
    from sightline.look import Edited as Edited
    from sightline.look import Envelope as Envelope
    from sightline.look import Listed as Listed
    from sightline.look import Refused as Refused
    from sightline.look import Sending as Sending
    from sightline.look import Text as Text
    from sightline.look import View as View
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
    from sightline.look.bodies import Prepared as Prepared
    from sightline.look.bodies import prepare as prepare
    from sightline.look.hoisting import hoist as hoist
    from sightline.look.hoisting import hoist_tool_result_images as hoist_tool_result_images
    from sightline.model.capability import AudioCapability as AudioCapability
    from sightline.model.capability import ImageCapability as ImageCapability
    from sightline.model.capability import read_audio_capability as read_audio_capability
    from sightline.model.capability import read_image_capability as read_image_capability
    from sightline.model.image import Image as Image
    from sightline.model.receipt import Receipt as Receipt
    from sightline.vision.capabilities import supports_pdf as supports_pdf
    from sightline.vision.capabilities import supports_video as supports_video
    from sightline.vision.capabilities import supports_vision as supports_vision

_FROM = (
    (
        lambda: import_module("sightline.look"),
        *("Analysis", "Door", "Edited", "Envelope", "Listed", "Refused", "Sending", "Text"),
        *("View", "analyze", "call", "describe", "door", "edit_file", "fit_for", "may_send", "read_file", "recall"),
        *("tools", "video_analyze", "view", "vision_analyze"),
    ),
    (lambda: import_module("sightline.look.bodies"), "Prepared", "prepare"),
    (lambda: import_module("sightline.vision.capabilities"), "supports_pdf", "supports_video", "supports_vision"),
    (lambda: import_module("sightline.look.hoisting"), "hoist", "hoist_tool_result_images"),
    (
        lambda: import_module("sightline.model.capability"),
        *("AudioCapability", "ImageCapability", "read_audio_capability", "read_image_capability"),
    ),
    (lambda: import_module("sightline.model.image"), "Image"),
    (lambda: import_module("sightline.model.receipt"), "Receipt"),
)
_HOME = {name: load for load, *names in _FROM for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604, names all the same

if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name):  # noqa: ANN001, ANN202
        """What is asked for loads what it needs: `import sightline` alone loads nothing."""
        if name in _HOME:
            return getattr(_HOME[name](), name)
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
