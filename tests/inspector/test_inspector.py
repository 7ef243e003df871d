"""The inspector's API on a real proxy: its guards, what it shows, and the few things it changes."""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sightline as library
from sightline.model.geometry import Size
from sightline.model.image import FitResult, Image, ImageTarget, PaddedSizing
from sightline.model.records import FiledReceipt, Receipt, ReceiptLine
from sightline.model.request_trace import RequestTrace, TraceParts
from sightline.pixels.fit_image import fit_image
from sightline.store import open_record
from sightline.surfaces.inspector.changes import SESSION_SECONDS, TICKET_SECONDS, InspectorAccess, hash_token
from sightline.surfaces.inspector.queries import MAX_ALT
from tests.inspector.client import InspectorClient, log_in
from tests.inspector.recorded import HOSTILE_NAME, WORDS, paint_window, record_conversation
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_lines


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    record = open_record(folder / "record")
    record_conversation(record, 12)
    record_conversation(record, 2, hostile=True, first="Other words")
    record.close()
    return folder


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with sightline(home) as proxy:
        yield proxy.url


@pytest.fixture(scope="module")
def client(url: str, home: Path) -> InspectorClient:
    return log_in(url, home)


@requirement("route.inspector")
def test_the_proxy_serves_the_pages_without_inline_scripts(url: str) -> None:
    page = InspectorClient(url).get()
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert b"onclick" not in page.body
    for name in ("scripts.js", "inspector.css", "icon.svg"):
        assert InspectorClient(url).get(name).status == 200
    assert InspectorClient(url).get("health").json == {"ok": True}
    assert InspectorClient(url).get("../etc/passwd").status >= 400
    assert InspectorClient(url).get("changes.py").status == 404


@requirement("inspector.session")
@pytest.mark.parametrize(
    "path",
    ["conversations", "conversation?id=x", "usage", "settings", "newest", "session", "events", f"image/{'a' * 64}"],
)
def test_nothing_is_shown_without_a_session(url: str, path: str) -> None:
    for cookie in ("", "sightline-inspector=guess", "sightline-inspector=../../x", "a=b; ;;"):
        page = InspectorClient(url).get(f"api/{path}", cookie=cookie)
        assert (page.status, page.json["error"]["code"]) == (403, "not_permitted")


@requirement("inspector.session")
def test_a_ticket_opens_one_session(url: str, home: Path) -> None:
    ticket = InspectorAccess(home / "inspector").issue_ticket()
    stranger = InspectorClient(url)
    assert stranger.get(f"api/ticket/{hash_token(ticket)}").json == {"known": True}
    assert stranger.get(f"api/ticket/{hash_token('other')}").json == {"known": False}
    opened = stranger.post("api/session", {"ticket": ticket})
    cookie = opened.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/sightline/"))
    assert stranger.post("api/session", {"ticket": ticket}).status == 403
    assert stranger.get("api/session", cookie=cookie.split(";")[0]).json == opened.json
    assert (home / "inspector").stat().st_mode & 0o777 == 0o700


@requirement("inspector.session")
def test_tickets_and_sessions_expire(tmp_path: Path) -> None:
    access = InspectorAccess(tmp_path / "inspector")
    ticket, session = access.issue_ticket(), access.redeem(access.issue_ticket())
    assert session is not None
    assert access.is_open(session)
    for file in (tmp_path / "inspector").iterdir():
        age = SESSION_SECONDS if file.name.startswith("session") else TICKET_SECONDS
        os.utime(file, (time.time() - age - 5,) * 2)
    assert not access.is_open(session)
    assert access.redeem(ticket) is None
    access.issue_ticket()
    assert len([*(tmp_path / "inspector").iterdir()]) == 1


@requirement("inspector.origin")
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8790", "origin": "http://evil.example:8790"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"x_sightline_form": "guess"},
        {"x_sightline_form": ""},
        {"sec_fetch_site": "cross-site"},
    ],
)
def test_other_origins_and_hosts_change_and_see_nothing(
    client: InspectorClient, home: Path, headers: dict[str, str]
) -> None:
    consent = {"provider": "zai", "given": True, "confirmed": True}
    assert client.post("api/consent", consent, **headers).status in (400, 403)
    if "host" in headers or "sec_fetch_site" in headers:
        assert client.get("api/conversations", **headers).status in (400, 403)
    record = open_record(home / "record")
    assert record.policy.read_consents() == {}
    record.close()


