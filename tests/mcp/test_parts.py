"""The pure parts of the MCP server: limits of hosts, addresses of images."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from sightline.model.geometry import Size
from sightline.model.image import Kept
from sightline.surfaces.mcp import catalog
from sightline.surfaces.mcp.asking import paths
from sightline.surfaces.mcp.clients import ANY, Client, client, within
from sightline.surfaces.mcp.server import unwrapped
from tests.requirements import requirement

IMAGE: Any = {"type": "image", "data": "QUJD", "mimeType": "image/png"}


def text(words: str) -> Any:
    return {"type": "text", "text": words}


@requirement("mcp.limits")
def test_a_result_has_at_most_fifteen_images_and_says_what_is_left_out() -> None:
    content: Any = [text("what it is"), *[IMAGE] * 16]
    found = within(content, ANY)
    said: Any = found[1]
    assert (found[0], said["type"], said["text"][:3]) == (text("what it is"), "text", "[1 ")
    assert found[2:] == [IMAGE] * 15
    assert within(content[:16], ANY) == content[:16]
    assert within([text("x" * 8000), *[IMAGE] * 15], ANY)[2:] == [IMAGE] * 14, "words take their share"


@requirement("mcp.limits")
def test_words_beyond_a_host_s_limit_are_cut_and_that_is_said() -> None:
    cut: Any
    (cut,) = within([text("x" * 100_000)], ANY)
    assert len(cut["text"]) == 50_000
    assert re.fullmatch(r"x+ \[[^\[\]]+\]", cut["text"])
    assert within([text("x" * 30_000)], ANY) == [text("x" * 30_000)], "no tool of ours says more"


@requirement("mcp.limits")
def test_a_host_that_would_write_images_as_text_gets_none_and_is_told_what_to_do() -> None:
    words, why = within([text("what it is"), IMAGE], client("@cline/core"))
    assert words == text("what it is")
    assert "analyze_image" in str(why)
    assert within([text("an answer")], client("@cline/core")) == [text("an answer")]


@given(
    some.lists(some.one_of(some.just(IMAGE), some.text(max_size=200).map(text)), max_size=40),
    some.builds(Client, images=some.integers(0, 20), tokens=some.integers(0, 60_000)),
)
def test_no_result_is_beyond_the_limits_and_words_come_first(content: Any, limits: Client) -> None:
    found: Any = within(content, limits)
    pictures = [block for block in found if block["type"] == "image"]
    assert len(pictures) <= limits.images
    assert found[len(found) - len(pictures) :] == pictures
    assert len(pictures) * limits.image_tokens <= limits.tokens


@requirement("mcp.limits")
def test_hosts_are_known_by_the_name_that_they_give_themselves() -> None:
    assert client("claude-code").tokens == 25_000
    assert client("gemini-cli-mcp-client-sightline").encoded < ANY.encoded
    assert client("") == client("somebody") == ANY


@requirement("mcp.resources")
@given(some.text(max_size=120))
def test_an_address_is_that_of_an_image_or_of_nothing(address: str) -> None:
    found = catalog.sha256_of(address)
    assert found is None or address.lower().rstrip("/") == catalog.uri(found)


@requirement("mcp.resources")
@given(some.text("0123456789abcdef", min_size=64, max_size=64))
def test_an_image_s_address_leads_back_to_it(sha256: str) -> None:
    assert catalog.sha256_of(catalog.uri(sha256)) == sha256
    assert catalog.sha256_of(catalog.uri(sha256).upper()) == sha256
    assert catalog.title(Kept(sha256, "image/png", Size(2, 3), 9, "/a/b.png")) == "b.png (image/png, 2x3)"
    assert catalog.title(Kept(sha256, "image/png", Size(2, 3), 9)) == f"sha256:{sha256[:12]} (image/png, 2x3)"


@requirement("mcp.roots")
@given(some.one_of(some.text(max_size=60), some.text(max_size=40).map(lambda path: f"file:///{path}")))
def test_whatever_a_client_calls_a_folder_is_one_that_is_there_or_none(address: str) -> None:
    assert all(found.is_dir() and found.is_absolute() for found in paths([address]))


@requirement("mcp.roots")
def test_folders_are_named_by_addresses_of_files(tmp_path: Path) -> None:
    odd = tmp_path / "with space & ümlaut%20"
    odd.mkdir()
    (tmp_path / "file").touch()
    good = [odd.as_uri(), f"file://localhost{tmp_path}"]
    bad = ["file://elsewhere/tmp", "http://localhost/tmp", "file:", "file://[", (tmp_path / "file").as_uri(), "/tmp"]
    assert list(paths([*bad, *good])) == [odd, tmp_path]
    assert len(list(paths([tmp_path.as_uri()] * 1000))) == 64


@requirement("mcp.bad_params")
@given(some.dictionaries(some.text(), some.text() | some.integers(-(2**53), 2**53) | some.booleans()), some.text())
def test_an_object_comes_back_out_of_its_text_and_any_text_is_borne(held: dict[str, Any], words: str) -> None:
    assert unwrapped(json.dumps(held)) == held
    found = unwrapped(words)
    assert found == (words if words.strip() else {}) or json.loads(words) == found
