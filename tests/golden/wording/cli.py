"""What the command prints: its refusals, its answers, and the help of each verb."""

from __future__ import annotations

import json
import re
import shlex
from argparse import ArgumentParser
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from sightline.cli.main import VERBS
from tests.api.eyes import ABSENT, eyes, named
from tests.cli.command import ALONE, Ended, sightline, typed
from tests.golden.wording import Case
from tests.scripted.provider import nobody_listens

# Typed in a shell, with nobody who could look. Variables stand in front; `< FILE` gives a file on standard input.
_TYPED = """\
veiw
help veiw
dance
serve --port 99999
serve --workers 0
serve --port 0 --host 0.0.0.0
serve --port 0 --root nowhere
serve --port 0 --upstream nobody
serve --port 0 --workers 2 --upstream nobody
run -- no-such-agent
run --upstream nobody -- true
SIGHTLINE_MODE=route run -- true
run -- copilot
setup claude
setup claude --upstream nobody
setup claude --write
setup claude --upstream deepseek --write
setup claude --undo
setup cline --undo
setup pi --write
setup cline --model m --write
setup copilot --model m --write
setup copilot --model m --upstream deepseek --write
setup gemini --write
doctor --port 1
SIGHTLINE_MODEL=nobody/model doctor --port 1
view shot.png
view shot.png --crop r=top-left --out part.png
view absent.png
view empty.png
view half.png
view page.png
view things.zip
view notes.txt
view page.pdf
view clip.mp4
view .
view ../shot.png
view https://example.com/a.png
view file:///etc/hostname
view sha256:000000000000
view sha256:123
view shot.png --crop middle
view shot.png --crop p=9000,9000,1,1
view shot.png --page 2
view shot.png --at 1.5
view shot.png --out shot.png
view shot.png --out copy
view shot.png --out nowhere/copy.png
SIGHTLINE_SEER=off describe shot.png
describe absent.png
describe - -
describe shot.png absent.png
describe shot.png --question ''
describe shot.png --crop 1:r=top
describe shot.png --crop '0:r=top n=0,0,1,1'
describe shot.png --model eye
describe shot.png --model nobody/eye
describe shot.png --model openai/eye
describe shot.png --model deepseek/deepseek-v4-pro
describe shot.png --save --question why
describe shot.png other.png --overlay x.png
describe shot.png --overlay where.xyz
describe shot.png --overlay shot.png
SIGHTLINE_MODE=off describe shot.png
redescribe sha256:000000000000#crop:1,2,3,4
ask absent.png what?
ask things.zip what?
ask shot.png ''
ask shot.png what? --model eye
ask shot.png what? --schema absent.json
ask shot.png what? --schema broken.json
ask shot.png what? --schema list.json
ask http://example.com/a.png what?
ask http://127.0.0.1/a.png what?
ask https://me:secret@example.com/a.png what?
SIGHTLINE_SEER=off ask shot.png what?
video clip.mp4
video shot.png
SIGHTLINE_SEER=off video clip.mp4
vision-proxy
vision-proxy list
vision-proxy mode always
vision-proxy mode sometimes
vision-proxy dance
vision-proxy describe
vision-proxy consent
vision-proxy consent yes openai
vision-proxy consent no openai
vision-proxy consent yes nobody
vision-proxy model zai/glm-5v
vision-proxy model nope/x
vision-proxy model deepseek/deepseek-v4-pro
vision-proxy grounding-models add ollama/qwen3-vl:8b
vision-proxy grounding-models add my/own-model
vision-proxy grounding-models add openai/gpt-5
vision-proxy grounding-models remove never/there
vision-proxy grounding-models list
PI_VISION_PROXY_CACHE_SIZE=7 vision-proxy cache-size 9
prepare --wire openai_chat < empty.png
prepare --wire openai_chat < notes.txt
prepare --wire openai_chat --upstream nobody < hoisted.json
prepare --wire openai_chat --retention sometimes < hoisted.json
prepare --wire openai_chat --model gpt-6 --explain < hoisted.json
prepare --wire openai_chat --model deepseek-v4-pro --explain < hoisted.json
prepare --wire anthropic --model claude-opus-5 < hoisted.json
mcp --port 9
mcp --http --host 0.0.0.0
mcp --http --root gone
acp
acp -- no-such-agent
probe --base-url nowhere --model m
probe --base-url openai --model m
probe --base-url http://127.0.0.1:1 --model m --api-key-env MY_KEY
probe --base-url http://127.0.0.1:1 --model m --timeout -1
models list tiny
config get mood
config set mood off
config set mode sometimes
config set mode always
config set mode ''
config unset mode
config set record memory
config set seer eye
config set maxBatch 11
config set apiKey sk-1
config set retention sometimes
config set models '{"glm": {"vision": "no"}}'
SIGHTLINE_MODE=off config set mode always
SIGHTLINE_MODE=sometimes config get mode
config model m
config model nowhere/m
config model deepseek/deepseek-v4-pro
config model zai/claude-x
config model vllm/x
config forget m
config forget deepseek/m
usage
usage --receipts
usage --receipts 0
inspect --images none
inspect --export page.html
forget 0000000000000000000000000000000000000000000000000000000000000000
forget abc
forget shot.png
forget https://example.com/a.png
forget --usage abc
forget --all
SIGHTLINE_RECORD=memory forget --all
consent
consent yes
consent yes openai
consent no openai
consent yes nobody
SIGHTLINE_RECORD=memory consent yes openai"""

