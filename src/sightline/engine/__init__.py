"""The driver of the pure middle: all that waits, reads a clock or touches the outside world stands here."""

from sightline.engine.answers import Reading
from sightline.engine.driver import MOST_IMAGES, MOST_MESSAGES, Engine, known_profile
from sightline.engine.options import Options
from sightline.engine.repairs import Prepared

__all__ = ["MOST_IMAGES", "MOST_MESSAGES", "Engine", "Options", "Prepared", "Reading", "known_profile"]
