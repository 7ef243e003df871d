"""The tools that models are offered: their names, descriptions and JSON schemas; and the calls that models make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sightline.api import analysis
from sightline.api import ask as ask_file
from sightline.api.failure import INTERNAL_ERROR, Failure, FailureKind, never_raise
from sightline.api.question_arguments import CallDetails, refuse_file_question, refuse_question
from sightline.api.session import ToolContext
from sightline.api.text_files import edit_file, read_file
from sightline.api.tool_results import (
    IMAGE_ANSWER_CHARACTERS,
    VIDEO_ANSWER_CHARACTERS,
    Analysis,
    FileAnswer,
    FileEdit,
    FileText,
    ImageList,
    View,
)
from sightline.api.views import list_images, view
from sightline.model.geometry import CROP_SIDES, REGIONS
from sightline.model.refusal import Refusal
from sightline.model.scene import TOOLSET_NAME, Json
from sightline.vision.concurrency import UNNAMED_TURN

_ANALYZE_DESCRIPTION = """\
Use `analyze_image` when (a) the cached description of an image lacks a detail you need, (b) you need to compare or \
cross-reference multiple images, or (c) you need to focus on a specific region.

**Cropping.** Three forms, in order of preference:

- **`region`** — coarse cut by name. Use when you don't have exact dimensions: \
`{ image_index: 0, region: "bottom-right" }`.
- **`normalized`** — fractional coordinates 0.0–1.0. Default choice for precise crops without knowing image \
dimensions: `{ image_index: 0, normalized: { x: 0.5, y: 0.5, width: 0.4, height: 0.4 } }`.
- **`pixels`** — absolute pixels. Use only when you have authoritative coordinates from a prior \
`<vision_proxy_description>` or `<vision_proxy_analysis>` (which carry `width` and `height` attributes) or from a \
previous grounded response. Example: `{ image_index: 0, pixels: { x: 1840, y: 120, width: 840, height: 360 } }`.

Image dimensions and filenames are available in the `width`, `height`, and `filename` attributes of \
`<vision_proxy_description>`, `<vision_proxy_analysis>`, and `<vision_proxy_joint_description>` blocks in your context.

When a crop is applied, the response fence carries a `crop_origin` attribute (e.g. `crop_origin="1840,120"`). Add the \
origin's x to any returned x-coordinate and the origin's y to any returned y-coordinate to map coordinates back to the \
original full image.

The tool result is authoritative for the specific question asked; the cached generic description remains the default \
for everything else.

