"""Tools of ours among those that a model may call, by the names that clients give them."""

from __future__ import annotations

import re

from sightline.model.scene import Scene

_of_server = re.compile(r"(?:.*[._:/-])?sightline(?:__|[._:/-])(?P<name>\w+)").fullmatch


def called(scene: Scene, tool: str) -> str | None:
    """What a tool of ours is called here: as we offer it, or as a client names it that has it of our MCP server."""
    if tool in scene.ours:
        return tool
    likely = [name for name in scene.tools if "sightline" in name]  # of which there are none in most requests
    return min((name for name in likely if (found := _of_server(name)) and found["name"] == tool), default=None)
