"""A damaged record: `doctor` and every server say so in one line, requests flow, and `sightline store repair` helps."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.store import open_record
from tests.acp.editing import SEES, acting, editor, text
from tests.cli.command import ALONE, COMMAND, assert_refused, environment, sightline
from tests.cli.forked import Forked
from tests.engine.parts import picture
from tests.mcp.serving import client
from tests.proxy.clients import ask_chat
from tests.requirements import requirement
from tests.scripted.provider import Provider
from tests.store.damaged_records import DAMAGES, damage_root, fill
from tests.store.writer import image_of

Damage = Callable[[Path], None]
REPAIR = "sightline store repair"
SOME = {name: DAMAGES[name] for name in ("header zeroed", "root page of consents", "garbage in the log")}


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "record"
    fill(folder)
    return folder


@pytest.fixture
def record(filled: Path, home: Path) -> Path:
    return Path(shutil.copytree(filled, home / "record"))


def about_damage(said: str) -> list[str]:
    return [line for line in said.splitlines() if REPAIR in line]


@requirement("record.damage.found", "doctor")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_doctor_reports_a_damaged_record_and_the_repair_command(record: Path, damage: Damage) -> None:
    damage(record)
    ended = sightline("doctor", env=ALONE)
    assert ended.code == 1
    assert len(about_damage(ended.out)) == 1
    assert ended.err == ""
    ended = sightline("doctor", "--json", env=ALONE)
    assert (ended.code, ended.json["ok"], ended.json["reason"]) == (1, False, "corrupt")
    assert REPAIR in ended.json["message"]
    assert REPAIR in ended.json["record"]["trouble"]


def close_folder(record: Path) -> None:
    record.chmod(0o500)


def close_database(record: Path) -> None:
    (record / "record.sqlite").chmod(0o400)


def break_link(name: str) -> Damage:
    def damage(record: Path) -> None:
        (record / name).rename(record.parent / "moved")
        (record / name).symlink_to(record.parent / "not there")

    return damage


def break_link_to_folder(record: Path) -> None:
    record.rename(record.with_name("moved"))
    record.symlink_to(record.with_name("not there"))


OBSTACLES: dict[str, Damage] = {
    "folder closed": close_folder,
    "database closed": close_database,
    "link to the folder": break_link_to_folder,
    **{f"link to {name}": break_link(name) for name in ("record.sqlite", "scope.key", "blobs")},
}


@requirement("record.trouble.found", "doctor")
@pytest.mark.skipif(sys.platform != "linux", reason="rights are others there")
@pytest.mark.parametrize("obstruct", OBSTACLES.values(), ids=OBSTACLES)
def test_doctor_says_why_a_record_cannot_be_written(record: Path, obstruct: Damage) -> None:
    obstruct(record)
    ended = sightline("doctor", "--json", env=ALONE, powerless=True)
    assert ended.code == 1, ended
    report = ended.json
    assert (report["ok"], report["reason"]) == (False, "unavailable")
    assert report["message"] == report["record"]["trouble"]
    assert "Errno" not in ended.out
    assert REPAIR not in report["message"]
    for words in (
        ["consent", "yes", "openai"],
        ["store", "repair"] if "link" in str(obstruct) else ["consent", "no", "x"],
    ):
        refused = sightline(*words, powerless=True)
        assert refused.code == 1
        assert "Errno" not in refused.err


@requirement("record.trouble.found", "doctor")
@pytest.mark.skipif(sys.platform != "linux", reason="there are no such namespaces")
def test_doctor_reports_a_read_only_file_system(record: Path) -> None:
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    alone = next((way for way in (["unshare", "-m"], ["unshare", "-rm"]) if can_mount(way)), None)
    if alone is None:
        pytest.skip("no file system can be mounted here")
    ended = subprocess.run(
        [*alone, "sh", "-c", mount, str(record), *COMMAND, "doctor", "--json"],
        capture_output=True, text=True, env=environment(**ALONE), check=False,
    )  # fmt: skip
    assert ended.returncode == 1, ended
    assert "read-only" in json.loads(ended.stdout)["message"]


@requirement("record.trouble.found", "doctor")
@pytest.mark.parametrize("name", ["", "blobs", "scope.key"])
def test_doctor_names_a_file_or_folder_of_the_wrong_kind(record: Path, name: str) -> None:
    wrong = record / name
    is_folder = wrong.is_dir()
    moved = wrong.rename(record.parent / "moved")
    wrong.write_bytes(b"") if is_folder else wrong.mkdir()
    report = sightline("doctor", "--json", env=ALONE).json
    assert (report["ok"], report["reason"]) == (False, "unavailable")
    assert report["message"] == report["record"]["trouble"]
    assert f"({wrong})" in report["message"]
    assert f"move that {'file' if is_folder else 'folder'} away" in report["message"]
    assert REPAIR not in report["message"], "it does not help here"
    wrong.unlink() if is_folder else wrong.rmdir()
    moved.rename(wrong)
    assert sightline("doctor", env=ALONE).code == 0


@requirement("record.trouble.found")
def test_forget_does_not_delete_a_database_of_another_program(record: Path) -> None:
    (record / "record.sqlite").unlink()
    database = sqlite3.connect(record / "record.sqlite")
    database.execute("CREATE TABLE theirs (anything)")
    database.close()
    before = (record / "record.sqlite").read_bytes()
    assert sightline("forget", "--all", env=ALONE).code == 1
    assert (record / "record.sqlite").read_bytes() == before


def can_mount(way: list[str]) -> bool:
    mount = [*way, "mount", "--bind", "/tmp", "/tmp"]
    return (
        shutil.which("unshare") is not None and not subprocess.run(mount, capture_output=True, check=False).returncode
    )


@requirement("record.damage.found", "doctor")
def test_doctor_reports_nothing_about_a_sound_record(record: Path) -> None:
    report = sightline("doctor", "--json", env=ALONE).json["record"]
    assert (report["trouble"], report["missing"], report["checked"]) == (None, 0, True)
    next(record.rglob(image_of("cat", 1).sha256)).unlink()
    assert sightline("doctor", "--json", env=ALONE).json["record"]["missing"] == 1
    ended = sightline("doctor", env=ALONE)
    assert ended.code == 1
    assert about_damage(ended.out)


@requirement("record.damage.found", "record.trouble")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_server_reports_damage_once_and_serves_requests(record: Path, damage: Damage) -> None:
    damage(record)
    with Provider() as provider:
        words = ["serve", "--port", "0", "--upstream", f"up={provider.url}"]
        process = Forked(words, environment(**ALONE), None, (0, subprocess.PIPE, subprocess.PIPE))
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            url = process.stdout.readline().decode().split()[-1]
            try:
                for _ in range(2):
                    assert ask_chat(f"{url}/u/up", "eye", [{"role": "user", "content": "Hello."}])
            finally:
                process.terminate()
                process.wait(30)
            said = process.stderr.read().decode()
    assert len(about_damage(said)) == 1, said
    assert "Traceback" not in said


@requirement("record.damage.found")
@pytest.mark.parametrize("damage", SOME.values(), ids=SOME)
def test_several_workers_report_damage_once(record: Path, damage: Damage) -> None:
    damage(record)
    command = [*COMMAND, "serve", "--port", "0", "--workers", "3"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**ALONE)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Sightline listens")
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert len(about_damage(said)) == 1, said


@requirement("record.damage.found")
@pytest.mark.parametrize("damage", SOME.values(), ids=SOME)
def test_the_relay_reports_damage_once(record: Path, tmp_path: Path, damage: Damage) -> None:
    damage(record)
    with editor(*acting(initialize=SEES), stderr=subprocess.PIPE) as ours:
        session = ours.open(tmp_path)
        for _ in range(2):
            ours.prompt(session, text("/vision-proxy consent list"))
        assert "openai: images" not in ours.said()
        ours.prompt(session, text("/vision-proxy consent yes openai"))
        assert "could not be written" in ours.said()
        assert REPAIR in ours.said()
        ours.leave()
        assert ours.process.stderr is not None
        assert len(about_damage(ours.process.stderr.read().decode())) == 1


@requirement("record.damage.found")
@pytest.mark.parametrize("damage", SOME.values(), ids=SOME)
async def test_the_mcp_server_works_despite_damage(record: Path, tmp_path: Path, damage: Damage) -> None:
    damage(record)
    (tmp_path / "shot.png").write_bytes(picture())
    async with client(("stdio", "auto"), tmp_path, env=ALONE) as one:
        for _ in range(2):
            result = await one.call_tool("view_image", {"path": "shot.png"})
            assert not result.is_error


@requirement("record.damage.found")
@pytest.mark.parametrize("damage", SOME.values(), ids=SOME)
def test_the_library_reports_damage_once(record: Path, tmp_path: Path, damage: Damage) -> None:
    damage(record)
    (tmp_path / "shot.png").write_bytes(picture())
    code = "import sightline; print([sightline.view('shot.png').mime for _ in range(3)])"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment(**ALONE), check=True
    )
    assert ended.stdout == "['image/png', 'image/png', 'image/png']\n"
    assert len(about_damage(ended.stderr)) == 1


@requirement("store.repair", "cli.exit")
def test_a_repair_says_what_it_did(record: Path) -> None:
    damage_root("entries")(record)
    ended = sightline("store", "repair")
    assert (ended.code, ended.err) == (0, "")
    assert "repaired the record in" in ended.out
    assert "\033" not in ended.out
    again = sightline("store", "repair")
    assert (again.code, again.err) == (0, "")
    assert again.out == f"the record in {record} is not damaged; nothing had to be repaired\n"
    assert sightline("doctor", "--json", env=ALONE).json["record"]["trouble"] is None


@requirement("store.repair", "store.repair.consents")
def test_a_repair_is_reported_as_json(record: Path) -> None:
    DAMAGES["root page of consents"](record)
    found = sightline("store", "repair", "--json").json
    assert (found["ok"], found["folder"], found["left_out"], found["adopted"]) == (True, str(record), 0, 0)
    assert found["damage"]
    assert found["kept"]["images"] == 60
    assert found["kept"]["consents"] == 0
    assert (found["consents_lost"], found["consent_again"]) == (True, [])
    assert Path(found["aside"]).is_file()


@requirement("store.repair.consents")
@pytest.mark.parametrize("name", ["header zeroed", "root page of consents", "database deleted", "a text file"])
def test_a_repair_that_loses_consents_says_how_to_give_them_again(record: Path, name: str) -> None:
    DAMAGES[name](record)
    assert "sightline consent yes" in sightline("store", "repair").out


@requirement("store.repair.consents")
def test_a_repair_that_keeps_consents_does_not_mention_them(record: Path) -> None:
    damage_root("entries")(record)
    assert "consent yes" not in sightline("store", "repair").out


@requirement("record.damage.found", "record.crash_debris")
def test_no_command_removes_the_images_of_a_record_without_its_database(home: Path) -> None:
    data, folder = picture(), home / "record"
    image = Image(sha256(data).hexdigest(), "image/png", Size(320, 240), data)
    record = open_record(folder)
    record.images.keep("scope", image)
    record.close()
    DAMAGES["database deleted"](folder)
    (folder / "swept").unlink()
    for words in (["consent", "list"], ["usage"], ["doctor"]):
        sightline(*words, env=ALONE)
    assert [path.name for path in (folder / "blobs").glob("??/??/*")] == [image.sha256]
    assert sightline("store", "repair", "--json").json["adopted"] == 1
    record = open_record(folder)
    assert record.images.read(record.compute_scope(""), image.sha256) == image
    record.close()


@requirement("store.repair.images")
def test_images_with_only_bytes_left_are_assigned_to_the_owner(home: Path) -> None:
    data, folder = picture(), home / "record"
    image = Image(sha256(data).hexdigest(), "image/png", Size(320, 240), data)
    record = open_record(folder)
    record.images.keep("another scope", image)
    record.close()
    damage_root("images")(folder)
    assert sightline("store", "repair", "--json").json["adopted"] == 1
    record = open_record(folder)
    assert record.images.read(record.compute_scope(""), image.sha256) == image
    record.close()


@requirement("store.repair", "cli.exit", "cli.wrong_usage")
def test_an_impossible_repair_is_refused(home: Path) -> None:
    assert_refused(sightline("store", "repair"), "there is no record")
    assert sightline("store", "repair", "--json").json["reason"] == "not_found"
    assert sightline("store").code == 2
    assert sightline("store", "mend").code == 2
    assert not (home / "record").exists()


@requirement("store.stats", "store.copy", "store.gc")
def test_a_record_is_measured_exported_imported_and_cleaned_up(home: Path, tmp_path: Path) -> None:
    fill(home / "record")
    before = sightline("store", "stats", "--json").json
    assert before["images"] > 0
    copy = tmp_path / "copy"
    exported = sightline("store", "export", str(copy), "--json").json
    assert exported["copied"] == before["rows"]
    assert_refused(sightline("store", "import", str(tmp_path / "nothing")), str(tmp_path / "nothing"))
    assert_refused(sightline("store", "import", str(home / "record")), str(home / "record"))
    shutil.rmtree(home / "record")
    assert sightline("store", "import", str(copy), "--json").json["copied"] == before["rows"]
    after = sightline("store", "stats", "--json").json
    assert after == before
    assert sightline("store", "gc", "--days", "1", "--json").json["rows"] == 0
    with closing(sqlite3.connect(home / "record" / "record.sqlite")) as connection, connection:
        connection.execute("UPDATE images SET used = used - 10 * 86400 WHERE rowid = 1")
        connection.execute("UPDATE images SET used = used - 3 * 86400, bytes = 1 << 30 WHERE rowid = 2")
    for bounds in (["--days", "7"], ["--days", "7", "--gib", "1"]):
        assert sightline("store", "gc", *bounds, "--json").json["rows"] == 1
        assert sightline("store", "gc", *bounds, "--json").json["rows"] == 0
    assert sightline("store", "stats", "--json").json["images"] == before["images"] - 2


@requirement("record.shared.refused")
def test_addresses_of_other_kinds_are_refused_and_nothing_is_created(home: Path) -> None:
    good, blobs = "postgresql://me@127.0.0.1:1/record", "s3://bucket"
    for words in (
        ["--store", "mysql://db/x", "--blobs", blobs],
        ["--store", good, "--blobs", "gs://b"],
        ["--store", good],
        ["--store", "postgresql://me:p@ss-word@127.0.0.1:1/record", "--blobs", blobs],
    ):
        refused = sightline("serve", "--port", "0", *words)
        assert_refused(refused, "blobs" if words[1] == good else "store")
        assert "ss-word" not in refused.err
    assert_refused(sightline("serve", "--port", "0", "--store", good, "--blobs", blobs), "127.0.0.1")
    assert not (home / "record").exists()


@requirement("store.repair", "record.shared.settings")
def test_a_record_on_servers_is_not_repaired_and_its_own_folder_is_left_alone(tmp_path: Path) -> None:
    shared = {"SIGHTLINE_STORE": "postgresql://nobody@127.0.0.1:1/x", "SIGHTLINE_BLOBS": f"file://{tmp_path}/blobs"}
    ended = sightline("store", "repair", "--json", env={"SIGHTLINE_HOME": str(tmp_path / "home"), **shared})
    assert ended.code == 1
    assert ended.json["reason"] == "unavailable"
    assert "sightline doctor" in ended.json["message"]
    assert not (tmp_path / "blobs").exists()
