"""Which scripted models see, and in which words the blind ones say no to an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.scripted.talk import Json, No

SEES = "sees"
IGNORES = "ignores"  # it is blind, takes images all the same, and answers as if there were none

# Pattern and either SEES, IGNORES or the name of a wording; the first that matches decides, none is "no such model".
Models = Sequence[tuple[str, str]]

ALL_SEE: Models = (("*", SEES),)
DEEPSEEK: Models = (
    ("claude-opus*", "deepseek"),
    ("deepseek-v4-pro", "deepseek"),
    ("claude-*", SEES),
    ("deepseek-flash", SEES),
    ("deepseek-v4-flash", SEES),
)


@dataclass(frozen=True, slots=True)
class Wording:
    """One provider's way to refuse an image.

    `{part}` is the wire's image type, `{index}` the message it stands in. With `shape` the body is that
    object on every wire, `{message}` and `{index}` filled in; without, the error shape of the wire.
    """

    status: int
    message: str
    kind: str = "invalid_request_error"
    shape: Json | None = None


_TOO_STRICT = "Input should be a valid string"

# As seen in public reports of each provider.
WORDINGS: dict[str, Wording] = {
    "deepseek": Wording(
        400,
        "Failed to deserialize the JSON body into the target type: messages[{index}]: "
        "unknown variant `{part}`, expected `text` at line 1 column 690848",
    ),
    "deepseek_model": Wording(400, "Model do not support image input"),
    "deepseek_native": Wording(400, "DeepSeek native does not support 'image' blocks"),
    "openrouter": Wording(
        404,
        "No endpoints found that support image input",
        shape={"error": {"message": "{message}", "code": 404}, "user_id": "user_scripted"},
    ),
    "mimo": Wording(
        404,
        "No endpoints found that support image input",
        shape={"error": {"code": "404", "message": "{message}", "param": "", "type": ""}},
    ),
    "ollama": Wording(400, "this model does not support image input (ref: b8bd630e-4a39-4b57-82af-9158ee9d5703)"),
    "llamacpp": Wording(
        500,
        "image input is not supported by this server",
        shape={"error": {"code": 500, "message": "{message}", "type": "server_error"}},
    ),
    "llamacpp_hint": Wording(
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        shape={"error": {"code": 500, "message": "{message}", "type": "server_error"}},
    ),
    "llamacpp_old": Wording(
        500,
        'Failed to parse messages: Unsupported content part type: "{part}"; messages = []',
        shape={"error": {"code": 500, "message": "{message}", "type": "server_error"}},
    ),
    "zai": Wording(400, "图片输入格式/解析错误", shape={"error": {"code": "1210", "message": "{message}"}}),
    "zai_anthropic": Wording(
        400,
        "[1210][图片输入格式/解析错误][20260916231629b20bd515ccea4697]",
        shape={
            "type": "error",
            "error": {"type": "invalid_request_error", "code": "1210", "message": "{message}"},
            "request_id": "20260916231629b20bd515ccea4697",
        },
    ),
    "zai_parameter": Wording(
        400,
        "Invalid API parameter, please check the documentation.",
        shape={"error": {"code": "1210", "message": "{message}"}},
    ),
    "glm_bridge": Wording(
        422,
        _TOO_STRICT,
        shape={
            "detail": [{"type": "string_type", "loc": ["body", "messages", "{index}", "content"], "msg": "{message}"}]
        },
    ),
    "openai": Wording(400, "Invalid content type. image_url is only supported by certain models."),
    # The next two are not about images, although they are only given when there is one: whoever takes them
    # for a rejection of the image repeats the request without it, and is answered.
    "data_policy": Wording(
        404,
        "No endpoints found matching your data policy (Paid model training). Change it in your settings.",
        shape={"error": {"message": "{message}", "code": 404}},
    ),
    "other": Wording(400, "tools.0.custom.input_schema: JSON schema is invalid"),
}


def sees(models: Models, model: str) -> str | None:
    """SEES, IGNORES, the name of the model's wording, or None for a model that is not there."""
    return next((what for pattern, what in models if fnmatchcase(model, pattern)), None)


def refusal(wording: str, part: str, index: int) -> No:
    """This wording as a refusal of the image of this type in this message."""
    said = WORDINGS[wording]
    message = said.message.format(part=part, index=index)
    shape = _filled(said.shape, {"{message}": message, "{index}": index}) if said.shape else None
    return No(said.status, message, said.kind, shape=shape)


def _filled(value: Any, blanks: Json) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, blanks) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, blanks) for inner in value]
    return blanks.get(value, value) if isinstance(value, str) else value