When a fence ends with `sent` (e.g. `sent="1316x728"`), pixel coordinates in its body are in an image of that size: \
scale them to `width` and `height` first, or use those in the `<vision_proxy_boxes>` block after it, which are x1, \
y1, x2, y2 in pixels of the original image already."""


def _text_property(words: str) -> Json:
    return {"type": "string", "description": words}


def _count_property(words: str) -> Json:
    return {"type": "integer", "minimum": 1, "description": words}


def _rectangle_property(words: str, **bounds: Json) -> Json:
    sides: dict[str, Json] = {side: {"type": "number", **bounds} for side in CROP_SIDES}
    return {
        "type": "object",
        "description": words,
        "properties": sides,
        "required": list(CROP_SIDES),
        "additionalProperties": False,
    }


_CROP_FORMS: Mapping[str, Json] = {
    "region": {"type": "string", "enum": list(REGIONS), "description": "A named part of the image."},
    "normalized": _rectangle_property("Fractions of the image, from 0 to 1.", minimum=0, maximum=1),
    "pixels": _rectangle_property("Pixels of the image."),
}
_VIEW_CROP: Json = {
    "type": "object",
    "description": "The part of the image to see, in exactly one of these forms.",
    "properties": {**_CROP_FORMS},
    "additionalProperties": False,
}
_ANALYSIS_CROP: Json = {
    "type": "object",
    "properties": {
        "image_index": {"type": "integer", "minimum": 0, "description": "Index of the image in `images`, from 0."},
        **_CROP_FORMS,
    },
    "required": ["image_index"],
    "additionalProperties": False,
}
_ANALYSIS_PROPERTIES: Mapping[str, Json] = {
    "images": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": 20,
        "description": "Each a path, or sha256: and the hex digits that a fence gives.",
    },
    "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What you want to know."},
    "model": _text_property("Another vision model to ask, as provider/model-id."),
    "crop": {
        "type": "array",
        "items": _ANALYSIS_CROP,
        "description": "Which part of an image to look at, one entry per image.",
    },
    "reason": _text_property("Why you ask; it is only recorded."),
}
_IMAGE_DESCRIPTION = (
    "Ask one question about one image (PNG, JPEG, GIF or WebP) or one PDF, and get one answer in words, with the tokens"
    " and dollars that it cost. Give exactly one of file_path, file_url and file_base64. An error begins with a code"
    " such as FILE_NOT_FOUND."
)
_VIDEO_DESCRIPTION = (
    "Ask one question about one video, and get one answer in words, with the tokens and dollars that it cost. Give"
    " exactly one of file_url and file_path. An error begins with a code such as VIDEO_NOT_SUPPORTED."
)
_PATH = _text_property("The absolute path of the file.")
_URL = _text_property("The public https address of the file, of at most 32 MiB.")
_MODEL = _text_property("The model to ask instead of the configured one, as PROVIDER/MODEL.")
_SCHEMA: Json = {
    "type": "object",
    "description": "A JSON Schema whose top level is an object.",
    "properties": {"type": {"type": "string", "enum": ["object"]}},
    "required": ["type"],
}
_FORMAT: Json = {
    "type": "object",
    "description": "Ask for an answer in JSON, which is returned in `parsed`.",
    "properties": {"type": {"type": "string", "enum": ["json_schema"]}, "schema": _SCHEMA},
    "required": ["type", "schema"],
    "additionalProperties": False,
}

_IMAGE_PROPERTIES: Mapping[str, Json] = {
    "file_path": _PATH,
    "file_url": _URL,
    "file_base64": _text_property("The bytes of the file in base64, or as a data: address."),
    "prompt": _text_property("What you want to know."),
    "model": _MODEL,
    "format": _FORMAT,
    "fit": {
        "type": "string",
        "enum": ["auto", "never"],
        "description": "auto shrinks an image that is too large, never refuses it. Default: the user's setting.",
    },
}
_VIDEO_PROPERTIES: Mapping[str, Json] = {
    "file_url": _URL,
    "file_path": _PATH,
    "prompt": _text_property("What you want to know. Default: a detailed description."),
    "model": _MODEL,
    "method": {
        "type": "string",
        "enum": ["auto", "native", "frames"],
        "description": "native sends the video, frames sends stills of it, auto (the default) what the model takes.",
    },
}


ToolResult = View | FileText | FileEdit | ImageList | Analysis | FileAnswer | Failure


# Any public host: each address is checked when it is fetched.
_CAPABILITY_DETAILS: Mapping[str, dict[str, Json]] = {"network": {"allowedHosts": ["*"]}}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what a model reads about it, and the function that runs its calls."""

    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    capabilities: tuple[str, ...]
    max_characters: int  # of the text of a result; pixels come beside it
    run: Callable[..., ToolResult]
    # Added to the description where the host grants the network; empty: the tool has no use for it.
    network_description: str = ""
    renders: bool = False  # documents, too, where the host grants that
    main_argument: str = "path"  # the argument that the capabilities are about
    other_capabilities: Mapping[str, str] = field(default_factory=dict)  # each with the argument that it is about
    kind: FailureKind = "view"  # how its failures are reported
    # For a tool that asks a model: returns the provider that needs only the user's consent to answer.
    find_missing_consent: Callable[..., str] | None = None
    is_always_offered: bool = False  # even where the settings let no model ask about images

    @property
    def asks_model(self) -> bool:
        """Whether calls are answered by another model, which the user's settings have to permit."""
        return self.find_missing_consent is not None

    def as_dict(self, *, network: bool, render: bool) -> dict[str, Json]:
        schema: dict[str, Json] = {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }
        more = self.network_description if network else ""
        granted = [name for name, holds in (("render", render and self.renders), ("network", more)) if holds]
        return {
            "name": self.name,
            "description": self.description + more,
            "parameters": schema,
            "capabilities": {
                capability: {"argument": argument, **_CAPABILITY_DETAILS.get(capability, {})}
                for capability, argument in {
                    **dict.fromkeys((*self.capabilities, *granted), self.main_argument),
                    **self.other_capabilities,
                }.items()
            },
            "toolset": TOOLSET_NAME,
            "maxResultChars": self.max_characters,
            "outputIsUntrusted": True,
        }


