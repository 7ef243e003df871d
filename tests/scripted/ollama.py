"""The face that Ollama shows beside its OpenAI-compatible one: which models there are, what they can."""

from tests.scripted.models import SEES, Models, sees
from tests.scripted.talk import Json, No


def names(models: Models) -> list[str]:
    """The models that the table names without a pattern."""
    return [pattern for pattern, _ in models if not set(pattern) & set("*?[")]


def tags(models: Models) -> Json:
    """GET /api/tags."""
    return {
        "models": [
            {
                "name": name,
                "model": name,
                "modified_at": "2026-09-01T10:00:00Z",
                "size": 3_338_801_804,
                "digest": f"{number:064x}",
                "details": {"format": "gguf", "family": "scripted", "parameter_size": "4B"},
            }
            for number, name in enumerate(names(models), 1)
        ]
    }


def show(models: Models, body: Json) -> Json | No:
    """POST /api/show: a model that sees has the capability `vision`."""
    name = str(body.get("model") or body.get("name"))
    what = sees(models, name)
    if what is None:
        message = f"model '{name}' not found"
        return No(404, message, shape={"error": message})
    capabilities = ["completion", "tools", *(["vision"] if what == SEES else [])]
    return {
        "details": {"format": "gguf", "family": "scripted"},
        "model_info": {},
        "capabilities": capabilities,
    }
