"""How an upstream is reached as the environment and the presets say: by a web proxy, and with its key in its header."""

from __future__ import annotations

import asyncio
import json

import pytest

from sightline.profiles.presets import PRESETS
from tests.cli.test_serve import get, serving
from tests.dial.test_http_client import forever
from tests.dial.test_tls import tunnelling
from tests.dial.upstream import AUTHORITY, listening
from tests.proxy.raw_http import exchange
from tests.requirements import requirement
from tests.scripted.provider import Provider

UPSTREAM = "office=https://upstream.test:4321"


@requirement("upstream.https_proxy")
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_an_upstream_is_reached_through_the_web_proxy(variable: str) -> None:
    async with listening(forever, secured=True) as upstream, listening(tunnelling(upstream)) as proxy:
        env = {variable: f"http://localhost:{proxy.port}", "SSL_CERT_FILE": str(AUTHORITY), "NO_PROXY": "example.com"}

        def asked() -> tuple[int, bytes]:
            with serving("--upstream", UPSTREAM, **env) as (_, address):
                return get(address, "/u/office/v1/models")

        assert await asyncio.to_thread(asked) == (200, b"answer")
        assert proxy.requests[0].line == "CONNECT upstream.test:4321 HTTP/1.1"
        assert upstream.requests[0].line == "GET /v1/models HTTP/1.1"


@requirement("upstream.https_proxy")
@pytest.mark.parametrize("excepted", ["upstream.test", "test", ".test,other", "*"])
async def test_an_upstream_in_no_proxy_is_reached_directly(excepted: str) -> None:
    async with listening(forever, secured=True) as upstream, listening(tunnelling(upstream)) as proxy:
        env = {"HTTPS_PROXY": f"http://localhost:{proxy.port}", "NO_PROXY": excepted}

        def asked() -> int:
            with serving("--upstream", UPSTREAM, **env) as (_, address):
                return get(address, "/u/office/v1/models")[0]

        assert await asyncio.to_thread(asked) == 503, "only the proxy knows its address"
        assert proxy.connections == 0


BEARERS = sorted(name for name, preset in PRESETS.items() if preset.bearer)
PATHS = ("/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:generateContent")
HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


def credentials(name: str, path: str) -> dict[str, list[str]]:
    """The keys with which a request reaches a preset that has one of its own."""
    with Provider() as provider:
        own = json.dumps({name: {"baseUrl": provider.url, "apiKey": "sk-own"}})
        with serving(SIGHTLINE_UPSTREAMS=own) as (_, address):
            exchange(address, f"/u/{name}{path}", b'{"model":"m"}', headers=[("x-api-key", "sk-client")])
        (arrived,) = provider.exchanges
        return {header: found for header in HEADERS if (found := arrived.header(header))}


@requirement("preset.bearer")
@pytest.mark.parametrize("path", PATHS)
def test_a_bearer_provider_gets_a_bearer_token_on_every_wire(path: str) -> None:
    assert "openrouter" in BEARERS
    for name in BEARERS:
        assert credentials(name, path) == {"authorization": ["Bearer sk-own"]}, name


@requirement("preset.bearer")
def test_other_providers_get_the_key_in_the_header_of_the_wire() -> None:
    assert credentials("anthropic", PATHS[0]) == {"x-api-key": ["sk-own"]}
    assert credentials("gemini", PATHS[3]) == {"x-goog-api-key": ["sk-own"]}
    assert credentials("openai", PATHS[1]) == {"authorization": ["Bearer sk-own"]}
