"""The engine drives the pure passes: it answers their needs, and does everything that waits or touches the outside."""

from sightline.engine.driver import MAX_IMAGES, MAX_MESSAGES, Engine, find_profile
from sightline.engine.requests import EngineOptions, PreparedRequest, Reading

__all__ = ["MAX_IMAGES", "MAX_MESSAGES", "Engine", "EngineOptions", "PreparedRequest", "Reading", "find_profile"]
