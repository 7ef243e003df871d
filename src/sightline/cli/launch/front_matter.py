"""The front matter of Markdown files in which an agent of opencode names its model.

opencode reads it with gray-matter: YAML between lines of `---`, or another language that the first line names, of
which one runs code. There is no YAML parser here. What could hide the word `model` from a search (escapes, anchors,
tags, keys with a question mark, another language) counts as naming a model that is not known.
"""

from __future__ import annotations

import re

UNKNOWN = "that cannot be read here"
_matter = re.compile(r"\A\ufeff?---(?!-)([^\r\n]*)(.*?)(?:\n---|\Z)", re.DOTALL)
_hides = re.compile(r"\\(?:[xuU]|\r?\n)|(?:^|[\s{\[,:?-])(?:[&*!](?=[\w<!])|\?(?=\s))", re.MULTILINE)
_model = re.compile(r"""\bmodel["']?\s*:\s*["']?([^\s"',}#]*)""")


def find_model(text: str) -> str:
    """Return the provider of the model that a Markdown file names, `UNKNOWN` if that is uncertain, or nothing."""
    found = _matter.match(text)
    if found is None:
        return ""
    language, matter = found[1].strip(), found[2]
    providers = {model.partition("/")[0] for model in _model.findall(matter)} - {""}
    if language not in ("", "yaml") or _hides.search(matter) or len(providers) > 1:
        return UNKNOWN
    return next(iter(providers), "")
