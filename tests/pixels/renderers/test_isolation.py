"""What a renderer cannot reach: the network, other files, other processes; and how a program is limited."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.run_program import run_program
from sightline.pixels.workers import WorkerPool, WorkerReply
from tests.requirements import requirement

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux isolates processes this way")

MODULE = "tests.pixels.renderers.intruder"
PYTHON = [sys.prefix, sys.base_prefix]  # that the programs of these tests may read, since they are Python


@pytest.fixture
def server() -> Iterator[int]:
    """Return a port on which connections are accepted."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def attempt(port: int, path: Path, *, isolated: bool) -> dict[str, object]:
    prepare = f"{MODULE}:isolate" if isolated else ""
    with WorkerPool({"try": f"{MODULE}:try_task"}, count=1, prepare=prepare) as pool:
        reply = pool.run_sync("try", b"", {"port": port, "path": str(path), "parent": os.getpid()})
    assert isinstance(reply, WorkerReply), reply
    return dict(reply.facts)


@requirement("render.isolated", "render.isolated.others")
def test_a_worker_reaches_no_network_no_other_file_and_no_other_process(server: int, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"secret")
    free = attempt(server, secret, isolated=False)
    for name in (
        "connect",
        "read",
        "write",
        "run",
        "fork",
        "limit",
        "prioritize",
        "pin",
        "share memory",
        "set the mode",
    ):
        assert free[name] is True, name
    tried = attempt(server, secret, isolated=True)
    assert tried.pop("in force") == ["landlock", "seccomp"]
    for name in ("read a library", "signal itself", "limit itself", "pin itself"):
        assert tried.pop(name) is True, name
    assert tried == dict.fromkeys(tried, "PermissionError")


def is_running(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run(code: str, **more: object) -> bytes | Refusal:
    command = [os.path.realpath(sys.executable), "-I", "-c", code]
    return run_program(command, {"source.txt": b"the source"}, readable=PYTHON, **more)  # type: ignore[arg-type]


@requirement("render.program")
def test_a_program_gets_its_files_and_a_home_and_its_output_is_returned() -> None:
    code = "import os; print(open('source.txt').read(), os.environ['HOME'] == os.getcwd(), sorted(os.environ))"
    written = run(code)
    assert isinstance(written, bytes)
    assert written.startswith(b"the source True ")
    assert b"KEY" not in written
    assert run("open('out.pdf', 'wb').write(b'%PDF')", output="out.pdf") == b"%PDF"


@requirement("render.program", "render.isolated")
def test_a_program_reaches_no_network_and_no_other_file(server: int, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    code = f"""
import ctypes, os, resource, socket
def share_memory():
    if ctypes.CDLL(None).shmget(0, 4096, 0o1600) < 0:
        raise PermissionError
def unshare():
    if ctypes.CDLL(None).unshare(0x10000000) < 0:
        raise PermissionError
def attempt(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"
print(attempt(lambda: socket.create_connection(("127.0.0.1", {server}), 5)))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
print(attempt(lambda: open({str(tmp_path / "secret.txt")!r})))
print(attempt(lambda: open("/proc/{os.getpid()}/environ")))
print(attempt(lambda: os.kill({os.getpid()}, 0)))
print(attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
print(attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)))
print(attempt(lambda: resource.prlimit({os.getpid()}, resource.RLIMIT_CORE)))
print(attempt(lambda: os.setpriority(os.PRIO_PROCESS, {os.getpid()}, 0)))
print(attempt(lambda: os.sched_setaffinity({os.getpid()}, {{0}})))
print(attempt(share_memory))
print(attempt(unshare))
print(attempt(lambda: open("/dev/shm/sightline-test", "w")))
print(attempt(lambda: socket.socket(socket.AF_UNIX).bind("pipe")))
print(attempt(lambda: socket.socketpair()))
print(attempt(lambda: open("new.txt", "w")))
print(attempt(lambda: os.chmod("new.txt", 0o600)))
"""
    written = run(code)
    assert isinstance(written, bytes)
    assert written.decode().split() == [*["PermissionError"] * 13, *["done"] * 4]


@requirement("render.program", "render.isolated")
def test_a_program_cannot_connect_to_a_local_socket_with_a_path(tmp_path: Path) -> None:
    path = str(tmp_path / "service")
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(path)
        service.listen()
        code = f"""
import socket
try:
    socket.socket(socket.AF_UNIX).connect({path!r})
except OSError as error:
    print(type(error).__name__)
"""
        assert run(code) == b"PermissionError\n"


@requirement("render.program", "render.isolated.others")
def test_a_program_does_not_change_attributes_of_files(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(b"other")
    before = other.stat()
    code = f"""
import os
for path in ({str(other)!r}, "source.txt"):
    os.chmod(path, 0o444)
    os.utime(path, (1, 1))
print("done")
"""
    assert run(code) == b"done\n"
    assert other.stat() == before


@requirement("render.program", "render.isolated")
def test_a_program_may_only_make_sockets_in_a_socket_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    code = f"""
import os, socket
def attempt(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"
folder = {str(tmp_path)!r}
print(attempt(lambda: socket.socket(socket.AF_UNIX).bind(folder + "/socket")))
print(attempt(lambda: open(folder + "/secret.txt")))
print(attempt(lambda: open(folder + "/new.txt", "w")))
print(attempt(lambda: os.unlink(folder + "/secret.txt")))
print(attempt(lambda: os.listdir(folder)))
"""
    written = run(code, socket_folders=[str(tmp_path)])
    assert isinstance(written, bytes)
    assert written.decode().split() == ["done", *["PermissionError"] * 4]


@requirement("render.program", "render.limits")
@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("import time; time.sleep(60)", "too_large"),
        ("raise SystemExit(3)", "corrupt"),
        ("import os; os.symlink('/etc/passwd', 'out.pdf')", "corrupt"),
        ("import os; os.mkfifo('out.pdf')", "corrupt"),
        ("bytearray(1 << 30)", "corrupt"),
    ],
    ids=["slow", "failing", "a link", "a pipe", "large"],
)
def test_a_program_that_goes_wrong_is_a_refusal(code: str, refusal: str) -> None:
    made = run(code, output="out.pdf", seconds=1.0 if refusal == "too_large" else 30.0, memory=1 << 28)
    assert isinstance(made, Refusal)
    assert made.code == refusal


@requirement("render.program", "render.limits")
def test_a_program_that_uses_up_its_cpu_time_is_too_large() -> None:
    made = run("while True: pass", title="The suite", seconds=60.0, cpu_seconds=1.0)
    assert isinstance(made, Refusal)
    assert made.code == "too_large"
    assert "The suite" in made.what


@requirement("render.program")
def test_no_process_of_a_program_outlives_it() -> None:
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(os.getpgrp(), flush=True)"
    written = run(code)
    assert isinstance(written, bytes)
    while is_running(int(written)):  # a killed process may take a moment to be gone
        os.sched_yield()


@requirement("render.program")
def test_a_program_that_is_not_installed_is_unavailable() -> None:
    made = run_program(["no-such-program"], {})
    assert isinstance(made, Refusal)
    assert made.code == "render_unavailable"
