"""The SDKs of providers with clients that prepare each request: tools' images are seen, text-only models are told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import sightline
from tests.requirements import requirement
from tests.scripted.faults import Page
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider

PNG = base64.b64encode(paint_quadrants(some_colours(3), (640, 400))).decode()
TOOL_MESSAGES: list[Any] = [
    {"role": "user", "content": "What is in shot.png?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
    },
]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider((("deepseek-v4-pro", "deepseek"), ("*", "sees"))) as provider:
        bases = {"anthropic": provider.url, "openai_chat": f"{provider.url}/v1"}
        monkeypatch.setenv("SIGHTLINE_UPSTREAMS", json.dumps({"deepseek": {"baseUrl": bases}}))
        monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
        yield provider


def open_openai(provider: Provider) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0, http_client=sightline.http_client())


@requirement("adapter.sdks")
@pytest.mark.parametrize(("model", "told"), [("deepseek-v4-flash", False), ("deepseek-v4-pro", True)])
def test_a_tools_image_is_seen_on_chat_completions(provider: Provider, model: str, *, told: bool) -> None:
    with open_openai(provider) as client:
        answer = client.chat.completions.create(model=model, messages=TOOL_MESSAGES).choices[0].message.content
    assert "quadrants" in (answer or "")
    assert ("I was told" in (answer or "")) is told


@requirement("adapter.sdks")
def test_a_login_in_the_address_does_not_prevent_it(provider: Provider) -> None:
    address = f"{provider.url}/v1".replace("://", "://user:word@")
    with openai.OpenAI(base_url=address, api_key="k", max_retries=0, http_client=sightline.http_client()) as client:
        answer = client.chat.completions.create(model="deepseek-v4-flash", messages=TOOL_MESSAGES)
    assert "quadrants" in (answer.choices[0].message.content or "")


@requirement("adapter.sdks")
def test_a_stream_passes_unchanged(provider: Provider) -> None:
    with open_openai(provider) as client:
        chunks = client.chat.completions.create(model="deepseek-v4-flash", messages=TOOL_MESSAGES, stream=True)
        assert "quadrants" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@requirement("adapter.sdks")
async def test_the_asynchronous_client_prepares_on_messages(provider: Provider) -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    async with anthropic.AsyncAnthropic(
        base_url=provider.url, api_key="k", max_retries=0, http_client=sightline.async_http_client()
    ) as client:
        answer = await client.messages.create(
            model="deepseek-v4-pro",
            max_tokens=99,
            messages=[{"role": "user", "content": [image]}],
        )
    assert "I was told: image 1 of 1: quadrants" in answer.content[0].text  # type: ignore[union-attr]


KEYS = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k", "api-key": "k", "cookie": "session=k"}
SENT = {"model": "gpt-5.4", "messages": TOOL_MESSAGES}


@requirement("adapter.sdks.redirect")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_redirect_to_another_host_gets_no_key(provider: Provider, is_async: bool) -> None:
    with Provider() as other:
        away = Page(307, headers=(("location", f"{other.url}/v1/chat/completions"),))
        back = Page(307, headers=(("location", f"{provider.url}/v1/chat/completions"),))
        here = Page(307, headers=(("location", "/v1/chat/completions"),))
        provider.faults.extend([here, away])
        other.faults.append(back)
        address = f"{provider.url}/v1/chat/completions"
        if is_async:
            async with sightline.async_http_client() as client:
                answer = await client.post(address, json=SENT, headers=KEYS)
        else:
            with sightline.http_client() as client:
                answer = client.post(address, json=SENT, headers=KEYS)
    assert "quadrants" in answer.text
    exchanges = (*provider.exchanges, *other.exchanges)
    sent = [{name.decode().lower() for name, _ in each.headers} & KEYS.keys() for each in exchanges]
    assert sent[:2] == [KEYS.keys(), KEYS.keys() - {"cookie"}], "the same host gets them"
    assert sent[2:] == [set(), set()], "no other host does, and what was taken out doesn't come back"


@requirement("adapter.sdks.redirect")
def test_hooks_of_the_user_are_called_too(provider: Provider) -> None:
    seen: list[str] = []
    hooks = {"request": [lambda request: seen.append(request.method)]}
    with sightline.http_client(event_hooks=hooks) as client:
        client.post(f"{provider.url}/v1/chat/completions", json=SENT)
    assert seen == ["POST"]


@requirement("adapter.sdks")
def test_other_requests_pass_unchanged(provider: Provider) -> None:
    with sightline.http_client() as client:
        sent = {"messages": "of another API", "image": PNG}
        client.post(f"{provider.url}/v1/embeddings", json=sent)
        client.post(f"{provider.url}/v1/chat/completions", content=b"{not JSON")
    assert json.loads(provider.exchanges[0].body) == sent
    assert provider.exchanges[1].body == b"{not JSON"


@requirement("adapter.sdks")
def test_a_request_that_cannot_be_prepared_is_sent_and_the_log_says_why(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SIGHTLINE_SEER", "no-such-provider/model")
    sent = {"model": "deepseek-v4-flash", "messages": [{"role": "user", "content": "hi"}]}
    with sightline.http_client() as client:
        client.post(f"{provider.url}/v1/chat/completions", json=sent)
    assert json.loads(provider.exchanges[0].body) == sent
    assert [("no-such-provider/model" in each.message, each.levelname) for each in caplog.records] == [
        (True, "WARNING")
    ]


@requirement("adapter.sdks")
def test_a_missing_library_is_named() -> None:
    with pytest.raises(ImportError, match="no_such_library is not installed"):
        sightline.http_client(library="no_such_library")


@requirement("library.images")
def test_objects_of_other_libraries_are_images(tmp_path: Path) -> None:
    import mcp.types
    import numpy as np

    class State:
        """What browser-use knows of a page."""

        url, screenshot = "https://example.com", PNG

    class Step:
        """A step in its history."""

        class state:  # noqa: N801
            @staticmethod
            def get_screenshot() -> str:
                return PNG

    block = mcp.types.ImageContent(type="image", data=PNG, mime_type="image/png")
    result = mcp.types.CallToolResult(content=[mcp.types.TextContent(type="text", text="A page."), block])
    given: list[Any] = [f"data:image/png;base64,{PNG}", block, result, result.model_dump(), State(), Step()]
    views = [sightline.view(each) for each in given]
    assert [str(getattr(view, "size", view)) for view in views] == ["640x400"] * len(given)
    pixels = sightline.view(np.zeros((20, 30, 3), np.uint8))
    assert str(getattr(pixels, "size", pixels)) == "30x20"
    wrong: list[Any] = [np.zeros((2, 2, 7), np.float64), {"content": []}, "data:image/png;base64,????"]
    assert [getattr(sightline.view(each), "reason", "") for each in wrong] == [
        "invalid_input",
        "invalid_input",
        "corrupt",
    ]
