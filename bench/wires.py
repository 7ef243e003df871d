"""What it costs to find, decide on and rewrite the images of a body, compared with a hash of the same bytes."""

import json
import random
import statistics
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bodies
import orjson
import report
from blake3 import blake3

from sightline.engine.inline_images import probe_inline
from sightline.model.facts import (
    CompareFile,
    ConversationHistory,
    Facts,
    Keep,
    KeptImage,
    Need,
    Probe,
    RecallHistory,
    Retention,
    Rules,
)
from sightline.model.profile import Profile, ToolImagePlacement
from sightline.model.scene import InlineSource, Json, Message, Retired, Scene, Shown, Sight, ToolCall
from sightline.passes import decide
from sightline.profiles.profile_lookup import look_up_profile
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from sightline.wire.json_document import lift

MB = 1_000_000
TARGET = 1.8  # times BLAKE3, for 20 MB in 512 messages
MANY = 99_000  # messages, nearly as many as the proxy reads
Make = Callable[[int, int], bytes]  # a body of so many bytes with so many images
TOKEN = "sightline-0123456789abcdef-"
WORDS = "The build finished and every test passed, so the next step is to look at the page itself. " * 8


def build_picture(size: int, seed: int) -> str:
    """Return base64 of a PNG header and noise; it is never decoded here."""
    start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x02\0\0\0\0\0\0\0\x7f\xff\xff\xffIDAT"
    return b64encode(start + random.Random(seed).randbytes(size * 3 // 4 - len(start))).decode()


def dump_compact(body: Json) -> bytes:
    """Return a body as JSON without spaces, as nearly all clients write it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def add_spaces(make: Make) -> Make:
    """Return a builder of the same body with spaces, as Python's `json` writes it by default."""
    return lambda total, images: json.dumps(json.loads(make(total, images))).encode()


def build_messages_body(total: int, images: int) -> bytes:
    """Return a conversation on the Messages wire whose images are in tool results."""
    turns: list[Any] = []
    for n in range(images):
        use = {"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {"file_path": f"/home/me/{n}.png"}}
        source = {"type": "base64", "media_type": "image/png", "data": build_picture(total // images, n)}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": [{"type": "image", "source": source}]}
        turns += [
            {"role": "user", "content": [{"type": "text", "text": f"{n}: {WORDS}"}]},
            {"role": "assistant", "content": [{"type": "text", "text": WORDS}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": WORDS}]},
        ]
    return dump_compact({"model": "claude-opus-5-5", "stream": True, "messages": turns})


def build_chat_body(total: int, images: int) -> bytes:
    """Return the same on the Chat Completions wire, where every image has to be moved."""
    turns: list[Any] = []
    for n in range(images):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "/home/me/{n}.png"}}'},
        }
        url = f"data:image/png;base64,{build_picture(total // images, n)}"
        turns += [
            {"role": "user", "content": f"{n}: {WORDS}"},
            {"role": "assistant", "content": WORDS, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": [{"type": "image_url", "image_url": {"url": url}}]},
            {"role": "assistant", "content": WORDS},
        ]
    return dump_compact({"model": "gpt-6", "stream": True, "messages": turns})


def build_responses_body(total: int, images: int) -> bytes:
    """Return the same on the Responses wire, where calls and messages are separate items."""
    items: list[Any] = []
    for n in range(images):
        url = f"data:image/png;base64,{build_picture(total // images, n)}"
        call = {"call_id": f"c{n}", "name": "read", "arguments": f'{{"path": "/home/me/{n}.png"}}'}
        items += [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{n}: {WORDS}"}]},
            {"type": "function_call", **call},
            {"type": "function_call_output", "call_id": f"c{n}", "output": [{"type": "input_image", "image_url": url}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": WORDS * 2}]},
        ]
    return dump_compact({"model": "gpt-6", "stream": True, "input": items})


def build_gemini_body(total: int, images: int) -> bytes:
    """Return the same on the Gemini wire, where an image is inside a function response."""
    contents: list[Any] = []
    for n in range(images):
        blob = {"inlineData": {"mimeType": "image/png", "data": build_picture(total // images, n)}}
        call = {"functionCall": {"id": f"c{n}", "name": "read", "args": {"path": f"/home/me/{n}.png"}}}
        response = {"id": f"c{n}", "name": "read", "response": {"output": "read"}, "parts": [blob]}
        contents += [
            {"role": "user", "parts": [{"text": f"{n}: {WORDS}"}]},
            {"role": "model", "parts": [{"text": WORDS}, call]},
            {"role": "user", "parts": [{"functionResponse": response}]},
            {"role": "model", "parts": [{"text": WORDS}]},
        ]
    return dump_compact({"contents": contents})


ORDINARY = ((5 * MB, 4), (20 * MB, 16))
CROWDED = ((5 * MB, 16), (20 * MB, 64), (20 * MB, 128))
# Each wire with its usual way; and where images may stay in results, with that in which they all have to leave them.
CASES: list[tuple[str, Wire, Make, ToolImagePlacement, tuple[tuple[int, int], ...]]] = [
    ("Messages", ANTHROPIC, build_messages_body, "native", ORDINARY + CROWDED),
    ("Chat Completions", OPENAI_CHAT, build_chat_body, "hoist", ORDINARY + CROWDED),
    ("Responses", OPENAI_RESPONSES, build_responses_body, "native", ORDINARY + CROWDED),
    ("Gemini", GEMINI, build_gemini_body, "native", ORDINARY + CROWDED),
    ("Messages", ANTHROPIC, build_messages_body, "hoist", ORDINARY),
    ("Responses", OPENAI_RESPONSES, build_responses_body, "hoist", ORDINARY),
    ("Gemini", GEMINI, build_gemini_body, "hoist", ORDINARY),
    ("Chat Completions, with blanks", OPENAI_CHAT, add_spaces(build_chat_body), "hoist", ORDINARY),
]


def handle_body(body: bytes, wire: Wire, rules: Rules) -> int:
    """Find, judge, rewrite, and name every image; the length of what goes out."""
    document = lift(body, TOKEN)
    assert document is not None
    scene = wire.read(document.tree, document)
    decided = decide_all(scene, rules)
    for sight in decided.sights:
        assert isinstance(sight.source, InlineSource)
        assert sight.source.key
    return sum(map(len, document.splice(wire.lower(decided, document.tree, rules.profile))))


def decide_all(scene: Scene, rules: Rules) -> Scene:
    """Decide about all sights, with what the engine reads of every image before it asks the passes."""
    inlines = [sight.source for sight in scene.sights if isinstance(sight.source, InlineSource)]
    decided = decide(scene, Facts(infos={image: probe_inline(image) for image in inlines}), rules)
    assert isinstance(decided, Scene)
    return decided


def measure_cpu(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU time, the median of several rounds."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) * 1000)
    return statistics.median(times)


def measure_bodies(rounds: int) -> list[dict[str, Any]]:
    rows = []
    for (name, wire, make, how), (total, images) in ((case[:4], size) for case in CASES for size in case[4]):
        body = make(total, images)
        rules = Rules(Profile("up", wire.name, "m", vision=True, tool_images=how), retention=Retention(is_off=True))
        handle_body(body, wire, rules)
        hashed, done = [], []
        for _ in range(rounds):  # interleaved, so that both meet the same machine
            hashed.append(measure_cpu(lambda body=body: blake3(body).digest(), 3))
            done.append(measure_cpu(lambda body=body, wire=wire, rules=rules: handle_body(body, wire, rules), 3))
        rows.append({
            "wire": name, "way": how, "mb": total // MB, "images": images, "messages": 4 * images,
            "blake3_ms": statistics.median(hashed), "ours_ms": statistics.median(done),
            "ratio": statistics.median(done) / statistics.median(hashed),
        })  # fmt: skip
    return rows


def measure_retention(rounds: int) -> float:
    """Milliseconds for the passes alone on 200 images that a tool has read, one a step, retention as it comes."""
    inlines = [InlineSource("image/png", build_picture(2000, n).encode()) for n in range(200)]
    said = (
        Message("user", opens_turn=True),
        *(each for _ in inlines for each in (Message("assistant"), Message("tool"))),
    )
    sights = tuple(
        Sight(("messages", 2 * n + 2, "content", 0), each, "tool", ToolCall(f"c{n}", "read", f"/{n}.png"), 2 * n + 2)
        for n, each in enumerate(inlines)
    )
    scene = Scene("claude-opus-5-5", sights, messages=said, tools=frozenset({"read"}))
    rules = Rules(look_up_profile("anthropic", "anthropic", scene.model))
    facts = Facts()
    while not isinstance(outcome := decide(scene, facts, rules), Scene):
        facts = facts.with_facts({need: _answer_known(need, len(said)) for need in outcome.needs})
    assert any(isinstance(sight.fate, Retired) for sight in outcome.sights)
    return measure_cpu(lambda: decide(scene, facts, rules), rounds * 20)


def _answer_known(need: Need, messages: int) -> Any:
    match need:
        case RecallHistory():
            return ConversationHistory((300,) * messages, head_tokens=20_000)
        case Keep(image=image):
            return KeptImage("0" * 64, probe_inline(image))
        case CompareFile():
            return True
        case Probe(image=image):
            return probe_inline(image)
        case _:
            raise AssertionError(need)


def measure_decisions(rounds: int) -> float:
    """Milliseconds for the passes alone on 200 sights whose facts are known."""
    inlines = [InlineSource("image/png", build_picture(2000, n).encode()) for n in range(200)]
    scene = Scene("m", tuple(Sight(("messages", n, "content", 0), inlines[n], "user") for n in range(200)))
    rules = Rules(Profile("up", "anthropic", "m", vision=True), retention=Retention(is_off=True))
    facts = Facts(infos={each: probe_inline(each) for each in inlines})
    outcome = decide(scene, facts, rules)
    assert isinstance(outcome, Scene)
    assert outcome.sights[0].fate == Shown()
    return measure_cpu(lambda: decide(scene, facts, rules), rounds * 20)


def judge_ratio(row: dict[str, Any]) -> str:
    """Return whether a row meets its target; only the longest bodies have one."""
    if row["messages"] < 512:
        return "–"
    return f"≤ {TARGET:g}x: {'met' if row['ratio'] <= TARGET else 'MISSED'}"


def run(rounds: int, file: Path) -> None:
    rows, alone, retained = measure_bodies(rounds), measure_decisions(rounds), measure_retention(rounds)
    many = bodies.build_many_messages_body(MANY)
    parsed = measure_cpu(lambda: orjson.loads(many), rounds)
    lines = [
        "| wire | tool images | body | images | messages | blake3 | find, judge, rewrite, name | ratio | target |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['wire']} | {row['way']} | {row['mb']} MB | {row['images']} | {row['messages']} "
            f"| {row['blake3_ms']:.2f} ms | {row['ours_ms']:.2f} ms | {row['ratio']:.2f}x | {judge_ratio(row)} |"
            for row in rows
        ),
        "",
        f"`decide` on 200 sights: {alone:.2f} ms; on 200 that tools have read, with retention: {retained:.2f} ms.",
        f"To parse {MANY:,} messages is one call of orjson, which holds the interpreter's lock: {parsed:.0f} ms.",
        "",
    ]
    facts = {"rounds": rounds, "machine": report.describe_machine(), "bodies": rows}
    facts |= {"decide_200_ms": alone, "retain_200_ms": retained, "parse_many_ms": parsed}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    file.with_suffix(".md").write_text(report.write_introduction(rounds) + "\n".join(lines), "utf-8")
    sys.stdout.write("\n".join(lines))
