"""Questions to the client: the user's consent, and the folders that the client works in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    Root,
    RootsListChangedNotification,
)

from sightline.passes.wording import CONSENT_QUESTION
from sightline.store import open_record
from sightline.surfaces.mcp.client_questions import add_consent
from tests.api.eyes import ABSENT
from tests.cli.command import sightline
from tests.mcp.serving import WAYS, Way, at, client, images, served, texts
from tests.requirements import requirement

NOBODY = "eyes.invalid:9"
ELSEWHERE = {
    "SIGHTLINE_UPSTREAMS": json.dumps(
        {
            **ABSENT,
            "far": {"baseUrl": f"http://{NOBODY}/v1", "apiKey": "sk-far"},
            "locked": {"baseUrl": "http://locked.invalid:9/v1"},
        }
    ),
    "SIGHTLINE_MODELS": json.dumps({"eye": {"vision": True}}),
}
CALL = {"images": ["shot.png"], "question": "What is it?", "model": "far/eye"}


class User:
    """Gives the same answer to every question, and remembers the questions."""

    def __init__(self, action: Any) -> None:
        self.action, self.asked = action, list[str]()

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return ElicitResult(action=self.action, content={} if self.action == "accept" else None)


def consents() -> Any:
    return json.loads(sightline("consent", "list", "--json").out)["consents"]


@requirement("mcp.consent")
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
async def test_the_user_is_asked_once_and_the_answer_counts_for_that_provider(way: Way, folder: Path) -> None:
    user = User("accept")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user) as one:
        for _ in range(2):
            result = await one.call_tool("analyze_image", CALL)
            assert result.is_error, "nobody is there"
            assert "consent" not in texts(result)[0]
    (asked,) = user.asked
    assert CONSENT_QUESTION.format(NOBODY) in asked
    assert f"sightline consent no {NOBODY}" in asked
    assert consents() == {NOBODY: True}


@requirement("consent.kept", "mcp.consent")
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
async def test_a_consent_that_cannot_be_written_is_an_error_and_nothing_is_sent(
    way: Way, folder: Path, home: Path
) -> None:
    (home / "record").write_text("in the way")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=User("accept")) as one:
        result = await one.call_tool("analyze_image", CALL)
        assert result.is_error
        assert "the consent could not be written" in texts(result)[0]
        with pytest.raises(MCPError, match="the consent could not be written"):
            await one.get_prompt("describe", {"images": "shot.png", "model": "far/eye"})


@requirement("record.damage.consents", "mcp.consent.own")
def test_a_client_cannot_consent_while_the_owners_consents_are_unreadable(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    assert add_consent(record, "openai").policy.read_consents() == {"openai": True}
    record.close()
    (tmp_path / "record.sqlite").write_bytes(b"no database" * 1000)
    record = open_record(tmp_path)
    assert add_consent(record, "openai").policy.read_consents() == {}
    record.close()


@requirement("mcp.consent")
@requirement("mcp.consent.own")
@pytest.mark.parametrize("way", WAYS[2:], ids="-".join)
async def test_a_client_over_http_consents_for_itself(way: Way, folder: Path) -> None:
    """Any program on this machine may have found the port, so its consent is not the owner's."""
    with served(folder, "--root", str(folder), env=ELSEWHERE) as url:
        for headers, asked in (({}, 1 if way[1] == "legacy" else 3), ({"x-api-key": "one"}, 1)):
            user = User("accept")
            async with at(f"{url}/mcp", way, headers=headers, elicitation_callback=user) as one:
                for _ in range(2):
                    result = await one.call_tool("analyze_image", CALL)
                    assert result.is_error, "nobody is there"
                    assert "consent" not in texts(result)[0]
                file = {"prompt": "?", "file_path": str(folder / "shot.png"), "model": "far/eye"}
                assert "consent" not in texts(await one.call_tool("vision_analyze", file))[0]
            assert len(user.asked) == asked, "without a session or a key, each time"
            assert CONSENT_QUESTION.format(NOBODY) in user.asked[0]
            assert f"`sightline consent yes {NOBODY}`" in user.asked[0]
            for others in ({}, {"x-api-key": "two"}):
                async with at(f"{url}/mcp", way, headers=others) as other:
                    no = texts(await other.call_tool("analyze_image", CALL))[0]
                    assert f"sightline consent yes {NOBODY}" in no
        assert consents() == {}
        sightline("consent", "no", NOBODY, env=ELSEWHERE)
        async with at(f"{url}/mcp", way, headers={"x-api-key": "one"}, elicitation_callback=user) as one:
            assert f"sightline consent yes {NOBODY}" in texts(await one.call_tool("analyze_image", CALL))[0]
        assert consents() == {NOBODY: False}, "and the owner's no is a no"


