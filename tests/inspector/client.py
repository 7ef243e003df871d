"""A browser's part of the inspector's protocol, without a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sightline.surfaces.inspector.changes import InspectorAccess


@dataclass(frozen=True)
class Page:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class InspectorClient:
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str = "", method: str = "GET", **headers: str) -> Page:
        return self._send(method, path, None, headers)

    def post(self, path: str, value: object, **headers: str) -> Page:
        sent = {"content-type": "application/json", "origin": self.url, **headers}
        return self._send("POST", path, json.dumps(value).encode(), sent)

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Page:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        merged = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            connection.request(
                method, f"/sightline/{path}", body, {name: text for name, text in merged.items() if text}
            )
            reply = connection.getresponse()
            return Page(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()


def log_in(url: str, home: Path) -> InspectorClient:
    """Return a client with a session, as the one-time link gives it."""
    client = InspectorClient(url)
    opened = client.post("api/session", {"ticket": InspectorAccess(home / "inspector").issue_ticket()})
    assert opened.status == 200, opened.body
    client.headers = {"cookie": opened.headers["set-cookie"].split(";")[0], "x-sightline-form": opened.json["form"]}
    return client
