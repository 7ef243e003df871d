"""The tools as a model is offered them: names, words, JSON schemas; and one door through which they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sightline.api import analysis
from sightline.api import ask as ask_file
from sightline.api.results import (
    FAULT,
    MOST_OF_A_VIDEO,
    MOST_OF_AN_IMAGE,
    Analysis,
    Envelope,
    Refused,
    Result,
    promised,
)
from sightline.api.session import UNNAMED, Door
from sightline.api.text import edit_file, read_file
from sightline.api.views import Listed, list_images, view
from sightline.model.crop import REGIONS
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.toolset import TOOLSET
from sightline.pixels.part import SIDES

DESCRIPTION = """\
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
scale them to `width` and `height` first, or take those of the `<vision_proxy_boxes>` block behind it, which are x1, \
y1, x2, y2 in pixels of the original image already."""


def properties(rectangle: Json, fractions: Json) -> dict[str, Json]:
    crop: Json = {
        "type": "object",
        "properties": {
            "image_index": {"type": "integer", "minimum": 0, "description": "Which of `images`, from 0."},
            "region": {"type": "string", "enum": list(REGIONS), "description": "A part by its name."},
            "normalized": fractions,
            "pixels": rectangle,
        },
        "required": ["image_index"],
        "additionalProperties": False,
    }
    return {
        "images": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 20,
            "description": "Each the path of an image, or sha256: and its hex digits, as a fence has it.",
        },
        "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What you want to know."},
        "model": {"type": "string", "description": "Another model that shall look, as provider/model-id."},
        "crop": {"type": "array", "items": crop, "description": "The part of an image to look at, one entry an image."},
        "reason": {"type": "string", "description": "Why you ask; it is only noted."},
    }


IMAGE = (
    "Ask one question about one image (PNG, JPEG, GIF or WebP) or one PDF, and get one answer in words, with the tokens"
    " and dollars that it cost. Exactly one of file_path, file_url and file_base64 is given. An error begins with a"
    " word like FILE_NOT_FOUND."
)
VIDEO = (
    "Ask one question about one video, and get one answer in words, with the tokens and dollars that it cost. Exactly"
    " one of file_url and file_path is given. An error begins with a word like VIDEO_NOT_SUPPORTED."
)
_PATH: Json = {"type": "string", "description": "The absolute path of the file."}
_URL: Json = {"type": "string", "description": "The public https address of the file, of at most 32 MiB."}
_MODEL: Json = {"type": "string", "description": "Who is asked instead of the usual one, as PROVIDER/MODEL."}
_SCHEMA: Json = {
    "type": "object",
    "description": "A JSON Schema whose top level is an object.",
    "properties": {"type": {"type": "string", "enum": ["object"]}},
    "required": ["type"],
}
_FORMAT: Json = {
    "type": "object",
    "description": "Ask for an answer in JSON, which then stands in `parsed`.",
    "properties": {"type": {"type": "string", "enum": ["json_schema"]}, "schema": _SCHEMA},
    "required": ["type", "schema"],
    "additionalProperties": False,
}

OF_IMAGE: Mapping[str, Json] = {
    "file_path": _PATH,
    "file_url": _URL,
    "file_base64": {"type": "string", "description": "The bytes of the file in base64, or as a data: address."},
    "prompt": {"type": "string", "description": "What you want to know."},
    "model": _MODEL,
    "format": _FORMAT,
    "fit": {
        "type": "string",
        "enum": ["auto", "never"],
        "description": "auto makes an image fit that is too large; never refuses it. As the user has set if left out.",
    },
}
OF_VIDEO: Mapping[str, Json] = {
    "file_url": _URL,
    "file_path": _PATH,
    "prompt": {"type": "string", "description": "What you want to know; a description in detail if left out."},
    "model": _MODEL,
    "method": {
        "type": "string",
        "enum": ["auto", "native", "frames"],
        "description": "native sends the video itself, frames stills of it; auto, if left out, what the model takes.",
    },
}


Outcome = Result | Listed | Analysis | Envelope


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    capabilities: tuple[str, ...]
    most_characters: int  # of its words; pixels stand beside them
    run: Callable[..., Outcome]
    with_network: str = ""  # more words where the host grants the network; without any, it is of no use to the tool
    over: str = "path"  # the argument that names what the capabilities are over
    also: Mapping[str, str] = field(default_factory=dict)  # more capabilities, each with the argument it is over
    refuse: Callable[[Refusal], Outcome] = Refused  # arguments that make no sense and faults, in its own words
    # Of a tool that asks somebody else to look, and is offered where the user's settings say who may: the provider
    # that only the user's consent keeps from being asked.
    awaits: Callable[..., str] | None = None
    always: bool = False  # also where the settings let no model ask for a look: it asks about a file of its own

    @property
    def asks(self) -> bool:
        return self.awaits is not None

    def as_dict(self, *, network: bool) -> dict[str, Json]:
        schema: dict[str, Json] = {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }
        more = self.with_network if network else ""
        capabilities = (*self.capabilities, "network") if more else self.capabilities
        return {
            "name": self.name,
            "description": self.description + more,
            "parameters": schema,
            "capabilities": {
                capability: {"argument": argument}
                for capability, argument in {**dict.fromkeys(capabilities, self.over), **self.also}.items()
            },
            "toolset": TOOLSET,
            "maxResultChars": self.most_characters,
            "outputIsUntrusted": True,
        }


def _text(words: str) -> Json:
    return {"type": "string", "description": words}


def _whole(words: str) -> Json:
    return {"type": "integer", "minimum": 1, "description": words}


def _rectangle(words: str, **bounds: Json) -> Json:
    sides: dict[str, Json] = {side: {"type": "number", **bounds} for side in SIDES}
    return {
        "type": "object",
        "description": words,
        "properties": sides,
        "required": list(SIDES),
        "additionalProperties": False,
    }


def _analyze(door: Door, **given: object) -> Analysis | Refused:
    asking = door if door.turn is not None else replace(door, turn=UNNAMED)  # a model asks: its calls are counted
    return analysis.analyze(asking, given.pop("images"), given.pop("question"), **given)


def _awaits(door: Door, **given: object) -> str:
    asking = analysis.check_tool_call(door, given.pop("images"), given.pop("question"), **given)
    return analysis.find_unagreed(door, asking)


def _refuse_analysis(refusal: Refusal) -> Refused:
    return Refused(refusal, "analyze")


def _refuse_question(refusal: Refusal) -> Refused:
    return Refused(refusal, "ask")


def _of_a_file(
    name: str,
    words: str,
    properties: Mapping[str, Json],
    required: tuple[str, ...],
    most: int,
    run: Callable[..., Outcome],
    check: Callable[..., ask_file.Ask | Refusal],
) -> Tool:
    """One question about one file, which may be at a web address."""

    def awaits(door: Door, **given: object) -> str:
        return ask_file.find_unagreed(check(door, **given))

    asked = Tool(name, words, properties, required, ("read",), most, run, over="file_path", always=True)
    return replace(asked, also={"network": "file_url"}, refuse=_refuse_question, awaits=awaits)


_CROP: Json = {
    "type": "object",
    "description": "The part of the image to see, in exactly one of these forms.",
    "properties": {
        "region": {"type": "string", "enum": list(REGIONS), "description": "A part by its name."},
        "normalized": _rectangle("Fractions of the image, from 0 to 1.", minimum=0, maximum=1),
        "pixels": _rectangle("Pixels of the image."),
    },
    "additionalProperties": False,
}

TOOLS: tuple[Tool, ...] = (
    Tool(
        "view_image",
        "See an image file as pixels. Answers with what it is and the image itself, never with text of the file: call"
        " read_file for that. An image that was seen before is seen again by the `sha256:…` that its result gave.",
        {
            "path": _text("The path of an image, or sha256: and at least 12 hex digits of one that was seen before."),
            "crop": _CROP,
            "page": _whole("The page of a document."),
            "at": {"type": "number", "minimum": 0, "description": "The second of a video."},
        },
        ("path",),
        ("read",),
        8_000,
        view,
        " The image at a public https address is seen by that address.",
    ),
    Tool(
        "read_file",
        "Read a text file. Answers with its lines and a token that edit_file asks for. An image is not read: call"
        " view_image to see it.",
        {
            "path": _text("The path of a text file."),
            "first": _whole("The line to begin with; 1 if left out."),
            "lines": _whole("How many lines to read; 2000 if left out."),
            "character": _whole("The character of that line to begin with, where a result named one to go on with."),
        },
        ("path",),
        ("read",),
        30_000,
        read_file,
    ),
    Tool(
        "edit_file",
        "Replace a text that stands exactly once in a file. It needs the token that read_file gave, and a file that"
        " has changed since has to be read again.",
        {
            "path": _text("The path of the file that was read."),
            "old": _text("The text to replace, exactly as it stands there."),
            "new": _text("What it becomes."),
            "token": _text("The token of the last read_file of this path."),
        },
        ("path", "old", "new", "token"),
        ("read", "write"),
        8_000,
        edit_file,
    ),
    Tool(
        "analyze_image",
        DESCRIPTION,
        properties(
            _rectangle("Pixels of the image."),
            _rectangle("Fractions of the image, from 0 to 1.", minimum=0, maximum=1),
        ),
        ("images", "question"),
        ("read",),
        30_000,
        _analyze,
        over="images",
        refuse=_refuse_analysis,
        awaits=_awaits,
    ),
    Tool(
        "list_images",
        "List images that were seen before and can be seen again, the newest first, each with the `sha256:…` that"
        " view_image and analyze_image take. Only those that were found in the working folder are listed, unless the"
        " user lets all be.",
        {},
        (),
        (),
        8_000,
        list_images,
    ),
    _of_a_file(
        "vision_analyze",
        IMAGE,
        OF_IMAGE,
        ("prompt",),
        MOST_OF_AN_IMAGE,
        ask_file.vision_analyze,
        ask_file.check_image_call,
    ),
    _of_a_file(
        "video_analyze",
        VIDEO,
        OF_VIDEO,
        (),
        MOST_OF_A_VIDEO,
        ask_file.video_analyze,
        ask_file.check_video_call,
    ),
)


def tools(door: Door) -> list[dict[str, Json]]:
    """Those that the setting `toolset` offers, by their own name or by that of their set."""
    return [tool.as_dict(network=door.network is not None) for tool in _offered(door).values()]


def call(door: Door, name: object, arguments: object) -> Outcome:
    """A call as a model makes it. What is not offered cannot be called."""
    tool = _offered(door).get(name) if isinstance(name, str) else None
    if tool is None:
        return Refused(Refusal("not_permitted", f"there is no tool {name!r:.60} here", "call one that is offered"))
    given = _given(tool, arguments)
    if isinstance(given, Refusal):
        return tool.refuse(given)
    return promised(tool.refuse(FAULT))(tool.run)(door, **given)


def awaited(door: Door, name: str, arguments: object) -> str:
    """The provider that only the user's consent keeps a call from asking; empty: it needs none, or fails anyway."""
    tool = _offered(door).get(name)
    given = None if tool is None else _given(tool, arguments)
    if tool is None or tool.awaits is None or not isinstance(given, dict):
        return ""
    return promised("")(tool.awaits)(door, **given)


def _given(tool: Tool, arguments: object) -> dict[str, object] | Refusal:
    if not isinstance(arguments, Mapping):
        return Refusal("invalid_input", "the arguments are not an object", "give them as its schema says")
    given = {str(argument): value for argument, value in arguments.items() if value is not None}
    wrong = [*(given.keys() - tool.properties.keys()), *(set(tool.required) - given.keys())]
    if wrong:
        what = f"{min(wrong)!r:.60} is missing or not an argument of {tool.name}"
        return Refusal("invalid_input", what, "give the arguments that its schema names")
    return given


def _offered(door: Door) -> dict[str, Tool]:
    named = (tool for tool in TOOLS if door.toolset & {TOOLSET, tool.name})
    return {tool.name: tool for tool in named if not tool.asks or _asked(door, tool)}


def _asked(door: Door, tool: Tool) -> bool:
    """Whether the user lets models ask others to look."""
    settings = door.settings
    if settings is None or tool.always:
        return settings is not None
    return settings.mode != "off" and settings.tool != "off"
