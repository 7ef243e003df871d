"""Three proxies that share a record: one description for all, the same bytes from each, and one that dies or hangs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.cli.command import ALONE, sightline
from tests.cli.forked import Forked
from tests.cli.test_serve import get, serving
from tests.e2e.shared_servers import Servers, wait_for
from tests.faults.real_load import Done, RealLoad, UnfinishedError, ask_replica
from tests.proxy import legs
from tests.proxy.clients import ask_chat, pasted_chat
from tests.proxy.legs import user
from tests.proxy.raw_http import exchange
from tests.proxy.test_tool_loop import FOUND, LOOKS
from tests.real_servers import PASSWORD, ROOT, find_commands, free_ports
from tests.requirements import requirement
from tests.scripted.eye import Seen, describe_quadrants
from tests.scripted.faults import Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek
from tests.scripted.talk import Asked, Said, Script, speak

BLIND, SEER = "deepseek-v4-pro", "deepseek-flash"
TOOLS = [{"type": "function", "function": {"name": "Read", "parameters": {"type": "object", "properties": {}}}}]


def number_looks(looks: list[str], asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    """Say what is seen, and end each description with a number of its own."""
    said = speak(asked, seen, script)
    if seen:
        said = replace(said, text=f"{said.text} (look {len(looks) + 1})")
        looks.append(said.text)
    return said


@pytest.fixture
def looks() -> list[str]:
    """The descriptions that the provider has made."""
    return []


@pytest.fixture
def provider(looks: list[str]) -> Iterator[Provider]:
    with deepseek(mind=partial(number_looks, looks)) as running:
        yield running


@pytest.fixture
def replicas(servers: Servers, provider: Provider, tmp_path: Path) -> Iterator[list[tuple[Forked, str]]]:
    address = servers.address(tmp_path)
    flags = ("--upstream", f"deepseek={provider.url}", "--store", address.store, "--blobs", address.blobs)
    with ThreadPoolExecutor(6) as threads, ExitStack() as stack:
        found = [stack.enter_context(serving(*flags, **servers.s3.environment())) for _ in range(3)]
        for process, _ in found:  # a replica whose lines are not read waits when the pipe is full
            for stream in (process.stdout, process.stderr):
                threads.submit(lambda stream=stream: deque(stream, 0))  # type: ignore[misc]
        yield [(process, url) for process, url in found if isinstance(process, Forked)]
    servers.recycle_databases()


def ask(url: str, number: int) -> str:
    picture = paint_quadrants(some_colours(number))
    return ask_chat(f"{url}/u/deepseek", BLIND, pasted_chat(picture))


def count_looks(provider: Provider) -> int:
    return len(provider.exchanges) - len(provider.asked(BLIND))


@requirement("project.deploy")
def test_the_container_file_has_no_faults() -> None:
    """It can't be built here; the replicas below are what it runs."""
    command = [str(find_commands() / "hadolint"), "--no-color", str(ROOT / "deploy" / "Containerfile")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


def read_deployment(servers: Servers, folder: Path, token: str) -> dict[str, str]:
    """Return the variables that the compose file gives to a replica, for servers on this machine."""
    compose = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
    block = compose.partition("\n  sightline:\n")[2].partition("    environment:\n")[2].partition("    depends_on:")[0]
    given = dict(re.findall(r"^      (\w+): (.*)$", block, re.MULTILINE))
    servers.address(folder)
    secrets = {
        "POSTGRES_PASSWORD": PASSWORD,
        "SIGHTLINE_TOKEN": token,
        "S3_KEY": "writer",
        "S3_SECRET": "writer-secret",
    }
    places = {
        "@postgres/sightline": f"@127.0.0.1:{servers.postgres.port}/{servers.databases[folder]}",
        "http://s3:8333": f"http://127.0.0.1:{servers.s3.port}",
    }
    for name, value in given.items():
        filled = re.sub(r"\$\{(\w+)[^}]*\}", lambda found: secrets[found[1]], value)
        for there, here in places.items():
            filled = filled.replace(there, here)
        given[name] = filled
    return given


def run_in_container(keyword: str, port: int, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """Run what the Containerfile says for CMD or HEALTHCHECK, on this port."""
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
    found = re.search(rf"^{keyword}\b.*?(\[.*\])$", text, re.MULTILINE)
    assert found
    program, *words = [word.replace("8790", str(port)) for word in json.loads(found[1])]
    command = [sys.executable, *(("-m", "sightline") if program == "sightline" else ())]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, *words], env={**os.environ, **env}, stdout=quiet, stderr=quiet, text=True)


