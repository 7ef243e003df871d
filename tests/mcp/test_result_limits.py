"""Parts of the MCP server without a server: limits of hosts, addresses of images, roots."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from sightline.model.geometry import Size
from sightline.model.image import ImageSummary
from sightline.surfaces.mcp import catalog
from sightline.surfaces.mcp.server import parse_arguments
from sightline.surfaces.mcp.tool_service import DEFAULT_LIMITS, HostLimits, find_limits, fit_result, resolve_roots
from tests.requirements import requirement

IMAGE: Any = {"type": "image", "data": "QUJD", "mimeType": "image/png"}


def text(words: str) -> Any:
    return {"type": "text", "text": words}


@requirement("mcp.limits")
def test_a_result_has_at_most_fifteen_images_and_a_note_on_the_rest() -> None:
    content: Any = [text("what it is"), *[IMAGE] * 16]
    found = fit_result(content, DEFAULT_LIMITS)
    said: Any = found[1]
    assert (found[0], said["type"], said["text"][:3]) == (text("what it is"), "text", "[1 ")
    assert found[2:] == [IMAGE] * 15
    assert fit_result(content[:16], DEFAULT_LIMITS) == content[:16]
    assert fit_result([text("x" * 8000), *[IMAGE] * 15], DEFAULT_LIMITS)[2:] == [IMAGE] * 14, "words take their share"


@requirement("mcp.limits")
def test_text_beyond_a_hosts_limit_is_cut_with_a_note() -> None:
    cut: Any
    (cut,) = fit_result([text("x" * 100_000)], DEFAULT_LIMITS)
    assert len(cut["text"]) == 50_000
    assert re.fullmatch(r"x+ \[[^\[\]]+\]", cut["text"])
    assert fit_result([text("x" * 30_000)], DEFAULT_LIMITS) == [text("x" * 30_000)], "no tool of ours says more"


@requirement("mcp.limits")
def test_a_host_that_shows_images_as_text_gets_a_hint_instead() -> None:
    words, why = fit_result([text("what it is"), IMAGE], find_limits("@cline/core"))
    assert words == text("what it is")
    assert "analyze_image" in str(why)
    assert fit_result([text("an answer")], find_limits("@cline/core")) == [text("an answer")]


@given(
    some.lists(some.one_of(some.just(IMAGE), some.text(max_size=200).map(text)), max_size=40),
    some.builds(HostLimits, images=some.integers(0, 20), tokens=some.integers(0, 60_000)),
)
def test_no_result_exceeds_the_limits_and_text_comes_first(content: Any, limits: HostLimits) -> None:
    found: Any = fit_result(content, limits)
    pictures = [block for block in found if block["type"] == "image"]
    assert len(pictures) <= limits.images
    assert found[len(found) - len(pictures) :] == pictures
    assert len(pictures) * limits.image_tokens <= limits.tokens


@requirement("mcp.limits")
def test_hosts_are_known_by_the_name_that_they_give_themselves() -> None:
    assert find_limits("claude-code").tokens == 25_000
    assert find_limits("gemini-cli-mcp-client-sightline").encoded < DEFAULT_LIMITS.encoded
    assert find_limits("") == find_limits("somebody") == DEFAULT_LIMITS


@requirement("mcp.resources")
@given(some.text(max_size=120))
def test_any_text_is_the_address_of_an_image_or_none(address: str) -> None:
    found = catalog.parse_uri(address)
    assert found is None or address.lower().rstrip("/") == catalog.format_uri(found)


@requirement("mcp.resources")
@given(some.text("0123456789abcdef", min_size=64, max_size=64))
def test_the_address_of_an_image_can_be_parsed(sha256: str) -> None:
    assert catalog.parse_uri(catalog.format_uri(sha256)) == sha256
    assert catalog.parse_uri(catalog.format_uri(sha256).upper()) == sha256
    assert (
        catalog.format_title(ImageSummary(sha256, "image/png", Size(2, 3), 9, "/a/b.png")) == "b.png (image/png, 2x3)"
    )
    assert (
        catalog.format_title(ImageSummary(sha256, "image/png", Size(2, 3), 9))
        == f"sha256:{sha256[:12]} (image/png, 2x3)"
    )


@requirement("mcp.roots")
@given(some.one_of(some.text(max_size=60), some.text(max_size=40).map(lambda path: f"file:///{path}")))
def test_roots_that_are_not_existing_folders_are_ignored(address: str) -> None:
    assert all(found.is_dir() and found.is_absolute() for found in resolve_roots([address]))


@requirement("mcp.roots")
def test_roots_are_file_addresses(tmp_path: Path) -> None:
    odd = tmp_path / "with space & ümlaut%20"
    odd.mkdir()
    (tmp_path / "file").touch()
    good = [odd.as_uri(), f"file://localhost{tmp_path}"]
    bad = ["file://elsewhere/tmp", "http://localhost/tmp", "file:", "file://[", (tmp_path / "file").as_uri(), "/tmp"]
    assert list(resolve_roots([*bad, *good])) == [odd, tmp_path]
    assert len(list(resolve_roots([tmp_path.as_uri()] * 1000))) == 64


@requirement("mcp.bad_params")
@given(some.dictionaries(some.text(), some.text() | some.integers(-(2**53), 2**53) | some.booleans()), some.text())
def test_arguments_written_as_text_are_parsed_and_any_text_is_accepted(held: dict[str, Any], words: str) -> None:
    assert parse_arguments(json.dumps(held)) == held
    found = parse_arguments(words)
    assert found == (words if words.strip() else {}) or json.loads(words) == found
