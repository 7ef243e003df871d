"""The verbs of `/vision-proxy …`, and how each is written."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.commands.values import SETTINGS
from sightline.settings.keys import Key
from sightline.settings.kinds import FLAG

NAME = "/vision-proxy"


def _allowed(key: Key) -> str:
    return "on|off" if key.kind is FLAG else key.kind.allowed.replace(", ", "|")


USAGE: Mapping[str, str] = {
    "describe": '<path-or-hash>... [--question "<text>"] [--crop <i>:<form>]... [--model <provider/model-id>] [--save]'
    ", <form> being r=<region>, n=<x>,<y>,<w>,<h> or p=<x>,<y>,<w>,<h>",
    "redescribe": "<path-or-hash> [--model <provider/model-id>]",
    "consent": "[list | yes [<provider>] | no [<provider>]]",
    "model": "<provider/model-id> | local",
    **{verb: _allowed(key) for verb, key in SETTINGS.items()},
    "grounding-models": "add <provider/model-id> [--format <fmt>] [--yes] | remove <provider/model-id> | list | reset",
    "list": "",
    "status": "",
}


def usage(verb: str) -> str:
    return f"{NAME} {verb} {USAGE[verb]}".strip()