@requirement("mcp.consent.asked")
@pytest.mark.parametrize("way", [WAYS[1], WAYS[3]], ids="-".join)
async def test_an_answer_to_a_question_that_was_not_asked_is_ignored(way: Way, folder: Path) -> None:
    yes: Any = {f"consent:{NOBODY}": ElicitResult(action="accept", content={})}
    user = User("decline")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user) as one:

        async def said(state: str | None, call: dict[str, Any] = CALL, name: str = "analyze_image") -> Any:
            return await one.session.call_tool(
                name, call, input_responses=yes, request_state=state, allow_input_required=True
            )

        unasked = await said(None)
        assert isinstance(unasked, InputRequiredResult)
        state = unasked.request_state
        assert state is not None
        assert NOBODY not in state
        for forged in ("", json.dumps([NOBODY, "", "test", ""]), state[:-2] + ("AA" if state[-2:] != "AA" else "BB")):
            with pytest.raises(MCPError, match="requestState"):
                await said(forged)
        with pytest.raises(MCPError, match="requestState"):
            await said(state, {**CALL, "question": "Another one?"})
        assert consents() == {}
        assert "consent" not in texts(await said(state))[0], "and what was asked may be answered"
    assert consents() == ({NOBODY: True} if way[0] == "stdio" else {})


@requirement("mcp.consent.asked")
async def test_a_question_can_be_answered_only_by_the_client_it_was_sent_to(folder: Path) -> None:
    yes: Any = {f"consent:{NOBODY}": ElicitResult(action="accept", content={})}
    user = User("decline")
    with served(folder, "--root", str(folder), env=ELSEWHERE) as url:
        state = None
        for credential in ("one", "two"):
            headers = {"x-api-key": credential}
            async with at(f"{url}/mcp", WAYS[3], headers=headers, elicitation_callback=user) as one:
                again = await one.session.call_tool(
                    "analyze_image", CALL, input_responses=yes, request_state=state, allow_input_required=True
                )
                assert isinstance(again, InputRequiredResult)
                state = again.request_state


@requirement("mcp.http.workers")
@pytest.mark.parametrize("way", WAYS[2:], ids="-".join)
async def test_no_consent_is_asked_for_with_several_processes(way: Way, folder: Path) -> None:
    user = User("accept")
    with served(folder, "--root", str(folder), "--workers", "2", env=ELSEWHERE) as url:
        async with at(f"{url}/mcp", way, elicitation_callback=user) as one:
            assert f"sightline consent yes {NOBODY}" in texts(await one.call_tool("analyze_image", CALL))[0]
    assert (user.asked, consents()) == ([], {})


@requirement("mcp.consent")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_consent_is_not_asked_for_again(way: Way, folder: Path, action: str) -> None:
    user = User(action)
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user) as one:
        for _ in range(2):
            result = await one.call_tool("analyze_image", CALL)
            assert result.is_error
            assert f"sightline consent yes {NOBODY}" in texts(result)[0]
    assert len(user.asked) == 1
    assert consents() == {}


@requirement("mcp.consent")
async def test_a_client_that_cannot_ask_gets_the_command_to_run(way: Way, folder: Path) -> None:
    async with client(way, folder, env=ELSEWHERE) as one:
        result = await one.call_tool("analyze_image", CALL)
        assert result.is_error
        assert "(no_consent)" in texts(result)[0]
        assert f"sightline consent yes {NOBODY}" in texts(result)[0]
        file = {"file_path": str(folder / "shot.png"), "prompt": "?", "model": "far/eye"}
        assert f"sightline consent yes {NOBODY}" in texts(await one.call_tool("vision_analyze", file))[0]


