"""The tools that are offered to models, by name, and the name of their set."""

from __future__ import annotations

TOOLSET = "vision"
TOOL_NAMES = (
    "view_image",
    "read_file",
    "edit_file",
    "analyze_image",
    "list_images",
    "vision_analyze",
    "video_analyze",
)
