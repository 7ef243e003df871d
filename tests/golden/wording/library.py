"""What the library's functions refuse, warn of and note, and the grammar of /vision-proxy behind them."""

from __future__ import annotations

import asyncio
import io
import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

import sightline
from sightline.api import Failure, Session
from sightline.api.body_preparation import PreparedBody
from sightline.commands import NAME
from sightline.commands.grammar import parse
from sightline.dial import HttpClient
from sightline.model.fence import to_one_line
from sightline.net import parse_web_address
from sightline.settings import KEYS, load_settings
from tests.api.bad import BAD, keep_two_that_begin_alike
from tests.api.eyes import eyes, named
from tests.commands.test_commands import BAD as MALFORMED
from tests.golden.wording import Case
from tests.scripted.faults import Fail, Fault, Garble, Page, Reset
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import nobody_listens
from tests.wire.bodies import block, body, calling, part, result, text, tool, user

Call = tuple[str, dict[str, Any]]

_CALLS: tuple[Call, ...] = (
    ("view_image", {}),
    ("view_image", {"path": 7}),
    ("view_image", {"path": "shot.png", "zoom": 2}),
    ("view_image", {"path": "shot.png", "crop": {"pixels": {"x": 9e9}}}),
    ("read_file", {"path": "absent.txt"}),
    ("read_file", {"path": "shot.png"}),
    ("edit_file", {"path": "notes.txt", "old": "absent", "new": "b"}),
    ("nothing", {}),
    ("analyze_image", {"images": ["shot.png"], "question": " "}),
    ("analyze_image", {"images": ["shot.png"], "question": "q" * 4001}),
    ("analyze_image", {"images": [], "question": "?"}),
    ("analyze_image", {"images": "shot.png", "question": "?"}),
    ("analyze_image", {"images": ["shot.png"] * 11, "question": "?"}),
    ("analyze_image", {"images": ["shot.png", "absent.png"], "question": "?"}),
    ("analyze_image", {"images": [7], "question": "?"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": {"image_index": 0}}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": [7]}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": [{"image_index": 1, "region": "top"}]}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": [{"image_index": 0}]}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": [{"image_index": 0, "region": "middle"}]}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "crop": [{"image_index": 0, "region": "top"}] * 2}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": 7}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": "eye-1"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": "nobody/eye"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": "openai/eye"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": "deepseek/deepseek-v4-pro"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "reason": 7}),
    ("analyze_image", {"images": ["shot.png"], "question": "?"}),
    ("vision_analyze", {"prompt": "?"}),
    ("vision_analyze", {"prompt": "?", "file_path": "shot.png"}),
    ("vision_analyze", {"prompt": "?", "file_path": "/nowhere/a.png"}),
    ("vision_analyze", {"prompt": "?", "file_base64": "%%%"}),
    ("vision_analyze", {"prompt": "?", "file_url": "http://example.com/a.png"}),
    ("vision_analyze", {"prompt": "?", "file_url": "https://127.0.0.1/a.png"}),
    ("vision_analyze", {"prompt": "?", "file_url": "https://example.com:22/a.png"}),
    ("vision_analyze", {"prompt": "?", "file_path": "FOLDER/shot.png", "format": {"type": "yaml"}}),
    ("vision_analyze", {"prompt": "?", "file_path": "FOLDER/shot.png", "fit": "sometimes"}),
    ("vision_analyze", {"prompt": "?", "file_path": "FOLDER/shot.png", "model": "openai/stone"}),
    ("vision_analyze", {"prompt": "?", "file_path": "FOLDER/page.pdf", "model": "deepseek/deepseek-v4-pro"}),
    ("video_analyze", {"file_path": "FOLDER/clip.mp4", "method": "slides"}),
    ("video_analyze", {"file_path": "FOLDER/shot.png"}),
)

_SETTINGS: Mapping[str, str] = {
    "mode": "sometimes",
    "maxBatch": "11",
    "pHashSimilarityThreshold": "1.1",
    "baseUrl": "ftp://example.com",
    "models": '{"glm": {"vision": "no"}}',
    "groundingModels": '{"qwen": {"format": "furlongs"}}',
    "toolset": '{"vision": true}',
    "fsReach": '["relative"]',
    "imageCapability": '{"maxBytes": "5 MB"}',
    "upstreams": '{"work": {"baseUrl": "nowhere"}}',
    "retention": "sometimes",
}

