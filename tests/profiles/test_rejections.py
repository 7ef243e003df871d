"""Every known wording of an image's rejection, and errors that are about something else."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import ImageLimits
from sightline.profiles import MIB
from sightline.profiles.rejections import (
    REJECTION_REASONS,
    WORDINGS,
    Rejection,
    RejectionKind,
    extract_sentences,
    parse_rejection,
)
from tests.requirements import requirement

REJECTIONS: list[tuple[int, str, RejectionKind, ImageLimits]] = [
    (
        400,
        "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 5649924 bytes > 5242880 bytes",
        "bytes",
        ImageLimits(encoded_bytes=5_242_880),
    ),
    (
        400,
        "image exceeds 10 MB maximum: 11,000,000 bytes > 10,485,760 bytes",
        "bytes",
        ImageLimits(encoded_bytes=10_485_760),
    ),
    (400, "Image size 5.2MB exceeds the limit of 4MB per image", "bytes", ImageLimits(encoded_bytes=4 * MIB)),
    (400, "The image is too large", "bytes", ImageLimits()),
    (400, "Unexpected role 'user' after role 'tool'", "tool_order", ImageLimits()),
    (
        400,
        "At least one of the image dimensions exceed max allowed size: 8000 pixels",
        "edge",
        ImageLimits(edge=8000),
    ),
    (400, "Image width 9000 exceeds the maximum of 8192 pixels", "edge", ImageLimits(edge=8192)),
    (
        400,
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        "crowd_edge",
        ImageLimits(crowd=20, crowd_edge=2000),
    ),
    (
        400,
        "request contains 98 images, exceeding the maximum of 50 allowed per request",
        "count",
        ImageLimits(count=50),
    ),
    (
        400,
        "Too many images in request: 11 images provided, but the model supports a maximum of 10 images.",
        "count",
        ImageLimits(count=10),
    ),
    (400, "Too many images provided. This model supports up to 5 images", "count", ImageLimits(count=5)),
    (400, "Too much media: 0 document pages + 101 images > 100", "count", ImageLimits(count=100)),
    (400, "At most 2 image(s) may be provided in one request.", "count", ImageLimits(count=2)),
    (
        400,
        "this model only supports one image while more than one image requested",
        "count",
        ImageLimits(count=1),
    ),
    (400, "messages.0.content.1: Could not process image", "undecodable", ImageLimits()),
    (400, "Unable to process input image. Please retry or report", "undecodable", ImageLimits()),
    (400, "The image data you provided does not represent a valid image.", "undecodable", ImageLimits()),
    (400, "cannot identify image file <_io.BytesIO object>", "undecodable", ImageLimits()),
    (400, "Provided image is not valid.", "undecodable", ImageLimits()),
    (500, "Failed to load image or audio file", "undecodable", ImageLimits()),
    (400, "Unsupported image.", "undecodable", ImageLimits()),
    (400, "invalid image input", "undecodable", ImageLimits()),
    (400, "image: unknown format", "undecodable", ImageLimits()),
    (400, "messages.2.content.0.image.source.base64: image cannot be empty", "undecodable", ImageLimits()),
    (400, "Unsupported image type: image/avif", "format", ImageLimits()),
    (400, "Unsupported media type for base64 image: image/avif", "format", ImageLimits()),
    (400, "[1210][图片输入格式/解析错误]", "unclear", ImageLimits()),
    (400, "Invalid API parameter, please check the documentation.", "unclear", ImageLimits()),
    (400, "Image does not match the provided media type image/png", "media_type", ImageLimits()),
    (
        400,
        "specified using the image/jpeg media type, but the image appears to be a image/png image",
        "media_type",
        ImageLimits(),
    ),
    (
        400,
        "messages.0.content.1.image: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        "format",
        ImageLimits(),
    ),
    (
        400,
        "Input should be 'image/jpeg' or 'image/png'",
        "format",
        ImageLimits(formats=("image/png", "image/jpeg")),
    ),
    (
        400,
        "Expected a base64-encoded data URL with an image MIME type but got unsupported MIME type 'x/y'",
        "format",
        ImageLimits(),
    ),
    (
        400,
        "You uploaded an unsupported image. Make sure it is of one the following formats: ['png', 'jpg'].",
        "format",
        ImageLimits(formats=("image/png", "image/jpeg")),
    ),
    (
        400,
        "Unsupported MIME type: image/gif",
        "format",
        ImageLimits(formats=("image/png", "image/jpeg", "image/webp")),
    ),
    (400, "Image format heic is not supported", "format", ImageLimits()),
    (400, "Multimodal function responses are not supported for this model", "tool_images", ImageLimits()),
    (422, "Input should be a valid string", "tool_images", ImageLimits()),
    (400, "Input should be a valid string (ref: a9065c14-5a11-4d60)", "tool_images", ImageLimits()),
    (
        400,
        (
            "'messages.3' : for 'role:tool' the following must be satisfied"
            "[('messages.3.content' : value must be a string)]"
        ),
        "tool_images",
        ImageLimits(),
    ),
    (413, "Request Entity Too Large", "request", ImageLimits()),
    (413, "", "request", ImageLimits()),
    (400, "request_too_large", "request", ImageLimits()),
    (
        413,
        "Request exceeds the maximum allowed number of bytes",
        "request",
        ImageLimits(),
    ),
    (413, "request body exceeds 32 MB", "request", ImageLimits(request_bytes=32 * MIB)),
    (
        400,
        "The image is too large to send natively by this provider (9.1 MB request; 5.0 MB limit)",
        "request",
        ImageLimits(request_bytes=5 * MIB),
    ),
    (400, "The provided image is too large to process", "bytes", ImageLimits()),
    (400, "Image is larger than the maximum allowed size", "bytes", ImageLimits()),
    (400, "The size of the image exceeds the allowed limit", "bytes", ImageLimits()),
    (400, "image_url: image too big", "bytes", ImageLimits()),
    (
        400,
        "Invalid type for 'messages[0].content': expected a string, but got an array instead.",
        "tool_images",
        ImageLimits(),
    ),
    (400, "messages.2.content must be a string", "tool_images", ImageLimits()),
    (400, "Image too large", "bytes", ImageLimits()),
    (400, "Image too large: 900000 bytes > 500000 bytes", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "Image too large (max 500,000 bytes)", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "Image too large. Maximum size is 500 KB", "bytes", ImageLimits(encoded_bytes=512_000)),
    (400, "Image file size 900000 is above the maximum of 500000", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "image size 900000 exceeds limit of 500000 bytes", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "The image exceeds 500,000 bytes", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "Maximum image size is 500000 bytes", "bytes", ImageLimits(encoded_bytes=500_000)),
    (400, "Image too large: 20000000 > 16000000 pixels", "bytes", ImageLimits()),
    (400, "Base64 image is too large", "bytes", ImageLimits()),
    (400, "Image too large. Please resize it", "bytes", ImageLimits()),
    (400, "图片过大", "bytes", ImageLimits()),
    (400, "images are too large", "bytes", ImageLimits()),
    (400, "图片大小超过限制", "bytes", ImageLimits()),
    (400, "One or more images are too big", "bytes", ImageLimits()),
    (400, "The image is too big", "bytes", ImageLimits()),
    (400, "payload image too big: reduce its size", "bytes", ImageLimits()),
    (400, "image file size exceeds limit", "bytes", ImageLimits()),
    (400, "input image too large", "bytes", ImageLimits()),
    (400, "Image resolution is too high", "bytes", ImageLimits()),
    (400, "Maximum allowed image size exceeded", "bytes", ImageLimits()),
    (
        400,
        "messages.2.content.0.tool_result.content.1: Input tag 'image' found using 'type' does not match",
        "tool_images",
        ImageLimits(),
    ),
    (400, "Image file is too big", "bytes", ImageLimits()),
    (400, "Maximum image size exceeded", "bytes", ImageLimits()),
    (400, "The picture is too large", "bytes", ImageLimits()),
    (400, "The image data is too large", "bytes", ImageLimits()),
    (400, "Image size exceeds the limit", "bytes", ImageLimits()),
    (400, "Image dimensions are too large", "bytes", ImageLimits()),
    (400, "image is too large", "bytes", ImageLimits()),
    (400, "Image exceeds the maximum allowed size", "bytes", ImageLimits()),
    (400, "Image size too large", "bytes", ImageLimits()),
    (400, "image payload exceeds maximum size", "bytes", ImageLimits()),
    (400, "Image resolution too high", "bytes", ImageLimits()),
    (400, "Total image size too large", "bytes", ImageLimits()),
    (400, "screenshot too large", "bytes", ImageLimits()),
    (400, "The uploaded image exceeds the maximum size", "bytes", ImageLimits()),
]

BLIND = [
    (400, "Image input modality is not available for models/x"),
    (400, "image content is not allowed for this model"),
    (400, "unknown content part type: image_url"),
    (404, "No endpoints found that support image input"),
    (
        400,
        "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text` at",
    ),
    (400, "Model do not support image input"),
    (400, "DeepSeek native does not support 'image' blocks"),
    (400, "this model does not support image input (ref 2f3a)"),
    (500, "image input is not supported by this server"),
    (
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    ),
    (500, 'Unsupported content part type: "image_url"'),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "Model does not support images. Please use a model that does."),
    (400, "<LM Studio error> Vision model is not loaded. Cannot process images."),
    (400, "This model doesn't support the image content block that you provided."),
    (400, "facebook/opt-125m is not a multimodal model None"),
    (400, "At most 0 image(s) may be provided in one prompt."),
    (400, 'model "gpt-x" not supported for vision'),
    (400, "Image input is not enabled for this model"),
    (400, "Images are not supported by this model."),
    (400, "message type 'image_url' is not supported for model 'glm-5'"),
    (400, "This model only supports text input"),
    (400, "The model does not have vision capabilities"),
    (400, "当前模型不支持图片输入"),
    (400, "Image input modality is not enabled for models/gemma-3-1b-it"),  # Google
    (400, "The model is not a VLM (Vision Language Model). Please use text-only prompts."),  # SiliconFlow
    (400, "messages.content.type 参数非法，取值范围 ['text']"),  # GLM
    (400, "messages[0].content[1].type参数非法，取值范围 ['text']"),
    (500, "this model is missing data required for image input"),  # Ollama
    (400, "<400> InternalError.Algo.InvalidParameter: Unexpected item type in content."),  # DashScope
    (
        400,
        (
            "'messages.0' : for 'role:user' the following must be satisfied"
            "[('messages.0.content' : value must be a string)]"
        ),
    ),  # Groq
    (400, "This model doesn't support the image field for user messages. Remove the image field and try again."),
    (422, "unknown variant `input_image`, expected `input_text`"),
    (400, "Content type 'image_url' is not supported by this model"),
    (400, "glm-5.2 is not a multi-modal model"),
    (400, "this model does not support image input (ref: b8bd630e)"),
    (400, "Modality image is not supported for this endpoint"),
    (400, "Input should be 'text'"),
    (400, 'Unsupported content part type: "image_url"'),
    (400, "Unsupported modality: image"),
    (400, "unknown variant `image`, expected one of `text`"),
    (400, "input tag 'image' found using 'type' does not match any of the expected tags: 'text'"),
    (400, "This model is text-only"),
    (400, "unknown variant `image_url`, expected one of `text`, `refusal`"),
    (400, "Invalid value: 'input_image'. Supported values are: 'input_text'."),
    (400, "Input tag 'image_url' found using 'type' does not match any of the expected tags: 'text'"),
    (
        400,
        "Input tag 'image' found using 'type' does not match any of the expected tags: 'text', 'tool_use'",
    ),
    (400, "model only supports text modality"),
    (400, "No available provider supports image inputs"),
    (400, "No endpoints support image input"),
    (400, "Unsupported input modality: image"),
    (400, "The model does not support input modalities: image"),
    (400, "Unsupported input type: image"),
    (400, "vision is not available for this model"),
    (400, "multimodal data provided, but model does not support multimodal requests"),
    (400, "Image content is not supported for this model"),
    (400, "Model does not support images. Please use a model that does"),
    (400, "input modality 'image' is not supported"),
    (400, "None of the providers for this model support images"),
    (400, "unknown variant `image`, expected one of `text`, `tool_use`"),
    (400, "unknown variant `input_image`, expected one of `input_text`, `input_file`"),
    (400, "content type image is not supported"),
    (400, "image modality is not supported by this model"),
    (400, "No model endpoints support image modality"),
    (400, "Invalid value: 'image_url'. Supported values are: 'text'."),
    (400, "The requested model does not support the input modality: image"),
    (400, "This endpoint only accepts text"),
    (400, "unsupported input modality: image"),
    (400, "Image input is disabled for this deployment"),
    (400, "Image content blocks are not permitted for this model"),
    (400, "Model 'x' has no vision capability"),
    (400, "The requested model does not have image understanding"),
    (400, "Multimodal content is not supported for text models"),
    (422, "Input validation error: this model only accepts text content"),
    (400, "messages[0].content[1].type: must be 'text'"),
]

ORDINARY = [
    (400, "Image input is disabled for this user until the account is verified"),
    (400, "The project has no vision board"),
    (400, "messages[0].content[1].type: must be 'text' or 'image_url'"),
    (400, "this model only accepts text content or images in base64"),
    (400, "messages.content.type 参数非法，取值范围 ['text', 'image_url']"),
    (404, "No endpoints found matching your data policy (Free model publication)"),
    (404, "No endpoints found that support image input and match your data policy"),
    (404, "No endpoints found that support tool use"),
    (400, "prompt is too long: 205000 tokens > 200000 maximum"),
    (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000"),
    (413, "Request too large for model `x` on tokens per minute (TPM): Limit 8000, Requested 9000"),
    (401, "invalid x-api-key"),
    (
        403,
        "Kimi For Coding is currently only available for Coding Agents. This model does not support images",
    ),
    (429, "Rate limit reached for images: request too large, 5 MB limit"),
    (529, "Overloaded"),
    (500, "Internal server error"),
    (400, "messages.0.content.1.text.text: Input should be a valid string"),
    (400, "tools.0.custom.input_schema: JSON schema is invalid. It must match draft 2020-12"),
    (400, "tools.3.function.description: 'Use it when the model does not support images.' is too long"),
    (400, "Invalid schema for function 'view_image': 'image' is not of type 'object'"),
    (400, "Missing required parameter: 'messages[0].content[1].image_url.url'"),
    (400, "This model does not support image generation"),
    (400, "This model does not support image URLs; send base64"),
    (400, "URL images are not supported"),
    (400, "images are not supported in tool results"),
    (400, "The request holds an invalid API parameter: temperature"),
    (404, "The model `image-reader` does not exist"),
    (400, "messages: text content blocks must be non-empty"),
    (400, "tool_choice: value must be a string"),
    (400, "messages.0.name: value must be a string"),
    (400, "max_tokens: 5242880 > 64000, which is the maximum allowed"),
    (200, ""),
    (400, "tools.0: unsupported input modality: image"),
    (400, "output modality image is not supported"),
    (400, "Invalid value: 'image'. Supported values are: 'input_text', 'input_image', and 'input_file'."),
    (400, "No model endpoints support image output modality"),
    (400, "Input should be 'text' or 'image'"),
    (400, "unsupported modality: audio, supported: text, image"),
    (400, "Input tag 'image' found using 'type' does not match any of the expected tags: 'text', 'image_url'"),
    (400, "The image model is too big a change for this account"),
    (400, "The tool result is too large"),
    (400, "the number of images is fine but the file is too large"),
    (400, "The prompt is too large"),
    (400, "The number of images exceeds the limit"),
    (400, "图片数量超过限制"),
    (400, "Unsupported output modality: image"),
    (400, "unknown variant `image`, expected one of `text`, `image_url`"),
    (400, "image generation is not supported"),
    (400, "unsupported input modality: audio"),
    (400, "unknown variant `image_gen`, expected one of `text`"),
    (400, "Input tag 'video' found using 'type' does not match any of the expected tags: 'text', 'image'"),
    (400, "No endpoints found matching your data policy for image models"),
    (400, "max_tokens is too large"),
    (400, "Your account exceeds the maximum allowed size"),
    (400, "Image generation exceeds the maximum allowed number of requests"),
    (400, "Request too large for model on tokens per minute (TPM): Limit 30000"),
]


@requirement("recover.wordings")
@pytest.mark.parametrize(("status", "text", "kind", "limits"), REJECTIONS)
def test_a_rejection_is_recognised(status: int, text: str, kind: RejectionKind, limits: ImageLimits) -> None:
    found = parse_rejection(status, text)
    assert found is not None
    assert found.kind == kind
    assert found.lesson.limits == limits
    assert found.lesson.why == REJECTION_REASONS[kind]
    assert not found.lesson.blind


@requirement("recover.wordings")
@pytest.mark.parametrize(("status", "text"), BLIND)
def test_only_kind_blind_teaches_blindness(status: int, text: str) -> None:
    found = parse_rejection(status, text)
    assert found is not None
    assert (found.kind, found.lesson.blind, found.lesson.limits) == ("blind", True, ImageLimits())


@requirement("recover.not_images")
@pytest.mark.parametrize(("status", "text"), ORDINARY)
def test_an_ordinary_error_teaches_nothing(status: int, text: str) -> None:
    assert parse_rejection(status, text) is None


def test_every_wording_decides_a_case() -> None:
    texts = [text for _, text, _, _ in REJECTIONS] + [text for _, text in BLIND]
    decisive = {next((each for each in WORDINGS if each.search(text)), None) for text in texts}
    assert [each.pattern for each in WORDINGS if each not in decisive] == []


def anthropic(message: str) -> str:
    return json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "r"}
    )


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "anthropic": anthropic,
    "openai": lambda text: json.dumps({"error": {"message": text, "type": "invalid_request_error"}}),
    "ascii": lambda text: json.dumps({"error": text}, ensure_ascii=True),
    "fastapi": lambda text: json.dumps({"detail": text}),
    "nested": lambda text: json.dumps(
        {"error": {"message": "Provider returned error", "metadata": {"raw": anthropic(text)}}}
    ),
    "nested twice": lambda text: json.dumps({"error": {"message": json.dumps({"raw": anthropic(text)})}}),
    "prefixed": lambda text: f"Error: 400 {anthropic(text)}\n at generate (/x:1:2)",
    "prefixed inside": lambda text: json.dumps({"error": {"message": f"Upstream said: {anthropic(text)}"}}),
    "python": lambda text: json.dumps({"error": f'AnthropicException - b\'{{"message": "{text}"}}\''}),
    "stream": lambda text: f"event: error\ndata: {anthropic(text)}\n\n",
}


@requirement("recover.wordings")
@pytest.mark.parametrize(("status", "text"), [(s, t) for s, t, *_ in REJECTIONS] + BLIND)
def test_a_wrapped_rejection_says_the_same(status: int, text: str) -> None:
    same = parse_rejection(status, text)
    found = {name: parse_rejection(status, wrap(text)) for name, wrap in WRAPPINGS.items()}
    assert found == dict.fromkeys(WRAPPINGS, same)


@pytest.mark.parametrize(("status", "text"), ORDINARY)
def test_a_wrapped_ordinary_error_teaches_nothing(status: int, text: str) -> None:
    found = {name: parse_rejection(status, wrap(text)) for name, wrap in WRAPPINGS.items()}
    assert found == dict.fromkeys(WRAPPINGS)


@requirement("recover.places")
@pytest.mark.parametrize(
    ("named", "places"),
    [
        ("messages.3.content.1.image.source.base64.data", [("messages", 3, "content", 1)]),
        (
            "messages.168.content.0.tool_result.content.1.image.source.base64",
            [("messages", 168, "content", 0, "content", 1)],
        ),
        ("'messages[3].content[1].image_url.url'", [("messages", 3, "content", 1)]),
        ("'input[37].content[0].image_url'", [("input", 37, "content", 0)]),
        ("input[5].output[2].image_url", [("input", 5, "output", 2)]),
        ("contents[0].parts[1].inline_data", [("contents", 0, "parts", 1)]),
        ("messages.[0].content.[1].type", [("messages", 0, "content", 1)]),
        (
            "messages.1.content.2.image, messages.3.content.0.image, messages.1.content.2.image",
            [("messages", 1, "content", 2), ("messages", 3, "content", 0)],
        ),
        ("messages[1]", []),
        ("messages.4.content", []),
        ("nowhere", []),
    ],
)
def test_the_named_images_are_found(named: str, places: list[tuple[str | int, ...]]) -> None:
    found = parse_rejection(400, anthropic(f"{named}: Could not process image"))
    assert found
    assert list(found.paths) == places


def test_a_location_may_be_beside_the_message() -> None:
    body = {"error": {"message": "Could not process image", "param": "messages.[0].content.[1].type"}}
    found = parse_rejection(400, json.dumps(body))
    assert found
    assert found.paths == (("messages", 0, "content", 1),)


def test_a_validators_location_comes_before_its_message() -> None:
    def body(*loc: str | int) -> str:
        return json.dumps({"detail": [{"loc": loc, "msg": "Input should be a valid string", "input": []}]})

    found = parse_rejection(422, body("body", "messages", 3, "content", "str"))
    assert found
    assert found.kind == "tool_images"
    assert parse_rejection(422, body("body", "model")) is None


def test_request_text_quoted_in_an_error_teaches_nothing() -> None:
    quoted = "The model does not support image input"
    body = {"detail": [{"msg": "Field required", "loc": ["body", "model"], "input": {"text": quoted}}]}
    assert parse_rejection(422, json.dumps(body)) is None
    assert parse_rejection(400, json.dumps({"error": "bad request", "request": {"messages": [quoted]}})) is None


def test_a_deeply_nested_error_is_read_in_part() -> None:
    assert parse_rejection(400, '{"a":' * 30_000) is None
    assert parse_rejection(400, "[" * 60_000) is None
    assert extract_sentences('{"a": "shallow", "b": ' + '{"a":' * 40 + '"deep"' + "}" * 41) == ("shallow",)


@given(st.integers(100, 599), st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_rejection_or_none(status: int, text: str) -> None:
    found = parse_rejection(status, text)
    assert found is None or isinstance(found, Rejection)


@given(
    st.integers(200, 599),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["loc", "msg"]), inner),
    ),
)
def test_any_json_is_a_rejection_or_none(status: int, body: object) -> None:
    found = parse_rejection(status, json.dumps(body))
    assert found is None or isinstance(found, Rejection)
