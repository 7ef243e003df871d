"""PostgreSQL, pgbouncer and an S3 server as processes on loopback, each in a folder of its own.

`scripts/stores-env` installs them. PostgreSQL refuses to run as root, so root starts it as `nobody`.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import psycopg
from obstore.exceptions import BaseError
from obstore.store import S3Store

if TYPE_CHECKING:
    from obstore.store import S3Config

ROOT = Path(__file__).parents[1]
USER, PASSWORD = "sightline", "a-secret-word"
_PATIENCE = 40.0
_OTHER_NAME = "nobody" if os.geteuid() == 0 else ""
_OTHER_USER: dict[str, Any] = {"user": _OTHER_NAME, "group": "nogroup", "extra_groups": []} if _OTHER_NAME else {}


def find_commands() -> Path:
    """The folder with the servers' commands; they are installed if needed."""
    done = subprocess.run([ROOT / "scripts" / "stores-env"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def find_low_ports(count: int) -> list[int]:
    """Free ports for SeaweedFS, which also takes each of them plus 10000."""
    found = []
    for port in random.sample(range(11_000, 22_000), 2_000):
        try:
            for number in (port, port + 10_000):
                socket.create_server(("127.0.0.1", number)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            break
    return found


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that the servers' user may enter: pytest's own are for root alone."""
    folder = Path(tempfile.mkdtemp(prefix="sightline-server-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Process:
    """A server that can be stopped, killed, frozen and started again."""

    def __init__(self, command: Sequence[object], folder: Path, *, as_other: bool = False) -> None:
        self._command, self._folder, self._as_other = [*map(str, command)], folder, as_other
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                **(_OTHER_USER if self._as_other else {}),
            )

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Stop the process and its children, as a machine that hangs does."""
        for pid in self._list_processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._list_processes():
            os.kill(pid, signal.SIGCONT)

    def _list_processes(self) -> list[int]:
        assert self._process
        main = self._process.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        return [main, *map(int, children)]

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")


class Postgres:
    """A cluster whose users need passwords.

    If it isn't `durable`, it doesn't wait for the disk: what it has committed survives its end, but no power failure.
    """

    def __init__(self, commands: Path, folder: Path, *, durable: bool = False) -> None:
        (self.port,) = free_ports(1)
        if _OTHER_NAME:
            shutil.chown(folder, _OTHER_NAME)
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        subprocess.run(
            [(commands / "initdb").resolve(), "-D", folder / "data", "-U", USER, "--auth=scram-sha-256",
             "--pwfile", password, "--no-sync", "--encoding=UTF8", "--locale=C"],
            check=True, stdout=subprocess.DEVNULL, cwd=folder, **_OTHER_USER,
        )  # fmt: skip
        command = [(commands / "postgres").resolve(), "-D", folder / "data", "-p", self.port, "-k", folder]
        options = ("listen_addresses=127.0.0.1", "max_connections=200", f"fsync={'on' if durable else 'off'}")
        words = [word for option in options for word in ("-c", option)]
        self.process = Process([*command, *words], folder, as_other=True)

    def start(self) -> None:
        self.process.start()
        wait_until(lambda: self.connect().close(), psycopg.Error)

    def stop(self) -> None:
        """Stop without waiting for clients, as a restart of the server does."""
        self.process.stop(signal.SIGINT)

    def address(self, database: str, password: str = PASSWORD, user: str = USER) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.address(database), autocommit=True, connect_timeout=5)

    def create_database(self) -> str:
        name = f"record_{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name


class PgBouncer:
    """A pooler in transaction mode in front of a cluster."""

    def __init__(self, commands: Path, folder: Path, postgres: Postgres) -> None:
        (self.port,) = free_ports(1)
        (folder / "users").write_text(f'"{USER}" "{PASSWORD}"\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={postgres.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {folder}/users\n"
            "pool_mode = transaction\ndefault_pool_size = 5\nmax_client_conn = 100\n"
        )
        if _OTHER_NAME:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, _OTHER_NAME)
        self.process = Process([(commands / "pgbouncer").resolve(), folder / "pgbouncer.ini"], folder, as_other=True)

    def start(self) -> None:
        self.process.start()
        wait_until(lambda: socket.create_connection(("127.0.0.1", self.port)).close(), OSError)

    def stop(self) -> None:
        self.process.stop()

    def address(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"


class S3:
    """SeaweedFS with two keys: `writer` may do everything, `reader` may only read."""

    def __init__(self, commands: Path, folder: Path) -> None:
        self.port, master, volume, filer = find_low_ports(4)
        rights = {"writer": ["Admin", "Read", "Write", "List"], "reader": ["Read", "List"]}
        keys = [
            {"name": name, "credentials": [{"accessKey": name, "secretKey": f"{name}-secret"}], "actions": actions}
            for name, actions in rights.items()
        ]
        (folder / "s3.json").write_text(json.dumps({"identities": keys}))
        (folder / "data").mkdir()
        command = f"""{commands / "weed"} -logtostderr=true server -dir {folder}/data -ip 127.0.0.1 -ip.bind 127.0.0.1
            -master.port {master} -master.electionTimeout 1s -master.heartbeatInterval 100ms
            -master.volumeSizeLimitMB 64 -volume.port {volume} -volume.max 50
            -filer -filer.port {filer} -s3 -s3.port {self.port} -s3.config {folder}/s3.json
            -s3.port.iceberg 0 -s3.port.lance 0"""
        self.process = Process(command.split(), folder)

    def start(self) -> None:
        self.process.start()
        probe = S3Store(
            "probe", config=self._config("writer"), client_options={"allow_http": True}, retry_config={"max_retries": 0}
        )
        wait_until(lambda: obstore.put(probe, "ready", b"yes", use_multipart=False), BaseError)

    def environment(self, name: str = "writer") -> Mapping[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": name,
            "AWS_SECRET_ACCESS_KEY": f"{name}-secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
        }

    def stop(self) -> None:
        self.process.stop(signal.SIGKILL)

    def open(self, bucket: str) -> S3Store:
        return S3Store(bucket, config=self._config("writer"), client_options={"allow_http": True})

    def _config(self, name: str) -> S3Config:
        return {
            "access_key_id": name,
            "secret_access_key": f"{name}-secret",
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
        }


def wait_until(attempt: Callable[[], object], *errors: type[BaseException]) -> None:
    """Try until it works: a server that starts can't be asked when it is ready."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            attempt()
        except errors:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
