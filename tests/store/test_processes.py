"""A record shared by processes: a killed process loses nothing that was acknowledged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sightline.model.ports import Store
from sightline.store import open_record
from tests.requirements import requirement
from tests.store.writer import description_of, image_of, perception_of


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.writer", str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def assert_holds(record: Store, name: str, numbers: range) -> None:
    for number in numbers:
        image, words = image_of(name, number), description_of(name, number)
        assert record.images.read(name, image.sha256) == image
        assert record.descriptions.read(name, image.sha256, words.seer, "v1") == words
        view = perception_of(name, number)
        assert record.images.read_view(name, view.id) == view


@requirement("record.acknowledged", "law.10")
def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    for round_number in range(5):
        name = f"round {round_number}"
        with writer(tmp_path, name, 10**9) as process:
            assert process.stdout
            for _ in range(3 + 7 * round_number):
                process.stdout.readline()
            process.kill()
            acknowledged = 3 + 7 * round_number + len(process.stdout.read().split("\n")) - 1
        record = open_record(tmp_path)
        assert_holds(record, name, range(acknowledged))
        record.close()


@requirement("record.acknowledged", "record.forget")
def test_a_process_killed_while_forgetting_leaves_a_consistent_record(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sightline.store import open_record\n"
        "from tests.store.writer import image_of\n"
        "record = open_record(Path(sys.argv[1]))\n"
        "for number in range(30): record.forget(image_of('cat', number).sha256); print(number, flush=True)"
    )
    writer(tmp_path, "cat", 30).communicate()
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for _ in range(10):
            process.stdout.readline()
        process.kill()
        forgotten = 10 + len(process.stdout.read().split("\n")) - 1
    record = open_record(tmp_path)
    for number in range(30):
        image, view = image_of("cat", number), perception_of("cat", number)
        if number < forgotten:
            assert record.images.read("cat", image.sha256) is None
            assert record.images.read_view("cat", view.id) is None
            assert record.descriptions.read("cat", image.sha256, "ollama/llava", "v1") is None
        elif number > forgotten:  # the one in between was under way
            assert record.images.read("cat", image.sha256) == image
            assert record.images.read_view("cat", view.id) == view
    record.close()


@requirement("record.processes")
def test_processes_can_share_one_record(tmp_path: Path) -> None:
    names = [f"process {number}" for number in range(4)]
    processes = [writer(tmp_path, name, 25) for name in names]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert outputs == [[str(number) for number in range(25)]] * 4
    record = open_record(tmp_path)
    for name in names:
        assert_holds(record, name, range(25))
    record.close()


def test_processes_that_create_a_record_together_agree_on_its_key(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sightline.store import open_record\n"
        "record = open_record(Path(sys.argv[1])); print(record.compute_scope('credential')); record.close()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    scopes = {process.communicate()[0] for process in processes}
    assert len(scopes) == 1
    assert scopes != {""}
