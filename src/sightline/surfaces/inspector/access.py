"""Who may open the inspector: a link that works once, then a cookie.

A ticket and a session are files in a folder that only the user can read, named by the hash of a random token. So all
processes of the user agree on them, and a stolen folder listing opens nothing. Redeeming a ticket deletes its file:
the first one to do so gets the session.
"""

from __future__ import annotations

import hmac
import secrets
import time
from hashlib import sha256
from pathlib import Path

from sightline.disk import write_atomically

COOKIE = "sightline-inspector"
TICKET_SECONDS = 300.0
SESSION_SECONDS = 12 * 3600.0


class InspectorAccess:
    def __init__(self, folder: Path) -> None:
        """`folder` is created with access for its owner only."""
        self._folder = folder

    def issue_ticket(self) -> str:
        """Return a ticket for one session; it expires after five minutes."""
        ticket = secrets.token_urlsafe(32)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._sweep()
        write_atomically(self._find_file("ticket", ticket), b"")
        return ticket

    def has_ticket(self, digest: str) -> bool:
        """Return whether there is a ticket with this hash, which doesn't use it."""
        return digest.isalnum() and _is_fresh(self._folder / f"ticket-{digest}", TICKET_SECONDS)

    def redeem(self, ticket: str) -> str | None:
        """Use up a ticket, and return the token of a new session; None: there is no such ticket."""
        file = self._find_file("ticket", ticket)
        fresh = _is_fresh(file, TICKET_SECONDS)
        try:
            file.unlink()
        except OSError:
            return None
        if not fresh:
            return None
        session = secrets.token_urlsafe(32)
        write_atomically(self._find_file("session", session), b"")
        return session

    def is_open(self, session: str) -> bool:
        return bool(session) and _is_fresh(self._find_file("session", session), SESSION_SECONDS)

    def _find_file(self, kind: str, token: str) -> Path:
        return self._folder / f"{kind}-{hash_token(token)}"

    def _sweep(self) -> None:
        for kind, seconds in (("ticket", TICKET_SECONDS), ("session", SESSION_SECONDS)):
            for file in self._folder.glob(f"{kind}-*"):
                if not _is_fresh(file, seconds):
                    file.unlink(missing_ok=True)


def hash_token(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def compute_form_token(session: str) -> str:
    """Return what a page of this session must send with each change, and what no other page can know."""
    return hmac.new(session.encode(), b"form", sha256).hexdigest()


def _is_fresh(file: Path, seconds: float) -> bool:
    try:
        return 0 <= time.time() - file.stat().st_mtime + 1 <= seconds + 1
    except OSError:
        return False