_ADDRESSES = (
    "http://example.com/",
    "https://me:secret@example.com/",
    "https://example.com:22/",
    "https://127.0.0.1/",
    "https://169.254.169.254/",
    "https://metadata.google.internal/",
    "https:///a.png",
    "https://a..b/",
)

_TROUBLES: Mapping[str, tuple[Fault, ...]] = {
    "its key is refused": (Fail(401),),
    "no such model": (Fail(404),),
    "the request is refused": (Fail(400),),
    "it is busy": (Fail(429, 0),) * 2,
    "it resets the connection": (Reset(),) * 2,
    "it speaks no HTTP": (Garble(),) * 2,
    "it answers with a page": (Page(),) * 2,
}


def _message(found: Any) -> str:
    if not isinstance(found, Failure):
        return f"done: {type(found).__name__}"
    told = found.as_dict()
    return f"{told['code']}: {told['error']}" if "error" in told else f"{told['reason']}: {told['message']}"


def _views(folder: Path) -> str:
    """Every bad source of an image."""
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    record = Session().tool_context.record
    keep_two_that_begin_alike(record, record.compute_scope(""))
    said = {name: _message(sightline.view(bad.reference(work))) for name, bad in BAD.items() if "link" not in name}
    return "\n".join(f"{name}: {message}" for name, message in said.items())


def _calls(folder: Path) -> str:
    """Bad calls of each tool, where nobody could look."""
    os.environ["SIGHTLINE_SEER"] = "off"
    lines = []
    for name, arguments in _CALLS:
        given = {key: value.replace("FOLDER", str(folder)) if isinstance(value, str) else value
                 for key, value in arguments.items()}  # fmt: skip
        shown = f"{name} {arguments}".replace("q" * 4001, "q…").replace("'shot.png', " * 10, "'shot.png', …, ")
        lines += [shown, f"  {_message(sightline.call(name, given))}"]
    return "\n".join(lines)


def _commands(folder: Path) -> str:
    return "\n".join(f"{typed}\n  {parse(f'{NAME} {typed}')}" for typed in MALFORMED)


def _settings(folder: Path) -> str:
    """Values that no setting takes: the warning where a file has them, and what a command answers."""
    lines = []
    for name, value in _SETTINGS.items():
        variable = next(key.variables[0] for key in KEYS if key.name == name)
        home = {"SIGHTLINE_HOME": str(folder / "home")}
        lines += [
            f"{name} {value}",
            *(f"  warning: {line}" for line in load_settings({**home, variable: value}).warnings),
        ]
        lines.append(f"  {load_settings(home).save(name, value)}")
    odd = load_settings({"SIGHTLINE_HOME": str(folder / "home"), "SIGHTLINE_CONFIG": "vision-proxy.json"})
    return "\n".join([*lines, "SIGHTLINE_CONFIG vision-proxy.json", *(f"  warning: {line}" for line in odd.warnings)])


def _addresses(folder: Path) -> str:
    return "\n".join(f"{address}\n  {parse_web_address(address)}" for address in _ADDRESSES)


def _troubles(folder: Path) -> str:
    """What is said of a model that was asked and did not answer."""
    lines = []
    for name, faults in _TROUBLES.items():
        with eyes("words", faults=[*faults]) as provider:
            os.environ.update(named(provider, SIGHTLINE_CACHE_SIZE="0"))
            lines.append(f"{name}: {_message(sightline.analyze('shot.png', f'What? {name}'))}")
    with nobody_listens() as url:
        lines.append(f"it is not there: {asyncio.run(HttpClient().ask('GET', url, {}, b'', 9))}")
    return "\n".join(lines)


def _prepared(request: Any, wire: str, options: dict[str, Any]) -> str:
    done = sightline.prepare(request, wire=wire, **options)
    if not isinstance(done, PreparedBody):
        return _message(done)
    lines = [f"  {line.place}: {line.fate}: {line.why}" for line in done.receipt.sights]
    said = [f"  reads: {to_one_line(words)}" for words in _words(done.body) if words.startswith("[")]
    return "\n".join([str(done.receipt), *lines, *said])


def _words(held: Any) -> list[str]:
    match held:
        case str():
            return [held]
        case dict():
            return [words for each in held.values() for words in _words(each)]
        case list():
            return [words for each in held for words in _words(each)]
    return []


