"""Connections to PostgreSQL whose waits end: one for statements, and one that listens for changes.

Each wait for the server ends after a few seconds. Shortly before, the statement is cancelled: if the server replies to
that, the statement was only slow, else the server is down. Either way the connection is closed.

The ports' SQL is SQLite's. What differs in a statement is translated:

| SQLite              | PostgreSQL                                            |
|---------------------|-------------------------------------------------------|
| `?`, `?1`           | `%(p1)s`                                              |
| `instr(text, part)` | `strpos(text, part)`                                  |
| `json_each(array)`  | `json_array_elements_text(…) AS json_each(value)`     |
| `AS REAL`           | `AS DOUBLE PRECISION`                                 |
| `NOT INDEXED`       | nothing: a damaged index is PostgreSQL's own business |
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo

from sightline.store.sql import Row, SqlCursor

CHANNEL = "sightline_changes"
CONNECT_SECONDS = 3
REPLY_SECONDS = 5.0
_CANCEL_AT = 0.8  # of these seconds
_PLACEHOLDER = re.compile(r"\?(\d*)")
_JSON_EACH = re.compile(r"json_each\(([^()]*)\)")

RV = TypeVar("RV")


class NoReplyError(psycopg.OperationalError):
    """The server has not even replied to the cancellation of a statement."""


class BoundedConnection(psycopg.Connection[Row]):
    """A connection that is closed if the server doesn't reply in time."""

    reply_seconds = REPLY_SECONDS
    closing = threading.Event()  # set: what takes longer than usual is given up, too

    def wait(self, gen: Generator[Any, Any, RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        return super().wait(gen if timeout is not None else self._limit_wait(gen), interval, timeout)

    def _limit_wait(self, gen: Generator[Any, Any, RV]) -> Generator[Any, Any, RV]:
        """Pass a generator of psycopg on until it ends or the time is over."""
        began, is_cancelled = time.monotonic(), False
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready:
                    waited = time.monotonic() - began
                    self._check_reply(waited)
                    is_cancelled = is_cancelled or self._cancel_if_slow(waited)
                state = gen.send(ready)
        except StopIteration as end:
            if not is_cancelled:
                value: RV = end.value
                return value
        except NoReplyError:
            raise
        except psycopg.Error:
            if not is_cancelled:
                raise
        self.pgconn.finish()  # else a cancellation that is late would hit the next statement
        raise psycopg.errors.QueryCanceled("a statement took too long")

    def _check_reply(self, waited: float) -> None:
        if waited > (REPLY_SECONDS if self.closing.is_set() else self.reply_seconds):
            self.pgconn.finish()
            raise NoReplyError("the server does not reply")

    def _cancel_if_slow(self, waited: float) -> bool:
        """Cancel the statement if it takes too long, and return whether that was tried."""
        if waited < self.reply_seconds * _CANCEL_AT or not psycopg.capabilities.has_cancel_safe():
            return False
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=min(1.0, self.reply_seconds / 10))
        return True


class ChangeListener:
    """A connection on which the server says at once that a change was announced.

    That is only a hint: a pooler in transaction mode passes nothing on, and what is said while there is no connection
    is lost.
    """

    def __init__(self, address: str) -> None:
        self._conninfo = make_conninfo(address, connect_timeout=CONNECT_SECONDS)
        self._connection: psycopg.Connection[Row] | None = None

    def wait(self, seconds: float) -> None:
        """Wait until a change is announced, or for so long. Raise `psycopg.Error` if the connection is lost.

        On a new connection, don't wait: what was announced before it was there has to be asked for.
        """
        try:
            if self._connection is None:
                self._connection = BoundedConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
                self._connection.execute(f"LISTEN {CHANNEL}")
                return
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                return
        except psycopg.Error:
            self.close()
            raise

    def interrupt(self) -> None:
        """Make a thread that waits return or raise."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PostgresConnection:
    """A connection within a transaction, for statements in the ports' dialect."""

    def __init__(self, raw: psycopg.Connection[Row]) -> None:
        self._raw = raw
        self.announced = 0  # the number of the change that this transaction announces; 0: none

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> SqlCursor:
        return self._raw.execute(translate_statement(statement), convert_values(values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> SqlCursor:
        cursor = self._raw.cursor()
        cursor.executemany(translate_statement(statement), [*map(convert_values, rows)])
        return cursor


@lru_cache(maxsize=512)
def translate_statement(statement: str) -> str:
    """Return a statement that reads or writes rows, for psycopg."""
    count = 0

    def name_placeholder(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"%(p{found[1] or count})s"

    text = _JSON_EACH.sub(r"json_array_elements_text(CAST(\1 AS json)) AS json_each(value)", statement)
    text = text.replace("AS REAL)", "AS DOUBLE PRECISION)").replace("instr(", "strpos(").replace(" NOT INDEXED", "")
    return _PLACEHOLDER.sub(name_placeholder, text.replace("%", "%%"))


def convert_values(values: Sequence[object]) -> Mapping[str, object]:
    """Return the values for the placeholders of a statement.

    A truth value is a number in the record. PostgreSQL's texts can't contain the character NUL.
    """
    return {f"p{number}": _convert(value) for number, value in enumerate(values, 1)}


def _convert(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and "\0" in value:
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value