@requirement("mcp.consent.matters")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_no_consent_is_asked_for_if_the_call_fails_anyway(way: Way, folder: Path) -> None:
    (folder / "page.png").write_text("<html></html>")
    file, film = str(folder / "shot.png"), str(folder / "page.png")
    vain: list[tuple[str, dict[str, Any]]] = [
        ("analyze_image", {**CALL, "images": ["gone.png"]}),
        ("analyze_image", {**CALL, "images": ["shot.png", "/etc/hostname"]}),
        ("analyze_image", {**CALL, "images": ["page.png"]}),
        ("analyze_image", {**CALL, "crop": [{"image_index": 3, "region": "top"}]}),
        ("analyze_image", {**CALL, "question": " "}),
        ("analyze_image", {**CALL, "colour": "red"}),
        ("analyze_image", {**CALL, "model": "nobody/eye"}),
        ("analyze_image", {**CALL, "model": "far/blind"}),  # nothing says that it sees
        ("analyze_image", {**CALL, "model": "locked/eye"}),  # there is no key
        ("vision_analyze", {"prompt": "?", "file_path": "/no/such.png", "model": "far/eye"}),
        ("vision_analyze", {"prompt": "?", "file_path": file, "model": "locked/eye"}),
        ("vision_analyze", {"prompt": "?", "file_path": file, "model": "far/blind"}),
        ("vision_analyze", {"prompt": "?", "file_url": "http://127.0.0.1/a.png", "model": "far/eye"}),
        ("vision_analyze", {"prompt": "", "file_path": file, "model": "far/eye"}),
        ("video_analyze", {"file_path": film, "model": "far/eye"}),
    ]
    user = User("accept")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user) as one:
        for name, arguments in vain:
            assert (await one.call_tool(name, arguments)).is_error
            assert user.asked == [], (name, arguments)
        await one.get_prompt("describe", {"images": "gone.png", "model": "far/eye"})
        assert user.asked == []
        await one.call_tool("vision_analyze", {"prompt": "?", "file_path": file, "model": "far/eye"})
        assert len(user.asked) == 1
    assert consents() == ({NOBODY: True} if way[0] == "stdio" else {})


@requirement("mcp.consent.matters")
async def test_parallel_calls_ask_once(folder: Path) -> None:
    user = User("decline")
    async with client(WAYS[0], folder, env=ELSEWHERE, elicitation_callback=user) as one:
        results = await asyncio.gather(*(one.call_tool("analyze_image", CALL) for _ in range(4)))
    assert all("sightline consent yes" in texts(each)[0] for each in results)
    assert len(user.asked) == 1


@requirement("mcp.consent.each")
@pytest.mark.parametrize("way", WAYS[2:], ids="-".join)
async def test_a_declined_consent_counts_only_for_its_client(way: Way, folder: Path) -> None:
    no, yes = User("decline"), User("accept")
    with served(folder, "--root", str(folder), env=ELSEWHERE) as url:
        for credential in ("one", "two"):
            headers = {"authorization": credential}
            async with at(f"{url}/mcp", way, headers=headers, elicitation_callback=no) as one:
                for _ in range(2):
                    assert "sightline consent yes" in texts(await one.call_tool("analyze_image", CALL))[0]
        assert len(no.asked) == 2, "each was asked once"
        async with at(f"{url}/mcp", way, name="other", elicitation_callback=yes) as other:
            assert "consent" not in texts(await other.call_tool("analyze_image", CALL))[0]
    assert len(yes.asked) == 1


@requirement("mcp.consent")
async def test_a_provider_that_the_owner_declined_is_not_asked_about(folder: Path) -> None:
    sightline("consent", "no", NOBODY, env=ELSEWHERE)
    user = User("accept")
    async with client(WAYS[0], folder, env=ELSEWHERE, elicitation_callback=user) as one:
        assert "sightline consent yes" in texts(await one.call_tool("analyze_image", CALL))[0]
        await one.call_tool("analyze_image", {"images": ["shot.png"]})  # it would be refused whatever they say
    assert user.asked == []


@requirement("mcp.consent.owner")
@pytest.mark.parametrize("way", WAYS[2:], ids="-".join)
async def test_a_client_with_a_token_cannot_consent_for_the_owner(way: Way, folder: Path) -> None:
    user = User("accept")
    with served(folder, "--root", str(folder), "--token", "open-sesame", env=ELSEWHERE) as url:
        headers = {"x-sightline-token": "open-sesame"}
        async with at(f"{url}/mcp", way, headers=headers, elicitation_callback=user) as one:
            assert "sightline consent yes" in texts(await one.call_tool("analyze_image", CALL))[0]
    assert (user.asked, consents()) == ([], {})


