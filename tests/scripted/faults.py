"""Ways in which a scripted provider misbehaves on purpose, one request each."""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Fault:
    """Strikes the next request whose model matches; requests without a model match only `*`."""

    model: str = field(default="*", kw_only=True)

    def strikes(self, model: str | None) -> bool:
        return self.model == "*" or (model is not None and fnmatchcase(model, self.model))


@dataclass(frozen=True)
class Refuse(Fault):
    """Close the connection at accept, or unanswered where it is already open."""


@dataclass(frozen=True)
class Reset(Fault):
    """Send half of the headers, then reset the connection."""


@dataclass(frozen=True)
class Garble(Fault):
    """Answer with what is no HTTP."""

    said: bytes = b"\x16\x03\x01 SSH-2.0-none\r\n\r\n"


@dataclass(frozen=True)
class Page(Fault):
    """Answer with a status, a content type and a body that no wire has."""

    status: int = 200
    kind: str = "text/html"
    body: bytes = b"<!DOCTYPE html><html><body>Please log in to this network.</body></html>"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Cut(Fault):
    """End the connection after so many events of a stream; in a whole answer, amid its body."""

    after: int = 0
    reset: bool = False


@dataclass(frozen=True)
class Fail(Fault):
    """Answer with an error status in the wire's shape."""

    status: int = 500
    retry_after: int | None = None
    words: str = ""  # instead of the usual ones


@dataclass(frozen=True)
class Break(Fault):
    """Answer 200 and, after so many events of a stream, send an error event and end."""

    after: int = 1


@dataclass(frozen=True)
class Hang(Fault):
    """Wait for `release`: before the headers, or after so many parts of the answer."""

    after: int | None = None
    reached: Future[None] = field(default_factory=Future, compare=False)
    released: Future[None] = field(default_factory=Future, compare=False)

    def release(self) -> None:
        """Let the answer go on; harmless when it already has, or when the client has left."""
        if not self.released.done():
            self.released.set_result(None)

    async def wait(self) -> None:
        """The provider's side: say that it has come to the place, and wait there."""
        if not self.reached.done():
            self.reached.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self.released))
