"""Sightline gives AI agents eyes.

Every function returns a result or a falsy `Failure`: `if not (seen := sightline.view("shot.png")): …`.
`await sightline.view.aio("shot.png")` does the same without blocking an event loop.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # true for a type checker; importing `typing` would be most of the cost of `import sightline`
__version__ = "0.1.0"

if TYPE_CHECKING:
    from sightline.api import Analysis as Analysis
    from sightline.api import Failure as Failure
    from sightline.api import FileAnswer as FileAnswer
    from sightline.api import FileEdit as FileEdit
    from sightline.api import FileText as FileText
    from sightline.api import ImageList as ImageList
    from sightline.api import ListedImage as ListedImage
    from sightline.api import SendDecision as SendDecision
    from sightline.api import Session as Session
    from sightline.api import View as View
    from sightline.api import analyze as analyze
    from sightline.api import call as call
    from sightline.api import describe as describe
    from sightline.api import edit_file as edit_file
    from sightline.api import fit_for as fit_for
    from sightline.api import may_send as may_send
    from sightline.api import read_file as read_file
    from sightline.api import recall as recall
    from sightline.api import tools as tools
    from sightline.api import video_analyze as video_analyze
    from sightline.api import view as view
    from sightline.api import vision_analyze as vision_analyze
    from sightline.api.body_preparation import PreparedBody as PreparedBody
    from sightline.api.body_preparation import hoist as hoist
    from sightline.api.body_preparation import hoist_tool_result_images as hoist_tool_result_images
    from sightline.api.body_preparation import prepare as prepare
    from sightline.api.http_clients import async_http_client as async_http_client
    from sightline.api.http_clients import http_client as http_client
    from sightline.model.image import Image as Image
    from sightline.model.media_capability import AudioCapability as AudioCapability
    from sightline.model.media_capability import ImageCapability as ImageCapability
    from sightline.model.media_capability import read_audio_capability as read_audio_capability
    from sightline.model.media_capability import read_image_capability as read_image_capability
    from sightline.model.records import Receipt as Receipt
    from sightline.vision.capabilities import supports_pdf as supports_pdf
    from sightline.vision.capabilities import supports_video as supports_video
    from sightline.vision.capabilities import supports_vision as supports_vision

_FROM = (
    (
        lambda: import_module("sightline.api"),
        *("Analysis", "Failure", "FileAnswer", "FileEdit", "FileText", "ImageList", "ListedImage", "SendDecision"),
        *("Session", "View", "analyze", "call", "describe", "edit_file", "fit_for", "may_send", "read_file", "recall"),
        *("tools", "video_analyze", "view", "vision_analyze"),
    ),
    (
        lambda: import_module("sightline.api.body_preparation"),
        *("PreparedBody", "hoist", "hoist_tool_result_images", "prepare"),
    ),
    (lambda: import_module("sightline.api.http_clients"), "async_http_client", "http_client"),
    (lambda: import_module("sightline.vision.capabilities"), "supports_pdf", "supports_video", "supports_vision"),
    (
        lambda: import_module("sightline.model.media_capability"),
        *("AudioCapability", "ImageCapability", "read_audio_capability", "read_image_capability"),
    ),
    (lambda: import_module("sightline.model.image"), "Image"),
    (lambda: import_module("sightline.model.records"), "Receipt"),
)
_HOME = {name: load for load, *names in _FROM for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604, they are strings

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name):  # noqa: ANN001, ANN202
        """Load what a name needs: `import sightline` alone loads nothing."""
        if name in _HOME:
            return getattr(_HOME[name](), name)
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