@requirement("inspector.origin")
def test_no_get_changes_anything(client: InspectorClient) -> None:
    for path in ("consent", "setting", "try"):
        assert client.get(f"api/{path}?provider=zai&given=true&confirmed=true").status == 404
    assert client.get("api/conversations", method="DELETE").status == 404
    assert client.post("api/consent", {}, content_type="text/plain").status == 400
    assert client.post("api/consent", [1]).status == 400


@requirement("inspector.conversations")
def test_conversations_are_listed_with_their_figures(client: InspectorClient) -> None:
    listed = client.get("api/conversations").json
    assert listed["next"] is None
    both = {each["turns"]: each for each in listed["conversations"]}
    assert set(both) == {12, 2}
    long = both[12]
    assert (long["requests"], long["images"], long["client"][:10]) == (12, 12, "claude-cli")
    assert long["tokens_before"] > long["tokens_after"] > 0
    assert long["cost_without_usd"] > long["cost_usd"] > 0
    assert client.get("api/conversations?offset=50").json["conversations"] == []
    many = "&".join(f"field{number}=1" for number in range(99))
    assert client.get(f"api/conversations?offset=50&{many}").json["conversations"] == []


@requirement("inspector.conversations")
def test_a_damaged_record_is_not_shown_as_an_empty_one(tmp_path: Path) -> None:
    record = open_record(tmp_path / "record")
    record_conversation(record, 1)
    record.close()
    (tmp_path / "record" / "record.sqlite").write_bytes(b"not a database " * 1000)
    with sightline(tmp_path) as proxy:
        client = log_in(proxy.url, tmp_path)
        for path in ("conversations", "conversation?id=any", "usage"):
            page = client.get(f"api/{path}")
            assert page.status >= 400, path
            assert "sightline store repair" in page.json["error"]["message"]
        assert client.get("api/settings").status == 200


@requirement("inspector.conversations")
def test_a_conversation_shows_each_image_with_its_fate_and_why(client: InspectorClient) -> None:
    listed = client.get("api/conversations").json["conversations"]
    (chosen,) = [each["id"] for each in listed if each["turns"] == 12]
    page = client.get(f"api/conversation?id={chosen}").json
    assert [each["turn"] for each in page["requests"]] == [*range(1, 13)]
    last = page["requests"][-1]
    assert last["fates"].keys() == {"retired", "refitted", "told"}
    everything = client.get(f"api/images?id={chosen}&request={last['id']}").json["images"]
    assert {each["fate"] for each in everything} == last["fates"].keys()
    assert all(each["why"] and each["means"] and each["sha256"] for each in everything)
    assert [each["filename"] for each in last["images"]] == ["shot-11.png"]
    assert [each["alt"] for each in last["images"]] == [WORDS[:MAX_ALT]]
    assert (last["cached_messages"], last["messages"]) == (22, 23)
    assert (last["answer"]["input"], last["answer"]["cached"]) == (15090, 14100)
    assert last["answer"]["cost_usd"] > 0
    (edit,) = last["edits"]
    assert edit["before"].count("[image]") == 1
    later = client.get(f"api/conversation?id={chosen}&after={page['requests'][5]['id']}").json
    assert len(later["requests"]) == 6
    assert client.get("api/conversation?id=none").status == 404


@requirement("inspector.images")
def test_an_image_has_its_bytes_a_thumbnail_and_what_was_said(client: InspectorClient) -> None:
    image = paint_window(0)
    whole = client.get(f"api/image/{image.sha256}/file")
    assert (whole.status, whole.headers["content-type"], whole.body) == (200, "image/png", image.data)
    small = client.get(f"api/image/{image.sha256}/thumb")
    assert small.status == 200
    assert small.headers["content-type"].startswith("image/")
    assert len(small.body) < len(image.data)
    assert client.get(f"api/image/{image.sha256}/thumb").body == small.body
    said = client.get(f"api/image/{image.sha256}").json
    assert said["descriptions"][0]["seer"] == "zai/glm-5v"
    assert said["questions"][0]["cost_usd"] == pytest.approx(0.0011)
    assert said["questions"][0]["answer"] == "It says that the release was deployed."
    assert client.get(f"api/image/{'0' * 64}/thumb").status == 404
    assert client.get("api/image/..%2f..%2fsettings.json/file").status == 404


@requirement("inspector.images")
def test_an_image_that_was_forgotten_has_no_thumbnail_any_more(tmp_path: Path) -> None:
    record, image = open_record(tmp_path / "record"), paint_window(0)
    record_conversation(record, 1)
    record_conversation(record, 1, first="Another one", seed=5)
    with sightline(tmp_path) as proxy:
        client = log_in(proxy.url, tmp_path)
        thumb = client.get(f"api/image/{image.sha256}/thumb")
        assert (thumb.status, thumb.headers["cache-control"]) == (200, "no-store"), "no copies in the browser's cache"
        record.forget(image.sha256)
        record.close()
        assert client.get(f"api/image/{image.sha256}/thumb").status == 404
        assert client.get(f"api/image/{image.sha256}/file").status == 404
        (other,) = client.get("api/conversations").json["conversations"]
    assert other["images"] == 1, "the receipt of the other image stays"


