"""A typed program that uses everything that `import sightline` exports; `mypy --strict` and a test run it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

import sightline


def see_images(path: Path) -> list[sightline.View]:
    """See one image in every form that an image argument takes."""
    first = sightline.view(path, crop={"region": "top-left"})
    assert first, first
    with path.open("rb") as file, Pillow.open(path) as picture:
        found = [sightline.view(each) for each in (str(path), path.read_bytes(), file, picture, first.image)]
    views = [each for each in found if isinstance(each, sightline.View)]
    again: sightline.View | sightline.Failure = sightline.recall(first.as_dict())
    assert again == first
    shown: sightline.Image = first.pixels
    assert (len(views), shown.mime) == (5, "image/png")
    return views


def ask_models(image: str) -> list[str]:
    """Ask about images; return the words, or why there are none."""
    analysis: sightline.Analysis | sightline.Failure = sightline.analyze(
        [image, image], "What differs?", crop=["r=top", None], model=None, reason="to show it"
    )
    described = sightline.describe(image, question=None, crop="r=top", model=None, save=False)
    answer: sightline.FileAnswer | sightline.Failure = sightline.vision_analyze(image, prompt="What is it?", fit="auto")
    video = sightline.video_analyze(io.BytesIO(b"not a video"), method="auto")
    if analysis:
        assert analysis.images[0].startswith(image)
    if answer:
        assert answer.parsed is None
    return [str(each) for each in (analysis, described, answer, video)]


def edit_text(path: Path, session: sightline.Session) -> sightline.FileEdit:
    text: sightline.FileText | sightline.Failure = sightline.read_file(path, session=session)
    assert text, text
    edit = sightline.edit_file(path, "one", "two", text.token, session=session)
    assert edit, edit
    return edit


def list_tools(path: Path) -> list[sightline.ListedImage]:
    """Offer the tools on every API, and call two of them."""
    session = sightline.Session(reach=[path.parent], network=False, turn="t1", can_edit=True)
    blocks: list[Any] = []
    for tool in sightline.tools(session=session):
        assert isinstance(tool["name"], str)
    for wire in ("anthropic", "gemini", "mcp", "openai", "openai_responses"):
        assert sightline.tools(format=wire, session=session)
        blocks += sightline.call("view_image", {"path": path.name}, session=session).content(wire)
    assert len(blocks) == 10
    listed = sightline.call("list_images", {}, session=session)
    assert isinstance(listed, sightline.ImageList)
    return list(listed.images)


def prepare_bodies(messages: list[dict[str, Any]]) -> sightline.Receipt:
    assert sightline.hoist(messages) == sightline.hoist_tool_result_images(messages, wire="openai")
    prepared: sightline.PreparedBody | sightline.Failure = sightline.prepare(
        {"model": "gpt-x", "messages": messages}, wire="openai", model=None, retention="off"
    )
    assert prepared, prepared
    return prepared.receipt


def serve_peers(path: Path) -> tuple[sightline.SendDecision, sightline.Image]:
    """Fit an image to what an ACP agent advertises."""
    told = {"_meta": {"imageCapability": {"maxDimension": 100}}}
    capability: sightline.ImageCapability | None = sightline.read_image_capability(told)
    audio: sightline.AudioCapability | None = sightline.read_audio_capability(told)
    assert not isinstance(audio, sightline.ImageCapability)
    fitted = sightline.fit_for({"maxDimension": 100}, path)
    assert fitted, fitted
    return sightline.may_send(capability, fitted, sees=True), fitted


def know_models() -> tuple[str, list[bool]]:
    supports = (sightline.supports_vision, sightline.supports_pdf, sightline.supports_video)
    return sightline.__version__, [each("gemini-2.5-pro", "gemini") for each in supports]


def open_clients() -> list[Any]:
    """Open HTTP clients for the SDKs of providers."""
    return [sightline.http_client(session=sightline.Session()), sightline.async_http_client(library="httpx2")]


async def see_later(path: Path) -> sightline.View | sightline.Failure:
    return await sightline.view.aio(path)
