"""The servers of a shared record, and the databases on them that tests use one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sightline.model.shared_address import SharedAddress
from tests.real_servers import S3, PgBouncer, Postgres, find_commands, private_folder
from tests.waiting import try_again


@dataclass
class Servers:
    postgres: Postgres
    s3: S3
    bouncer: PgBouncer | None  # None: it is not installed
    databases: dict[Path, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    recycled: int = 0  # how often databases were emptied; their images stay, under another prefix

    def address(self, folder: Path) -> SharedAddress:
        """The addresses of the record that takes the place of the one in a folder."""
        if folder not in self.databases:
            self.databases[folder] = self.unused.pop() if self.unused else self.postgres.create_database()
        name = self.databases[folder]
        blobs = f"s3://records/{name}-{self.recycled}"
        return SharedAddress(self.postgres.address(name), blobs, self.s3.environment())

    def recycle_databases(self) -> None:
        """Empty the databases of a test for the next one, which is faster than to create them."""
        for name in self.databases.values():
            with self.postgres.connect(name) as connection:
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute("CREATE SCHEMA public")
            self.unused.append(name)
        self.databases.clear()
        self.recycled += 1


@contextmanager
def run_servers(*, durable: bool = False) -> Iterator[Servers]:
    """Run all servers until the block ends; see `Postgres`."""
    commands = find_commands()
    with ExitStack() as stack:
        postgres = Postgres(commands, stack.enter_context(private_folder()), durable=durable)
        s3 = S3(commands, stack.enter_context(private_folder()))
        is_installed = (commands / "pgbouncer").exists()
        bouncer = PgBouncer(commands, stack.enter_context(private_folder()), postgres) if is_installed else None
        for server in (postgres, s3, bouncer):
            if server is not None:
                stack.callback(server.stop)
                server.start()
        yield Servers(postgres, s3, bouncer)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for what another process or thread does."""
    for _ in try_again(seconds):
        if condition():
            return
        time.sleep(0.02)
