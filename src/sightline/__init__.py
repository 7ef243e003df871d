"""Sightline gives AI agents eyes.

Every function answers with a result or with a no, which is false: `if not (seen := sightline.view("shot.png")): …`.
`await sightline.view.aio("shot.png")` is the same for an event loop.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # a type checker takes it as true; `typing` itself would be most of what importing this costs
__version__ = "0.1.0"

if TYPE_CHECKING:
    from sightline.api import Analysis as Analysis
    from sightline.api import Door as Door
    from sightline.api import Edited as Edited
    from sightline.api import Envelope as Envelope
    from sightline.api import Listed as Listed
    from sightline.api import Refused as Refused
    from sightline.api import Sending as Sending
    from sightline.api import Text as Text
    from sightline.api import View as View
    from sightline.api import analyze as analyze
    from sightline.api import call as call
    from sightline.api import describe as describe
    from sightline.api import door as door
    from sightline.api import edit_file as edit_file
    from sightline.api import fit_for as fit_for
    from sightline.api import may_send as may_send
    from sightline.api import read_file as read_file
    from sightline.api import recall as recall
    from sightline.api import tools as tools
    from sightline.api import video_analyze as video_analyze
    from sightline.api import view as view
    from sightline.api import vision_analyze as vision_analyze
    from sightline.api.bodies import Prepared as Prepared
    from sightline.api.bodies import hoist as hoist
    from sightline.api.bodies import hoist_tool_result_images as hoist_tool_result_images
    from sightline.api.bodies import prepare as prepare
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
        lambda: import_module("sightline.api"),
        *("Analysis", "Door", "Edited", "Envelope", "Listed", "Refused", "Sending", "Text"),
        *("View", "analyze", "call", "describe", "door", "edit_file", "fit_for", "may_send", "read_file", "recall"),
        *("tools", "video_analyze", "view", "vision_analyze"),
    ),
    (lambda: import_module("sightline.api.bodies"), "Prepared", "hoist", "hoist_tool_result_images", "prepare"),
    (lambda: import_module("sightline.vision.capabilities"), "supports_pdf", "supports_video", "supports_vision"),
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