@requirement("project.deploy", "record.shared.replicas", "route.ready")
def test_the_replicas_of_the_compose_file_run_as_processes(
    servers: Servers, provider: Provider, tmp_path: Path
) -> None:
    """Without containers: the same command, variables and checks, two replicas, PostgreSQL and object storage."""
    upstreams = {**json.loads(ALONE["SIGHTLINE_UPSTREAMS"]), "deepseek": {"baseUrl": provider.url, "apiKey": "sk"}}
    env = {**read_deployment(servers, tmp_path, "a-token"), "SIGHTLINE_UPSTREAMS": json.dumps(upstreams)}
    headers = {"x-sightline-token": "a-token"}
    with ExitStack() as stack:
        ports = free_ports(2)
        for port in ports:
            stack.callback(stack.enter_context(run_in_container("CMD", port, env)).kill)
        for port in ports:
            wait_for(lambda port=port: run_in_container("HEALTHCHECK", port, env).wait(60) == 0, 60)  # type: ignore[misc]
            picture = pasted_chat(paint_quadrants(some_colours(1)))
            answer = ask_chat(f"http://127.0.0.1:{port}/u/deepseek", BLIND, picture, extra_headers=headers)
            assert describe_quadrants(some_colours(1)) in answer
            for page in ("ready", "metrics"):
                got = exchange(
                    f"http://127.0.0.1:{port}", f"/sightline/{page}", method="GET", headers=[*headers.items()]
                )
                assert got.status == 200
        assert count_looks(provider) == 1
    servers.recycle_databases()


@requirement("record.postgres", "record.shared.replicas")
def test_replicas_describe_each_image_once_and_send_the_same_bytes(
    replicas: list[tuple[Forked, str]], provider: Provider
) -> None:
    urls, images = [url for _, url in replicas], range(4)
    with ThreadPoolExecutor(12) as threads:
        answers = list(
            threads.map(lambda pair: (pair[1], ask(*pair)), [(url, each) for each in images for url in urls])
        )
    for number, answer in answers:
        assert describe_quadrants(some_colours(number)) in answer
    assert count_looks(provider) == len(images), "each image was described once, for all replicas"
    bodies = [exchange.body for exchange in provider.asked(BLIND)]
    assert len(bodies) == len(images) * len(urls)
    assert len(set(bodies)) == len(images), "every replica sends the same bytes for the same request"


@requirement("record.shared.replicas", "serve.workers")
def test_several_workers_share_a_record_on_servers(servers: Servers, provider: Provider, tmp_path: Path) -> None:
    address = servers.address(tmp_path)
    flags = ("--upstream", f"deepseek={provider.url}", "--store", address.store, "--blobs", address.blobs)
    with serving("--workers", "2", *flags, **servers.s3.environment()) as (_, url):
        for _ in range(4):
            assert describe_quadrants(some_colours(1)) in ask(url, 1)
        assert count_looks(provider) == 1
    servers.recycle_databases()


@requirement("record.shared.settings")
def test_a_setting_is_a_replicas_own_and_takes_effect_without_a_restart(
    servers: Servers, provider: Provider, tmp_path: Path
) -> None:
    address = servers.address(tmp_path)
    shared = {"SIGHTLINE_STORE": address.store, "SIGHTLINE_BLOBS": address.blobs, **servers.s3.environment()}
    homes = [{**shared, "SIGHTLINE_HOME": str(tmp_path / name)} for name in ("one", "other")]
    words = describe_quadrants(some_colours(1))
    with ExitStack() as stack:
        flags = ("--upstream", f"deepseek={provider.url}")
        one, other = (stack.enter_context(serving(*flags, **home))[1] for home in homes)
        assert words in ask(one, 1)
        assert sightline("config", "set", "mode", "off", env=homes[0]).code == 0
        wait_for(lambda: words not in ask(one, 1))
        assert words in ask(other, 1)
        assert sightline("config", "unset", "mode", env=homes[0]).code == 0
        wait_for(lambda: words in ask(one, 1))
    servers.recycle_databases()


