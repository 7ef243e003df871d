"""LiteLLM: a callback that prepares the images of each request, in the SDK (`acompletion`, Router) and its proxy.

    litellm.callbacks = [SightlineCallback()]

In the proxy's configuration: `callbacks: ["sightline.surfaces.adapters.litellm.callback"]`. LiteLLM calls no hook
before the synchronous `completion`, so images of that are not prepared.
"""

from __future__ import annotations

from typing import Any

from sightline.api import Session
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import Destination, prepare_body
from sightline.vision.background_loop import run_in_thread

with require_hook("litellm") as require:
    from litellm.integrations.custom_logger import CustomLogger

    require(CustomLogger, "async_pre_call_deployment_hook")

# The key of the messages and the wire that they are written in, for each type of call that has messages.
_CALLS = {
    **dict.fromkeys(("completion", "acompletion", "text_completion"), ("messages", "openai_chat")),
    "anthropic_messages": ("messages", "anthropic"),
    **dict.fromkeys(("responses", "aresponses"), ("input", "openai_responses")),
}


class SightlineCallback(CustomLogger):
    """Shows, fits, retires or describes images on their way to the model, as its profile asks.

    session: the settings and record to use; without one, the user's own.
    """

    def __init__(self, session: Session | None = None) -> None:
        super().__init__()
        self._session = session

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Prepare a request after its deployment was chosen, which says what its images may be.

        The proxy calls this, too. Its own hook comes before that, when only the name of a group of models is known.
        """
        key, wire = _CALLS.get(getattr(call_type, "value", call_type), ("", ""))
        if not isinstance(kwargs.get(key), list):
            return None
        done = await run_in_thread(prepare_body, kwargs[key], wire, _find_destination(kwargs), self._session)
        return {**kwargs, key: done.body} if done.changed else None


callback = SightlineCallback()


def _find_destination(request: dict[str, Any]) -> Destination:
    """Return where a request goes, from the name `PROVIDER/MODEL` of its model, and its address if it has one."""
    provider, slash, model = str(request.get("model", "")).partition("/")
    named = request.get("custom_llm_provider") or (provider if slash else "")
    address = request.get("api_base") or request.get("base_url") or ""
    return Destination(model if slash else provider, str(address or named))
