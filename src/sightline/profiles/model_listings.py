"""What upstreams publish about their models: where each answers, and the shapes of its answers.

An answer is read by its shape, not by its sender: gateways copy the shapes of others. A model is left out if an answer
says nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sightline.model.profile import Upstream, WireName, join_url, strip_version
from sightline.model.scene import Json

PUBLISHED_KINDS = ("vision", "pdf", "video")
"""The kinds of media that are kept of an answer."""

_MAX_MODELS = 5000
_MAX_NAME = 256
_LISTS = ("data", "models")
_NAMES = ("id", "key", "slug", "name")
_MODALITIES = {"image": "vision", "vision": "vision", "pdf": "pdf", "file": "pdf", "video": "video"}
_FLAGS = {
    "supports_image_in": "vision",  # Kimi
    "supports_video_in": "video",
    "supports_image_input": "vision",  # Fireworks
    "supports_vision": "vision",  # LiteLLM
}
_CAPABILITIES = {
    "vision": "vision",  # Mistral, LM Studio
    "image_input": "vision",  # Anthropic
    "pdf_input": "pdf",
}


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """A request for what is published. `model` is the only model that the answer is about; empty: it lists them."""

    url: str
    body: Json = None  # None: a GET
    model: str = ""


def list_requests(upstream: Upstream, wire: WireName, model: str) -> Sequence[ListingRequest]:
    """Return the requests that tell what a model takes; the first one with an answer counts."""
    if not upstream.bases or upstream.preset in _SILENT:
        return ()
    if wire == "gemini" or (not upstream.preset and upstream.is_on_loopback):
        return ()  # Gemini's API doesn't say it, and an unknown server on this machine is most often another proxy
    base = upstream.get_base(wire)
    root = strip_version(base)
    match upstream.preset:
        case "ollama" | "ollama-cloud":
            return (ListingRequest(f"{root}/api/show", {"model": model}, model),)
        case "lmstudio":
            return ListingRequest(f"{root}/api/v1/models"), ListingRequest(f"{root}/api/v0/models")
        case "llamacpp":
            return ListingRequest(join_url(base, "/v1/models")), ListingRequest(f"{root}/props", model=model)
        case _:
            return (ListingRequest(join_url(base, "/v1/models")),)


# They list names only, or have no such list; all models of Anthropic see.
_SILENT = frozenset(
    """anthropic openai chatgpt gemini deepseek zai zai-coding moonshot minimax dashscope dashscope-coding bedrock xai
    groq vllm""".split()
)


def parse_listing(answer: Json, model: str = "") -> Mapping[str, Mapping[str, bool]]:
    """Return what each model takes, as far as an answer says; `model`: the only one that it is about, if not empty."""
    if model:
        said = _read_model(answer) if isinstance(answer, dict) else {}
        return {model: said} if said else {}
    found: dict[str, dict[str, bool]] = {}
    for entry in _list_entries(answer):
        name = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), "")
        said = _read_model(entry)
        if isinstance(name, str) and 0 < len(name) <= _MAX_NAME and said and len(found) < _MAX_MODELS:
            found[name] = said
    return found


def _list_entries(answer: Json) -> Iterator[dict[str, Json]]:
    lists = [answer.get(key) for key in _LISTS] if isinstance(answer, dict) else [answer]
    for each in lists:
        yield from (entry for entry in each if isinstance(entry, dict)) if isinstance(each, list) else ()


def _read_model(entry: dict[str, Json]) -> dict[str, bool]:
    """Return what one entry says, in any of the known shapes."""
    architecture = entry.get("architecture")
    modalities = [entry.get("input_modalities"), entry.get("modalities")]
    if isinstance(architecture, dict):
        modalities.insert(0, architecture.get("input_modalities"))
    said: dict[str, bool] = {}
    for each in modalities:
        said |= _read_names(each, _MODALITIES) if isinstance(each, list) else _read_flags(each, _MODALITIES)
    capabilities = entry.get("capabilities")
    if isinstance(capabilities, list):  # Ollama
        said |= {"vision": "vision" in capabilities}
    elif isinstance(capabilities, dict):
        supports = capabilities.get("supports")  # Copilot
        said |= _read_flags(capabilities, _CAPABILITIES) | _read_flags(supports, _CAPABILITIES)
    said |= _read_flags(entry, _FLAGS)
    if entry.get("type") in ("vlm", "llm") and "vision" not in said:  # LM Studio
        said["vision"] = entry["type"] == "vlm"
    return said


def _read_names(names: Sequence[Json], kinds: Mapping[str, str]) -> dict[str, bool]:
    """Return all kinds by a list of those that are taken; a list without text is about something else."""
    if "text" not in names:
        return {}
    taken = {kinds[name] for name in names if isinstance(name, str) and name in kinds}
    return {kind: kind in taken for kind in PUBLISHED_KINDS}


def _read_flags(flags: Json, kinds: Mapping[str, str]) -> dict[str, bool]:
    """Return kinds by flags, each a boolean or an object with `supported`."""
    found = {}
    for name, kind in kinds.items():
        value = flags.get(name) if isinstance(flags, dict) else None
        value = value.get("supported") if isinstance(value, dict) else value
        if isinstance(value, bool):
            found[kind] = value
    return found
