"""What a seer request uses of its client: user agent and credential, which are stored nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proxy.clients import ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.faults import Fail
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import deepseek

PICTURE = paint_quadrants(some_colours(3))
SECRET = "sk-nobody-may-read-this-4711"


@requirement("seer.user_agent")
@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_a_seer_request_has_the_clients_user_agent(tmp_path: Path, wire: str) -> None:
    headers = {"User-Agent": "an-agent/1.2 (a coding tool)"}
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        base = f"{proxy.url}/u/deepseek"
        if wire == "anthropic":
            ask_messages(base, "deepseek-v4-pro", pasted_message(PICTURE), extra_headers=headers)
        else:
            ask_chat(base, "deepseek-v4-pro", pasted_chat(PICTURE), extra_headers=headers)
        (look,) = provider.asked("deepseek-flash")
        assert look.header("user-agent") == ["an-agent/1.2 (a coding tool)"]


@requirement("settings.key_never")
def test_a_client_s_key_is_in_no_log_receipt_or_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "sightline")
    faults = [Fail(model="deepseek-flash", status=401, words=f"the key {SECRET} is no good")]
    with deepseek(faults=faults) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        for colours in (1, 2):
            told = pasted_chat(paint_quadrants(some_colours(colours)))
            ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", told, key=SECRET)
        sent = b"".join(exchange.body for exchange in provider.asked("deepseek-v4-pro"))
    held = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert len(proxy.receipts) == 2
    for place in (repr(proxy.receipts), str(proxy.receipts[0]), caplog.text, held.decode("latin-1"), sent.decode()):
        assert "4711" not in place
