"""The driver of the pure middle: all that waits, reads a clock or touches the outside world stands here."""

from sightline.engine.answers import Reading
from sightline.engine.driver import Engine, Prepared, known_profile
from sightline.engine.options import Options, SeersOf

__all__ = ["Engine", "Options", "Prepared", "Reading", "SeersOf", "known_profile"]
