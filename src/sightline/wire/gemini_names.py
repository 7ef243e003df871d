"""The fields of Gemini's wire, whose names are taken in two styles."""

from __future__ import annotations

from sightline.model.scene import Json

Names = tuple[str, str]  # of one field, in either style
DATA = ("inlineData", "inline_data")
FILE = ("fileData", "file_data")
MIME = ("mimeType", "mime_type")
URI = ("fileUri", "file_uri")
NAME = ("displayName", "display_name")
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
DECLARED = ("functionDeclarations", "function_declarations")
CACHED = ("cachedContent", "cached_content")
COUNTED = ("generateContentRequest", "generate_content_request")


def key_of(holder: Json, names: Names) -> str:
    """The name under which a block has a field; the usual one, if it has none."""
    camel, snake = names
    return snake if isinstance(holder, dict) and snake in holder and camel not in holder else camel


def under(holder: Json, names: Names) -> Json:
    if not isinstance(holder, dict):
        return None
    camel, snake = names
    return holder[camel] if camel in holder else holder.get(snake)