@requirement("record.shared.hot_path")
def test_a_request_whose_images_are_known_waits_for_no_server(
    servers: Servers, replicas: list[tuple[Forked, str]], provider: Provider
) -> None:
    """A server that is asked and does not answer is given up after five seconds, and the replica isn't ready then."""
    (_, url), *_ = replicas
    picture = paint_quadrants(some_colours(7))
    talk = pasted_chat(picture)
    for _ in range(2):
        talk = [*talk, {"role": "assistant", "content": ask_chat(f"{url}/u/deepseek", BLIND, talk, tools=TOOLS)}]
        talk = [*talk, {"role": "user", "content": "And now?"}]
    for server in (servers.postgres, servers.s3):
        server.process.freeze()
    try:
        assert describe_quadrants(some_colours(7)) in ask_chat(f"{url}/u/deepseek", BLIND, talk, tools=TOOLS)
        assert get(url, "/sightline/ready")[0] == 200
    finally:
        for server in (servers.postgres, servers.s3):
            server.process.thaw()


@requirement("record.shared.answers")
@pytest.mark.parametrize("stream", [False, True])
def test_our_call_is_restored_by_another_replica_at_once(servers: Servers, tmp_path: Path, stream: bool) -> None:
    """The other replica has just read that there are no calls to restore; it learns of them while the model goes on."""
    wire, first = "anthropic", [user("anthropic", "Which code?")]
    address = servers.address(tmp_path)

    def go_on(given: legs.Json) -> legs.Leg:
        with servers.postgres.connect(servers.databases[tmp_path]) as connection:
            wait_for(lambda: list(connection.execute("SELECT changes FROM sightline")) == [(1,)])
        return FOUND

    script = legs.Script(wire, [legs.Leg("Hello."), LOOKS, go_on, legs.Leg("You are welcome.")])

    def post(url: str, items: Sequence[legs.Json]) -> bytes:
        body = json.dumps(legs.body(wire, items, stream=stream)).encode()
        return exchange(url, legs.path(wire, stream=stream), body).body

    with ExitStack() as stack:
        upstream = f"x=http://127.0.0.1:{stack.enter_context(legs.serving(script)).port}"
        flags = ("--upstream", upstream, "--store", address.store, "--blobs", address.blobs)
        env = {**servers.s3.environment(), "SIGHTLINE_TOOL": "on"}
        (_, one), (_, other) = (stack.enter_context(serving(*flags, **env)) for _ in range(2))
        post(other, [user(wire, "Hello?")])
        whole = legs.heard(wire, post(one, first), stream=stream)
        post(other, [*first, *legs.echo(wire, whole), user(wire, "Thanks.")])
    told = script.items(2)[len(first) + len(legs.said(wire, LOOKS)) :]
    assert script.items(3) == [
        *first, *legs.said(wire, LOOKS), *told, *legs.said(wire, FOUND), user(wire, "Thanks."),
    ]  # fmt: skip
    servers.recycle_databases()


@requirement("record.faults.servers", "law.9")
@pytest.mark.parametrize("name", ["postgres", "s3"])
def test_a_proxy_serves_while_a_server_of_its_record_is_down(
    name: str, servers: Servers, provider: Provider, tmp_path: Path
) -> None:
    address, server = servers.address(tmp_path), servers.postgres if name == "postgres" else servers.s3
    flags = ("--upstream", f"deepseek={provider.url}", "--store", address.store, "--blobs", address.blobs)
    with serving(*flags, **servers.s3.environment()) as (process, url):
        ask(url, 1)
        server.stop()
        try:
            for number in (1, 2, 3):
                assert describe_quadrants(some_colours(number)) in ask(url, number)
        finally:
            server.start()
        wait_for(lambda: get(url, "/sightline/ready")[0] == 200)
        with servers.postgres.connect(servers.databases[tmp_path]) as connection:
            wait_for(lambda: bool(ask(url, 4)) and count_images(connection) > 1, 30)
        process.send_signal(signal.SIGTERM)
        told = [line for line in process.communicate(timeout=60)[1].splitlines() if "ecord" in line]
    assert len(told) == 2, told
    assert "can be used again" in told[1]
    servers.recycle_databases()


