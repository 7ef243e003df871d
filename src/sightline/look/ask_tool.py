"""`vision_analyze` and `video_analyze` as a model is offered them."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.model.scene import Json

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