# With a model that looks and says this.
_BOXES = '[{"bbox_2d": [250, 250, 750, 750], "label": "middle"}, {"bbox_2d": [0, 0, 9999, 5], "label": "b"}]'
_SEEN = {
    "describe shot.png": "A red square.",
    "describe shot.png other.png": '{"bbox_2d": [250, 250, 750, 750], "label": "middle"}',
    "describe shot.png --question Where? --overlay where.png": _BOXES,
    "ask shot.png what? --schema schema.json": '{"a": null}',
}
_NAME = re.compile(r"^((?:[A-Z_]+=\S+ )*)")
_NEVER = "describe shot.png --model mine/eye-2"
_HOISTED = (
    '{"model": "m", "messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",'
    ' "function": {"name": "view", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content":'
    ' [{"type": "image_url", "image_url": {"url": "data:image/png;base64,PNG"}}]}]}'
)


def _run(line: str, folder: Path, more: dict[str, str] | None = None) -> Ended:
    picture = b64encode((folder / "small.png").read_bytes()).decode()
    (folder / "hoisted.json").write_text(_HOISTED.replace("PNG", picture))
    words = shlex.split(line)
    env = {**ALONE, "HOME": str(folder), "PATH": str(folder), "COLUMNS": "100"}
    while re.match(r"[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    given = ""
    if "<" in words:
        given, words = (folder / words[-1]).read_text(), words[: words.index("<")]
    return sightline(*words, env={**env, **(more or {})}, given=given, folder=folder)


def _show(ended: Ended) -> str:
    """Exit code and lines; of wrong usage the line that says what is wrong, since argparse writes the others."""
    errors = ended.err.splitlines()[-1:] if ended.code == 2 else ended.err.splitlines()
    out = [] if "base64" in ended.out else ended.out.splitlines()
    return "\n".join([f"exit {ended.code}", *(f"out: {line}" for line in out), *(f"err: {line}" for line in errors)])


def _typed(line: str, folder: Path) -> str:
    return _show(_run(line, folder))


def _seen(line: str, said: str, folder: Path) -> str:
    with eyes(said) as provider:
        env = named(provider, "qwen3-vl-8b")
        first = _show(_run(line, folder, env))
        return f"{first}\n-- usage\n{_show(_run('usage', folder, env))}"


def _unreached(folder: Path) -> str:
    with nobody_listens() as url:
        return _show(_run(_NEVER, folder, named(url)))


def _asked(folder: Path) -> str:
    """On a terminal, where the user says no to sending the image."""
    upstreams = {**ABSENT, "far": {"baseUrl": "http://eyes.invalid:9/v1", "apiKey": "sk-far"}}
    env = {"SIGHTLINE_UPSTREAMS": json.dumps(upstreams)}
    code, heard = typed(["describe", "shot.png", "--model", "far/eye"], b"n\n", env, folder)
    return f"exit {code}\n{heard}".replace("\r\n", "\n").replace("\r\x1b[K", "\n")


def _help(name: str, folder: Path) -> str:
    """The help of a verb, without what argparse makes of it."""
    summary, load = VERBS[name]
    verb, parser = load(), ArgumentParser(description=summary)
    verb.add_arguments(parser)
    return "\n".join([f"summary: {summary}", *_arguments(parser), f"example:\n{verb.EXAMPLE}"])


def _arguments(parser: ArgumentParser) -> Iterator[str]:
    yield f"description: {parser.description}"
    for action in parser._actions:
        if action.dest != "help":
            yield f"{', '.join(action.option_strings) or action.metavar or action.dest}: {action.help or ''}".rstrip()
        inner: Iterable[object] = action.choices.values() if isinstance(action.choices, dict) else ()
        for each in inner:
            if isinstance(each, ArgumentParser):
                yield f"-- {each.prog.split()[-1]}"
                yield from _arguments(each)


CASES: dict[str, Case] = {
    **{_NAME.sub(r"\1sightline ", line): partial(_typed, line) for line in _TYPED.splitlines()},
    **{f"with a model that looks: sightline {line}": partial(_seen, line, said) for line, said in _SEEN.items()},
    "on a terminal: sightline describe shot.png --model far/eye": _asked,
    f"with a model that is not there: sightline {_NEVER}": _unreached,
    **{f"sightline {name} --help": partial(_help, name) for name in VERBS},
}