def _analyze(context: ToolContext, **given: object) -> Analysis | Failure:
    # Calls of a model are counted.
    asking = context if context.turn is not None else replace(context, turn=UNNAMED_TURN)
    return analysis.analyze(asking, given.pop("images"), given.pop("question"), **given)


def _find_analysis_consent(context: ToolContext, **given: object) -> str:
    asking = analysis.check_tool_call(context, given.pop("images"), given.pop("question"), **given)
    return analysis.find_missing_consent(context, asking)


def _build_file_tool(
    name: str,
    words: str,
    properties: Mapping[str, Json],
    required: tuple[str, ...],
    max_characters: int,
    run: Callable[..., ToolResult],
    check: Callable[..., ask_file.FileQuestion | Refusal],
) -> Tool:
    """Return a tool for one question about one file, which may be at a web address."""

    def find_consent(context: ToolContext, **given: object) -> str:
        return ask_file.find_missing_consent(check(context, **given))

    return Tool(
        name,
        words,
        properties,
        required,
        ("read",),
        max_characters,
        run,
        main_argument="file_path",
        other_capabilities={"network": "file_url"},
        kind="ask",
        find_missing_consent=find_consent,
        is_always_offered=True,
    )


TOOLS: tuple[Tool, ...] = (
    Tool(
        "view_image",
        "See an image file as pixels. Returns what it is and the image itself, never the text of a file: call read_file"
        " for that. To see an image again, give the `sha256:…` of its result as the path.",
        {
            "path": _text_property(
                "The path of an image, or sha256: and at least 12 hex digits of one that was seen before."
            ),
            "crop": _VIEW_CROP,
            "page": _count_property("The page of a document."),
            "at": {"type": "number", "minimum": 0, "description": "The time in a video, in seconds."},
        },
        ("path",),
        ("read",),
        8_000,
        view,
        " The path can also be the public https address of an image.",
        renders=True,
    ),
    Tool(
        "read_file",
        "Read a text file. Returns its lines and a token for edit_file. It doesn't read images: call view_image to see"
        " one.",
        {
            "path": _text_property("The path of a text file."),
            "first": _count_property("The first line to read. Default: 1."),
            "lines": _count_property("How many lines to read. Default: 2000."),
            "character": _count_property(
                "The first character of that line to read, if a result says where to continue."
            ),
        },
        ("path",),
        ("read",),
        30_000,
        read_file,
    ),
    Tool(
        "edit_file",
        "Replace a text that occurs exactly once in a file. It needs the token that read_file returned; a file that has"
        " changed since then must be read again.",
        {
            "path": _text_property("The path of the file that was read."),
            "old": _text_property("The text to replace, exactly as it is in the file."),
            "new": _text_property("What it becomes."),
            "token": _text_property("The token of the last read_file of this path."),
        },
        ("path", "old", "new", "token"),
        ("read", "write"),
        8_000,
        edit_file,
    ),
    Tool(
        "analyze_image",
        _ANALYZE_DESCRIPTION,
        _ANALYSIS_PROPERTIES,
        ("images", "question"),
        ("read",),
        30_000,
        _analyze,
        main_argument="images",
        renders=True,
        kind="analyze",
        find_missing_consent=_find_analysis_consent,
    ),
    Tool(
        "list_images",
        "List images that were seen before and can be seen again, the newest first, each with the `sha256:…` that"
        " view_image and analyze_image take. Only images from the working folder are listed, unless the user allows"
        " all.",
        {},
        (),
        (),
        8_000,
        list_images,
    ),
    _build_file_tool(
        "vision_analyze",
        _IMAGE_DESCRIPTION,
        _IMAGE_PROPERTIES,
        ("prompt",),
        IMAGE_ANSWER_CHARACTERS,
        ask_file.vision_analyze,
        ask_file.check_image_call,
    ),
    _build_file_tool(
        "video_analyze",
        _VIDEO_DESCRIPTION,
        _VIDEO_PROPERTIES,
        (),
        VIDEO_ANSWER_CHARACTERS,
        ask_file.video_analyze,
        ask_file.check_video_call,
    ),
)


