"""What is said where reading is not enough: nothing has failed, and a model that sees could answer."""

from __future__ import annotations

from sightline.model.refusal import Refusal

HELP = (
    "`sightline vision-proxy model PROVIDER/MODEL` names a model that sees, `ollama pull qwen3-vl` brings one to this"
    " machine; asked for a description, all the text is given"
)
NO = Refusal("unavailable", "only text and shapes were read here, and they do not answer this question", HELP)
UNLOOKED = Refusal("unavailable", "parts, tables and charts are not looked for in a photograph", HELP)
