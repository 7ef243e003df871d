"""The engine drives the pure passes: it answers their needs, and does everything that waits or touches the outside."""

from sightline.engine.driver import MAX_IMAGES, MAX_MESSAGES, Engine, find_profile
from sightline.engine.requests import (
    OWN_TOOLS_REJECTED,
    PDF_ACCEPTED,
    EngineOptions,
    PreparedRequest,
    Reading,
    RepairLesson,
    blame_edits,
)

__all__ = [
    "MAX_IMAGES",
    "MAX_MESSAGES",
    "OWN_TOOLS_REJECTED",
    "PDF_ACCEPTED",
    "Engine",
    "EngineOptions",
    "PreparedRequest",
    "Reading",
    "RepairLesson",
    "blame_edits",
    "find_profile",
]
