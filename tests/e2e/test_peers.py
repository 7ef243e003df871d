"""What is emitted here is read by the packages of the providers themselves, and by a peer's converters."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.golden.captures import Capture, captures, payloads
from tests.golden.preparing import Desk
from tests.requirements import requirement
from tests.vision.test_wires import BOTH, PDF, SCHEMA, VIDEO, put

ROOT = Path(__file__).parents[2]
JUDGE = Path(__file__).parent / "peers" / "judge.py"
WITH_IMAGES = [capture for capture in captures() if any(payloads(capture.body))]


def verdicts(cases: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What the peers find wrong with each body, by its name."""
    home = subprocess.run([ROOT / "scripts" / "peers-env"], capture_output=True, text=True, check=True).stdout.strip()
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    judged = subprocess.run(
        [Path(home) / "bin" / "python", JUDGE], input=lines, capture_output=True, text=True, check=False, timeout=300
    )
    assert judged.returncode == 0, judged.stderr[-2000:]
    found = [json.loads(line) for line in judged.stdout.splitlines() if line.startswith('{"name"')]
    return {verdict["name"]: verdict["faults"] for verdict in found}


@requirement("wire.peers")
@pytest.mark.parametrize("hoist", [False, True], ids=["by wire", "hoisted"])
@pytest.mark.parametrize("sees", [True, False], ids=["seeing", "blind"])
async def test_every_body_is_parsed_by_the_providers_package_and_by_a_peer(*, sees: bool, hoist: bool) -> None:
    async def emitted(capture: Capture) -> Any:
        return await Desk(sees=sees, hoist=hoist).sent(capture.body, capture.wire, capture.path)

    def case(capture: Capture, kind: str, body: Any) -> dict[str, Any]:
        return {"name": f"{capture.wire.name} {capture.name} {kind}", "wire": capture.wire.name, "body": body}

    cases = [case(capture, "before", capture.body) for capture in WITH_IMAGES]
    cases += [case(capture, "after", await emitted(capture)) for capture in WITH_IMAGES]
    found = verdicts(cases)
    assert found.keys() == {each["name"] for each in cases}
    # What a client sent may be odd already; nothing that was read before may be refused afterwards.
    spoilt = {
        name: faults
        for name, faults in found.items()
        if faults and name.endswith(" after") and not found[name.replace(" after", " before")]
    }
    assert spoilt == {}
    assert sum(not faults for faults in found.values()) > len(found) * 3 // 4, "the peers hardly read anything"


@requirement("seer.wires")
def test_seer_requests_are_parsed_by_the_providers_own_package() -> None:
    whole = replace(BOTH, attachments=(PDF,), max_tokens=99)
    films = replace(whole, attachments=(PDF, VIDEO))
    cases = [
        {"name": "anthropic", "wire": "anthropic", "body": put("anthropic", whole)},
        {"name": "openai_chat", "wire": "openai_chat", "body": put("openai_chat", replace(whole, schema=SCHEMA))},
        {"name": "openai_responses", "wire": "openai_responses", "body": put("openai_responses", whole)},
        {"name": "gemini", "wire": "gemini", "body": put("gemini", replace(films, schema=SCHEMA))},
    ]
    assert verdicts(cases) == {case["name"]: [] for case in cases}
