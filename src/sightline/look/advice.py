"""What the user can do about a provider's no. A conversation is told only that there was one."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream
from sightline.settings import Settings
from sightline.vision.seers.litellm import PROVIDERS


def advised(no: Refusal, upstream: Upstream | None, settings: Settings) -> Refusal:
    """By the status that it came with; `upstream` is whoever was asked, where somebody was named."""
    match no.status:
        case 401 | 403:
            return replace(no, remedy=f"its key was refused; check {_key(upstream, settings)}")
        case 404:
            return replace(no, remedy="there is no such model there; name another one")
        case 400 | 413 | 415 | 422:  # to be said again, word for word, as often as it is asked
            return replace(no, remedy="it refuses the request as it is; ask with another file, question or model")
    return no


def never_asked(no: Refusal) -> bool:
    """A no that came before anything was sent: it is no call, and nothing of it failed elsewhere."""
    return no.code in ("no_consent", "unsupported_type")


def _key(upstream: Upstream | None, settings: Settings) -> str:
    """Where the user finds the key that was sent, for advice about it."""
    if upstream is not None and upstream.api_key:
        return f"the apiKey of {upstream.name} in the settings"
    if upstream is not None and upstream.name in PROVIDERS:
        return f"the credentials that {upstream.name}'s own tools use"
    variables = () if upstream is None else upstream.key_variables
    return next((name for name in variables if settings.environment.get(name)), "apiKey in the settings")
