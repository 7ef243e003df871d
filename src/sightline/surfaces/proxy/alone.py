"""Other applications, each at a path of its own, guarded as the proxy is; nothing is passed on to anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.app import Mounted
from sightline.surfaces.proxy.bodies import Receive, Send
from sightline.surfaces.proxy.headers import Request, unwelcome
from sightline.surfaces.proxy.reply import words


class Alone:
    def __init__(self, mounts: Mapping[str, Mounted], token: str = "") -> None:
        self._mounts, self._token = mounts, token
        self._absent = Refusal("not_found", "there is nothing at this address", f"call {min(mounts, key=len)}")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        mounted = self._mounts.get(scope["raw_path"].decode("latin-1"))
        if no := unwelcome(Request(scope["method"], scope["headers"]), self._token):
            await _refused(send, 403, no)
        elif mounted is None:
            await _refused(send, 404, self._absent)
        else:
            await mounted(scope, receive, send)


async def _refused(send: Send, status: int, no: Refusal) -> None:
    body = json.dumps({"error": {"message": words(no)}}).encode()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