@requirement("mcp.consent")
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
async def test_a_prompt_asks_as_a_tool_does(way: Way, folder: Path) -> None:
    user = User("accept")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user) as one:
        await one.get_prompt("describe", {"images": "shot.png", "model": "far/eye"})
    assert len(user.asked) == 1
    assert consents() == {NOBODY: True}


class Roots:
    def __init__(self, *folders: Path | str) -> None:
        self.uris = [each if isinstance(each, str) else each.as_uri() for each in folders]
        self.asked = 0

    async def __call__(self, context: Any) -> ListRootsResult:
        self.asked += 1
        return ListRootsResult(roots=[Root(uri=uri) for uri in self.uris])  # type: ignore[arg-type]


@pytest.fixture
def elsewhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is neither the server's working folder nor the temporary folder."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    other = tmp_path / "other place"
    other.mkdir()
    (other / "there.png").write_bytes((folder / "shot.png").read_bytes())
    return other


@requirement("mcp.roots")
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
async def test_folders_that_the_client_names_may_be_read(way: Way, folder: Path, elsewhere: Path) -> None:
    there = {"path": str(elsewhere / "there.png")}
    async with client(way, folder) as one:
        assert "not_permitted" in texts(await one.call_tool("view_image", there))[0]
    roots = Roots(elsewhere, "file:///", f"file://{Path.home()}", "file:///no/such/folder")
    async with client(way, folder, list_roots_callback=roots) as one:
        assert images(await one.call_tool("view_image", {"path": "shot.png"}))
        assert roots.asked == 0, "the working folder needs no roots"
        assert images(await one.call_tool("view_image", there))
        assert images(await one.call_tool("view_image", there))
        assert roots.asked == (1 if way[1] == "legacy" else 2), "a client of the new era is asked with each call"
        no = await one.call_tool("view_image", {"path": "/etc/hostname"})
        assert "not_permitted" in texts(no)[0], "a whole disk is no root"
        if way[1] == "legacy":
            roots.uris = []
            await one.session.send_notification(RootsListChangedNotification())
            assert "not_permitted" in texts(await one.call_tool("view_image", there))[0]


@requirement("mcp.consent.matters")
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
async def test_consent_waits_for_the_folder(way: Way, folder: Path, elsewhere: Path) -> None:
    """The folders are asked for first: whether an image can be sent at all may depend on them."""
    there = {**CALL, "images": [str(elsewhere / "there.png")]}
    user = User("accept")
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user, list_roots_callback=Roots()) as one:
        assert "not_permitted" in texts(await one.call_tool("analyze_image", there))[0]
    assert user.asked == []
    roots = Roots(elsewhere)
    async with client(way, folder, env=ELSEWHERE, elicitation_callback=user, list_roots_callback=roots) as one:
        assert "consent" not in texts(await one.call_tool("analyze_image", there))[0]
    assert len(user.asked) == 1


@requirement("mcp.roots")
@pytest.mark.parametrize("way", WAYS[2:], ids="-".join)
async def test_roots_are_ignored_over_http(way: Way, folder: Path, elsewhere: Path) -> None:
    roots = Roots(elsewhere)
    async with client(way, folder, list_roots_callback=roots) as one:
        no = await one.call_tool("view_image", {"path": str(elsewhere / "there.png")})
        assert "not_permitted" in texts(no)[0]
    assert roots.asked == 0


@requirement("mcp.roots")
@pytest.mark.parametrize("start", [Path("/"), Path.home()], ids=["a disk", "a home"])
async def test_a_server_started_in_a_wide_folder_does_not_read_all_of_it(
    start: Path, folder: Path, elsewhere: Path
) -> None:
    async with client(WAYS[0], start, list_roots_callback=Roots(folder)) as one:
        assert images(await one.call_tool("view_image", {"path": "shot.png"})), "a path begins at the client's folder"
        assert json.loads(texts(await one.call_tool("list_images", {}))[0])["images"][0]["path"].endswith("shot.png")
        assert "outside" in texts(await one.call_tool("view_image", {"path": "/etc/hostname"}))[0]
    async with client(WAYS[0], start) as one:
        assert "outside" in texts(await one.call_tool("view_image", {"path": "/etc/hostname"}))[0]
        assert json.loads(texts(await one.call_tool("list_images", {}))[0])["images"] == []
    allowed = {"SIGHTLINE_FS_REACH": str(start)}
    async with client(WAYS[0], start, env=allowed) as one:
        assert images(await one.call_tool("view_image", {"path": str(folder / "shot.png")})) or start != Path("/")
