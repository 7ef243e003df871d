"""Heads for upstreams: written once for all requests with the same head, unless that would take much memory."""

from __future__ import annotations

import pytest

from sightline.dial import WrittenHead
from sightline.model.refusal import Refusal
from sightline.settings import load_settings
from sightline.settings.upstreams import build_directory
from sightline.surfaces.proxy.http_headers import UNCHANGED, ClientRequest, HeadRoute, RequestChanges
from sightline.surfaces.proxy.routes import Route, find_route

PATH = "/v1/messages"


def find_head(value: bytes) -> tuple[HeadRoute, ClientRequest]:
    request = ClientRequest("POST", [(b"host", b"127.0.0.1"), (b"x-api-key", b"sk-ant-x"), (b"x-note", value)])
    directory = build_directory(load_settings({}))
    assert not isinstance(directory, Refusal)
    route = find_route(PATH, "", request.headers, directory)
    assert isinstance(route, Route)
    return HeadRoute(request, route, directory, PATH), request


@pytest.mark.parametrize(("length", "kept"), [(100, True), (64 * 1024, False)])
def test_a_head_is_written_once_unless_it_is_long(length: int, kept: bool) -> None:
    head, request = find_head(b"n" * length)
    one, two = (head.get_upstream_head(request, UNCHANGED) for _ in range(2))
    assert isinstance(one, WrittenHead)
    assert one == two
    assert (one is two) is kept


def test_each_change_of_a_request_has_a_head_of_its_own() -> None:
    head, request = find_head(b"n")
    plain, read = (head.get_upstream_head(request, each) for each in (UNCHANGED, RequestChanges(reads_response=True)))
    assert isinstance(plain, WrittenHead)
    assert isinstance(read, WrittenHead)
    assert read.lines == plain.lines + b"accept-encoding: identity\r\n"