def count_images(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    ((count,),) = connection.execute("SELECT COUNT(*) FROM images")
    return int(str(count))


@requirement("record.shared.fencing", "record.shared.replicas", "record.faults.replicas", "law.9")
def test_a_replica_killed_and_one_frozen_amid_their_work_lose_and_repeat_nothing(
    servers: Servers, replicas: list[tuple[Forked, str]], provider: Provider, looks: list[str], tmp_path: Path
) -> None:
    """Both are describing an image, one is amid an answer, and clients go on; the frozen one's lease expires."""
    (killed, first), (frozen, second), (_, third) = replicas
    urls, known = [first, second, third], [2, 3, 4]
    before = [ask_replica(url, BLIND, image) for url, image in zip(urls, known, strict=True)]
    with ThreadPoolExecutor(3) as threads:
        amid = hang_next(provider, model=BLIND, after=1)
        cut = threads.submit(ask_replica, first, BLIND, 2)
        amid.reached.result(60)
        slow = [hang_next(provider, model=SEER)]
        orphan = threads.submit(ask_replica, first, BLIND, 0)
        slow[0].reached.result(60)
        slow.append(hang_next(provider, model=SEER))
        late = threads.submit(ask_replica, second, BLIND, 1)
        slow[1].reached.result(60)
        load = RealLoad(BLIND, urls, known, clients=9, first_new=10)
        wait_for(lambda: len(load.done) > 40, 60)
        settled = {each.image for each in [*before, *load.done]}
        killed.send_signal(signal.SIGKILL)
        frozen.send_signal(signal.SIGSTOP)
        try:
            for unfinished in (cut, orphan):  # their clients were told nothing, and ask again
                assert isinstance(unfinished.exception(60), UnfinishedError)
            again = [ask_replica(third, BLIND, image) for image in (0, 1)]
            at_once = len(load.done)
            wait_for(lambda: len(load.done) > at_once + 10, 60)
        finally:
            for each in (amid, *slow):
                each.release()
            frozen.send_signal(signal.SIGCONT)
        again.append(late.result(60))
        done = [*before, *again, *load.end()]
    assert load.moved > 0
    images = {each.image for each in done}
    done += [ask_replica(url, BLIND, image) for url in (second, third) for image in sorted(images)]
    check_looks(done, looks, settled)
    late_look = find_look(next(look for look in looks if describe_quadrants(some_colours(1)) in look))
    assert find_look(again[1].text) == find_look(again[2].text) != late_look, "the frozen one's own came too late"
    with servers.postgres.connect(servers.databases[tmp_path]) as connection:
        said = [
            str(text) for (text,) in connection.execute("SELECT said FROM tellings UNION SELECT text FROM descriptions")
        ]
    assert [f"(look {late_look})" in text for text in said] == [False] * len(said)


def hang_next(provider: Provider, *, model: str, after: int | None = None) -> Hang:
    hang = Hang(model=model, after=after)
    provider.faults.append(hang)
    return hang


def check_looks(done: Sequence[Done], looks: Sequence[str], settled: AbstractSet[int]) -> None:
    """Check that all clients got the same words about an image, and that none was described again that had been."""
    for image in {each.image for each in done}:
        words = describe_quadrants(some_colours(image))
        answers = [each.text for each in done if each.image == image]
        assert [text for text in answers if words not in text] == []
        assert len({find_look(text) for text in answers}) == 1, image
        count = sum(words in look for look in looks)
        assert count == 1 if image in settled else count in (1, 2), f"image {image} was described {count} times"


def find_look(answer: str) -> str:
    (number,) = set(re.findall(r"\(look (\d+)\)", answer))
    return str(number)