@requirement("inspector.images")
def test_a_receipt_says_whether_the_record_has_its_image(client: InspectorClient, home: Path) -> None:
    """Images that a vision model gets unchanged from a tool are not kept."""
    lines = [
        ReceiptLine("/messages/0/content/0", "shown", sha256="0" * 64, filename="gone.png"),
        ReceiptLine("/messages/0/content/1", "shown", sha256=paint_window(0).sha256, filename="kept.png"),
        ReceiptLine("/messages/0/content/2", "refused", "damaged", filename="unknown.png"),
    ]
    parts = TraceParts("Some are kept", (), RequestTrace("", "", 1, 1))
    record = open_record(home / "record")
    record.ledger.file_receipt("", FiledReceipt(Receipt("up", "kept-or-not", tuple(lines)), "anthropic", parts=parts))
    record.close()
    listed = client.get("api/conversations").json["conversations"]
    (chosen,) = [each["id"] for each in listed if each["model"] == "kept-or-not"]
    (request,) = client.get(f"api/conversation?id={chosen}").json["requests"]
    images = client.get(f"api/images?id={chosen}&request={request['id']}").json["images"]
    for found in (request["images"], images):
        assert [each["kept"] for each in found] == [False, True, False]


@requirement("inspector.sent")
def test_a_refitted_image_is_shown_in_the_very_bytes_that_were_sent(client: InspectorClient) -> None:
    """The record doesn't keep them: they are made again, and compared with the receipt's sha256."""
    listed = client.get("api/conversations").json["conversations"]
    (chosen,) = [each["id"] for each in listed if each["turns"] == 12]
    requests = client.get(f"api/conversation?id={chosen}").json["requests"]
    image = next(image for each in requests for image in each["images"] if image["fate"] == "refitted")
    query = f"width={image['sent_size'][0]}&height={image['sent_size'][1]}&bytes={image['sent_bytes']}"
    sent = client.get(f"api/image/{image['sha256']}/sent?{query}&sha256={image['sent_sha256']}")
    assert (sent.status, sent.headers["x-sightline-exact"]) == (200, "yes")
    assert sha256(sent.body).hexdigest() == image["sent_sha256"]
    assert len(sent.body) == image["sent_bytes"]
    other = client.get(f"api/image/{image['sha256']}/sent?{query}&sha256={'0' * 64}")
    assert (other.status, other.headers["x-sightline-exact"]) == (200, "no")
    assert client.get(f"api/image/{'0' * 64}/sent?{query}").status == 404