def _animate() -> bytes:
    """Return a GIF of two frames."""
    file = io.BytesIO()
    frames = [Pillow.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def _bodies(folder: Path) -> str:
    """What becomes of images in requests, and why: the receipt, and what a model reads in their place."""
    os.environ.update(SIGHTLINE_SEER="off", SIGHTLINE_MODELS='{"blind-1": {"vision": false}}')
    shot = b64encode((folder / "shot.png").read_bytes()).decode()
    wide = b64encode(paint_quadrants(some_colours(1), (9000, 40))).decode()
    half, page = (b64encode((folder / name).read_bytes()[:30]).decode() for name in ("half.png", "page.png"))
    use: Any = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": str(folder / "shot.png")}}
    old: list[Any] = [
        user(text("look")),
        {"role": "assistant", "content": [use]},
        user(result("c1", block(shot))),
        {"role": "assistant", "content": "I see"},
        user(text("go on")),
    ]
    foreign: Any = {"type": "image", "data": shot, "mimeType": "image/png"}
    moving = b64encode(_animate()).decode()
    link: Any = {"type": "image", "source": {"type": "url", "url": "https://127.0.0.1/a.png"}}
    file: Any = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    damaged: Any = {**tool("c1"), "content": (folder / "shot.png").read_bytes().decode("utf-8", "replace")}
    cases: Mapping[str, tuple[Any, str, dict[str, Any]]] = {
        "as it is": (body(user(part(shot))), "openai_chat", {"model": "gpt-6"}),
        "moved": (body(calling("c1"), tool("c1", part(shot))), "openai_chat", {"model": "gpt-6"}),
        "converted": (body(user(foreign)), "anthropic", {"model": "claude-opus-5-5"}),
        "animated": (body(user(part(moving, "image/gif"))), "openai_chat", {"model": "gpt-6"}),
        "too wide": (body(user(block(wide))), "anthropic", {"model": "claude-opus-5-5"}),
        "declared wrongly": (body(user(block(shot, "image/jpeg"))), "anthropic", {"model": "claude-opus-5-5"}),
        "half an image": (body(user(block(half))), "anthropic", {"model": "claude-opus-5-5"}),
        "an HTML page": (body(user(block(page))), "anthropic", {"model": "claude-opus-5-5"}),
        "bytes as damaged text": (body(calling("c1"), damaged), "openai_chat", {"model": "gpt-6"}),
        "broken base64": (body(user(block("%%%%"))), "anthropic", {"model": "claude-opus-5-5"}),
        "nobody to look": (body(user(part(shot))), "openai_chat", {"model": "blind-1", "upstream": "vllm"}),
        "a link": (body(user(link)), "anthropic", {"model": "deepseek-v4-pro", "upstream": "deepseek"}),
        "a file of the provider": (body(user(file)), "anthropic", {"model": "deepseek-v4-pro", "upstream": "deepseek"}),
        "retired": (body(*old, tools=[{"name": "Read"}]), "anthropic", {"model": "claude-5", "retention": "turns:0"}),
        "no JSON": (b"{", "anthropic", {}),
        "no such wire": ({}, "telegraph", {}),
        "no such upstream": ({}, "mcp", {"upstream": "nobody"}),
        "no such retention": ({}, "mcp", {"retention": "sometimes"}),
    }
    return "\n".join(f"-- {name}\n{_prepared(*case)}" for name, case in cases.items())


def _described(folder: Path) -> str:
    """What a model that takes no images reads in the place of two."""
    pictures = [b64encode((folder / name).read_bytes()).decode() for name in ("shot.png", "other.png")]
    with eyes("A red square.") as provider:
        os.environ.update(named(provider, SIGHTLINE_MODELS='{"blind-1": {"vision": false}}'))
        request = body(user(*(part(each) for each in pictures), text("which?")))
        done = sightline.prepare(request, wire="openai_chat", model="blind-1")
        assert isinstance(done, PreparedBody)
        told = "\n".join(_words(done.body))
        asked = [exchange.body.decode() for exchange in provider.exchanges]
    return "\n".join([str(done.receipt), told, f"asked {len(asked)} times"])


CASES: dict[str, Case] = {
    "view: bad sources": _views,
    "call: bad calls": _calls,
    "analyze: a model that does not answer": _troubles,
    "prepare: bodies": _bodies,
    "prepare: descriptions": _described,
    "/vision-proxy: malformed commands": _commands,
    "settings: values out of range": _settings,
    "addresses that are not read": _addresses,
}
