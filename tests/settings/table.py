"""The table of docs/settings.md, made from the settings themselves.

python -m tests.settings.table    # prints it
"""

from __future__ import annotations

import json

from sightline.settings import KEYS, Setting

HEADER = (
    "| key | default | allowed | meaning | environment, the first that is set | command |",
    "|---|---|---|---|---|---|",
)


def row(key: Setting) -> str:
    default = "not set" if key.default == "" else f"`{json.dumps(key.default)}`".replace('"', "")
    variables = ", ".join(f"`{name}`" for name in key.variables)
    cells = (f"`{key.name}`", default, key.kind.allowed, key.meaning, variables)
    return "| " + " | ".join([*cells, f"`sightline config set {key.name} VALUE`"]) + " |"


def table() -> str:
    return "\n".join([*HEADER, *map(row, KEYS)])


if __name__ == "__main__":
    print(table())