@requirement("inspector.sent", "fit.page_folded")
def test_a_page_that_the_proxy_folded_is_shown_in_the_very_bytes_that_were_sent(
    client: InspectorClient, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_HOME", str(home))
    page = paint_lines([f"row {n}: the quick brown fox" for n in range(440)])
    (tmp_path / "page.png").write_bytes(page)
    assert isinstance(library.view(tmp_path / "page.png"), library.View)
    made = fit_image(page, ImageTarget(("image/jpeg", "image/png", "image/webp"), edge=8000, sizing=PaddedSizing()))
    assert isinstance(made, FitResult)
    assert "folded" in made.note
    image = made.parts[0].image
    query = f"width={image.size.width}&height={image.size.height}&bytes={len(image.data)}&sha256={image.sha256}"
    sent = client.get(f"api/image/{sha256(page).hexdigest()}/sent?{query}")
    assert (sent.status, sent.headers["x-sightline-exact"], sent.body) == (200, "yes", image.data)


@requirement("inspector.sent")
def test_a_view_is_shown_with_its_bytes_and_the_parts_of_the_image_in_it(
    client: InspectorClient, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is too tall to stay legible is folded; the parts are those of the original."""
    monkeypatch.setenv("SIGHTLINE_HOME", str(home))
    (tmp_path / "tall.png").write_bytes(paint_lines([f"line {n}: the quick brown fox" for n in range(440)]))
    whole = library.view(tmp_path / "tall.png")
    part = library.view(tmp_path / "tall.png", crop={"pixels": {"x": 10, "y": 20, "width": 200, "height": 100}})
    assert isinstance(whole, library.View)
    assert isinstance(part, library.View)
    digest = whole.image.removeprefix("sha256:")
    views = {each["pixels"]: each for each in client.get(f"api/image/{digest}").json["views"]}
    folded, cropped = views[whole.pixels.sha256], views[part.pixels.sha256]
    assert (folded["crop"], cropped["crop"]) == (None, [10, 20, 200, 100])
    assert client.get(f"api/image/{folded['pixels']}/file").body == whole.pixels.data
    pieces = client.get(f"api/image/{digest}/pieces?view={folded['pixels']}").json["pieces"]
    assert len(pieces) > 1
    assert sum(height for _, _, _, height in pieces) > folded["size"][1]
    assert client.get(f"api/image/{digest}/pieces?view={'0' * 64}").json == {"pieces": []}


@requirement("inspector.images")
def test_a_question_about_a_part_says_which(client: InspectorClient) -> None:
    crops = [client.get(f"api/image/{paint_window(n).sha256}").json["questions"][0]["crop"] for n in (0, 1)]
    assert crops == [None, [600, 450, 320, 90]]


@requirement("inspector.hostile")
def test_hostile_names_are_only_ever_data(client: InspectorClient) -> None:
    listed = client.get("api/conversations").json["conversations"]
    (chosen,) = [each["id"] for each in listed if each["turns"] == 2]
    page = client.get(f"api/conversation?id={chosen}")
    assert page.headers["content-type"] == "application/json"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.json["requests"][0]["images"][0]["filename"] == HOSTILE_NAME


@requirement("inspector.hostile")
def test_an_svg_is_never_served_as_one(client: InspectorClient, home: Path) -> None:
    data = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>document.title='run'</script></svg>"
    digest = sha256(data).hexdigest()
    record = open_record(home / "record")
    record.images.keep("", Image(digest, "image/svg+xml", Size(9, 9), data))
    record.close()
    for form in ("file", "thumb"):
        page = client.get(f"api/image/{digest}/{form}")
        assert "svg" not in page.headers["content-type"]
        assert b"<script" not in page.body


@requirement("inspector.changes")
def test_a_consent_and_a_setting_are_changed_only_when_confirmed(client: InspectorClient) -> None:
    consent = {"provider": "zai", "given": True}
    assert client.post("api/consent", consent).status == 400
    assert client.post("api/consent", {**consent, "confirmed": True}).json["ok"]
    shown = {each["name"]: each["consent"] for each in client.get("api/settings").json["providers"]}
    assert shown["zai"] is True
    assert client.post("api/consent", {**consent, "given": False, "confirmed": True}).json["ok"]
    setting = {"name": "maxImagesPerTurn", "value": "7", "confirmed": True}
    assert client.post("api/setting", {**setting, "confirmed": False}).status == 400
    assert client.post("api/setting", setting).json == {"ok": True}
    assert client.post("api/setting", {**setting, "value": "many"}).status == 400
    assert client.post("api/setting", {**setting, "name": "apiKey", "value": "sk-secret"}).status == 403
    rows = {each["name"]: each for each in client.get("api/settings").json["settings"]}
    assert {"value", "source", "restart"} <= rows["maxImagesPerTurn"].keys()


@requirement("inspector.try")
def test_an_image_can_be_tried_without_a_key(client: InspectorClient) -> None:
    picture = {"name": "a.png", "data": b64encode(paint_window(3).data).decode()}
    found = client.post("api/try", {"images": [picture], "question": ""}).json
    assert (found["ok"], found["seer"]) == (True, "local")
    assert "Deploy" in found["text"]
    part = client.post("api/try", {"images": [picture], "question": "", "crop": [0, 0, 400, 56]}).json
    assert "Deploy" not in part["text"]
    mistakes: list[dict[str, object]] = [
        {"images": []},
        {"images": [{"data": "%%"}]},
        {"images": [picture], "crop": [1, 2]},
        {"images": [{}]},
    ]
    for wrong in mistakes:
        assert client.post("api/try", wrong).status == 400
    assert client.post("api/try", {"images": [{"data": b64encode(bytes(range(256))).decode()}]}).json["ok"] is False


@requirement("inspector.live")
def test_a_new_request_is_an_event(client: InspectorClient, url: str, home: Path) -> None:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("GET", "/sightline/api/events", headers=client.headers)
    reply = connection.getresponse()
    assert reply.getheader("content-type") == "text/event-stream"
    first = reply.readline()
    assert first.startswith(b"data: ")
    record = open_record(home / "record")
    record_conversation(record, 1, first="A third conversation")
    record.close()
    lines = iter(reply.readline, b"")
    assert next(line for line in lines if line.startswith(b"data: ")) != first
    connection.close()
