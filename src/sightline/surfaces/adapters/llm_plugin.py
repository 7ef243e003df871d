"""A plugin of the program `llm`: its models can call the perception tools.

    llm -T view_image "What is wrong in screenshot.png?"

`llm` has no hook for messages, so tools are all that a plugin can bring; it sends their images itself.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import PerceptionTool, list_perception_tools, read_image_part

with require_hook("llm"):
    from llm import Attachment, Tool, ToolOutput, hookimpl


@hookimpl
def register_tools(register: Callable[[Tool], None]) -> None:
    for tool in list_perception_tools(None):
        register(
            Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.parameters,
                implementation=partial(_run, tool),
            )
        )


def _run(tool: PerceptionTool, /, **arguments: Any) -> ToolOutput:
    texts, attachments = [], []
    for part in tool.run(**arguments):
        if (image := read_image_part(part)) is not None:
            attachments.append(Attachment(type=image[0], content=base64.b64decode(image[1])))
        else:
            texts.append(part["text"])
    return ToolOutput(output="\n".join(texts), attachments=attachments)