def list_tools(context: ToolContext) -> list[dict[str, Json]]:
    """Return the tools that the setting `toolset` offers, by their own names or by that of the whole set."""
    network, render = context.network is not None, context.renderers is not None
    return [tool.as_dict(network=network, render=render) for tool in _find_offers(context).values()]


@never_raise(Failure(INTERNAL_ERROR))
def call_tool(context: ToolContext, name: object, arguments: object) -> ToolResult:
    """Run a model's call. Only a tool that is offered can be called."""
    tool = _find_offers(context).get(name) if isinstance(name, str) else None
    if tool is None:
        return Failure(
            Refusal("not_permitted", f"there is no tool {name!r:.60}", "call one of the tools that are offered")
        )
    given = _check_arguments(tool, arguments)
    if isinstance(given, Refusal):
        return _refuse_arguments(context, tool, arguments if isinstance(arguments, Mapping) else {}, given)
    return never_raise(Failure(INTERNAL_ERROR, tool.kind))(tool.run)(context, **given)


def _refuse_arguments(context: ToolContext, tool: Tool, given: Mapping[str, object], refusal: Refusal) -> Failure:
    """Refuse wrong arguments. Those of a tool that asks a model are noted, too."""
    if tool.kind == "ask":
        return refuse_file_question(context, tool.name, given.get("prompt"), refusal)
    if tool.kind == "analyze":
        images, question, crop, reason = (given.get(name) for name in ("images", "question", "crop", "reason"))
        return refuse_question(context, CallDetails(images, question, crop, reason, from_model=True), refusal)
    return Failure(refusal)


def find_missing_consent(context: ToolContext, name: str, arguments: object) -> str:
    """Return the provider that needs only the user's consent to answer; empty: none does, or the call fails anyway."""
    tool = _find_offers(context).get(name)
    given = None if tool is None else _check_arguments(tool, arguments)
    if tool is None or tool.find_missing_consent is None or not isinstance(given, dict):
        return ""
    return never_raise("")(tool.find_missing_consent)(context, **given)


def _check_arguments(tool: Tool, arguments: object) -> dict[str, object] | Refusal:
    if not isinstance(arguments, Mapping):
        return Refusal("invalid_input", "the arguments must be an object", "follow the schema of the tool")
    given = {str(argument): value for argument, value in arguments.items() if value is not None}
    remedy = "follow the schema of the tool"
    if unknown := given.keys() - tool.properties.keys():
        return Refusal("invalid_input", f"{tool.name} has no argument {min(unknown)!r:.60}", remedy)
    if missing := set(tool.required) - given.keys():
        return Refusal("invalid_input", f"the argument {min(missing)!r} of {tool.name} is missing", remedy)
    return given


def _find_offers(context: ToolContext) -> dict[str, Tool]:
    named = (
        tool
        for tool in TOOLS
        if context.toolset & {TOOLSET_NAME, tool.name} and (context.can_edit or "write" not in tool.capabilities)
    )
    return {tool.name: tool for tool in named if not tool.asks_model or _may_ask(context, tool)}


def _may_ask(context: ToolContext, tool: Tool) -> bool:
    """Return whether the user lets models ask about images."""
    settings = context.settings
    if settings is None or tool.is_always_offered:
        return settings is not None
    return settings.mode != "off" and settings.tool != "off"
