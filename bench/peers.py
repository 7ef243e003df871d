"""The processes of the benchmark, all on loopback: scripted upstreams behind nginx, Sightline and other gateways."""

import compileall
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import bodies
import meter
import peer_environments
from certificates import Authority

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "sightline"
READY_WITHIN = 90.0  # LiteLLM alone takes several seconds to import

# The body is buffered in memory because that is nginx at its cheapest: unbuffered it costs three times the
# CPU, and its default spills to disk.
NGINX_CONF = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 0; client_body_buffer_size 64m; keepalive_requests 1000000;
  client_body_temp_path body; proxy_temp_path proxy;
  fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream sink {{ server 127.0.0.1:{sink}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {scheme}://sink; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      {trust}
    }}
  }}
}}
"""
NGINX_TRUST = "proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate {trusted};"

TENSORZERO_CONF = """
[gateway]
observability.enabled = false
[object_storage]
type = "disabled"
[models.gpt-6-sol]
routing = ["sink"]
[models.gpt-6-sol.providers.sink]
type = "openai"
model_name = "gpt-6-sol"
api_base = "{url}/"
api_key_location = "none"
"""
TENSORZERO_PROGRAM = """
import signal
import tensorzero
gateway = tensorzero._start_http_gateway(
    config_file={config!r}, clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
print(gateway.base_url, flush=True)
signal.pause()
"""


@dataclass(frozen=True)
class RequestShape:
    """How a peer wants a Chat Completions request, as far as it differs from OpenAI's API."""

    path: str = "/v1/chat/completions"
    model: str = bodies.MODEL
    headers: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """The arguments of load.py."""
        headers = [part for header in self.headers for part in ("--header", header)]
        return ["--path", self.path, "--model", self.model, *headers]


@dataclass(frozen=True)
class Peer:
    """A running process that answers on a loopback port."""

    name: str
    version: str
    pid: int
    port: int
    ready: float  # seconds of CPU until it listened
    request: RequestShape = field(default_factory=RequestShape)

    def with_messages_api(self) -> "Peer":
        """Return the same process, with requests of the Messages API."""
        headers = ("anthropic-version: 2023-06-01",)
        return replace(self, request=RequestShape("/v1/messages", bodies.MESSAGES_MODEL, headers))


@dataclass(frozen=True)
class Upstream:
    """Where a peer sends requests on to; with an authority, over TLS."""

    port: int
    authority: Authority | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.authority else "http"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def trust(self) -> dict[str, str]:
        """For the environment of a peer: Node reads the second one."""
        trusted = str(self.authority.trusted) if self.authority else ""
        return {"SSL_CERT_FILE": trusted, "NODE_EXTRA_CA_CERTS": trusted} if trusted else {}


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(
    stack: ExitStack,
    name: str,
    command: list[str],
    folder: Path,
    extra: dict[str, str],
    port: Callable[[str], int | None],
) -> tuple[int, int, float]:
    """Start a process that ends with the stack: its pid, the port that `port` finds in its output, its CPU so far."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        surroundings = {**os.environ, "PYTHONUNBUFFERED": "1", **extra}
        process = subprocess.Popen(command, cwd=folder, env=surroundings, stdout=out, stderr=subprocess.STDOUT)
    stack.callback(_stop, process)
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        found = port(log.read_text())
        if found is not None and _listens(found):
            return process.pid, found, meter.read_cpu_seconds(process.pid)
        time.sleep(0.005)  # what a process does after it listens doesn't count
    last = (log.read_text().strip().splitlines() or ["it printed nothing"])[-1]
    raise SystemExit(f"bench: {name} did not start: {last}")


def _find_in_log(pattern: str) -> Callable[[str], int | None]:
    def port(log: str) -> int | None:
        found = re.search(pattern, log)
        return int(found[1]) if found else None

    return port


def start_scripted_upstream(
    stack: ExitStack, folder: Path, authority: Authority | None = None, events: int = 200
) -> Peer:
    """Start the upstream, whose streams have so many events."""
    shown = ["--tls", str(authority.certificate), str(authority.key)] if authority else []
    command = [sys.executable, str(HERE / "scripted_upstream.py"), "--chunks", str(events), *shown]
    return Peer("sink", "", *_start(stack, "sink", command, folder, {}, _find_in_log(r"^(\d+)\n")))


def start_nginx(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    binary, port = peer_environments.find_nginx(), _find_free_port()
    config = folder / "nginx.conf"
    trust = NGINX_TRUST.format(trusted=upstream.authority.trusted) if upstream.authority else ""
    config.write_text(NGINX_CONF.format(sink=upstream.port, port=port, scheme=upstream.scheme, trust=trust))
    version = subprocess.run([binary, "-v"], capture_output=True, text=True, check=True).stderr.strip()
    command = [binary, "-c", str(config), "-p", str(folder)]
    started = _start(stack, "nginx", command, folder, {}, lambda _: port)
    return Peer("nginx", version.rpartition("/")[2], *started)


def start_sightline(
    stack: ExitStack,
    folder: Path,
    upstream: Upstream,
    workers: int = 1,
    env: dict[str, str] | None = None,
    program: Sequence[str] = (),
) -> Peer:
    """Start the proxy; `program` is a command that takes the place of the installed script."""
    script = Path(sys.executable).parent / "sightline"
    if not script.exists():
        raise SystemExit(f"bench: {script} is missing; run: make setup")
    compileall.compile_dir(SOURCE, quiet=1)  # as pip does for an installed package
    options = ["--port", "0", "--workers", str(workers)]
    options += ["--upstream", f"openai={upstream.url}", "--upstream", f"anthropic={upstream.origin}"]
    command = [*(program or (str(script),)), "serve", *options]
    version = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import version; print(version('sightline'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    extra = {"SIGHTLINE_HOME": str(folder / "home"), **upstream.trust, **(env or {})}
    started = _start(stack, "sightline", command, folder, extra, _find_in_log(r"listens on http://127\.0\.0\.1:(\d+)"))
    return Peer("sightline", version, *started)


def start_relay(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    """Start a relay that reads nothing."""
    return _start_relay("relay", stack, folder, upstream)


def start_comparing_relay(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    """Start a relay that only compares each body with the last one."""
    return _start_relay("comparing-relay", stack, folder, upstream, "--compare")


def _start_relay(name: str, stack: ExitStack, folder: Path, upstream: Upstream, *options: str) -> Peer:
    command = [sys.executable, str(HERE / "relay.py"), str(upstream.port), *options]
    return Peer(name, "", *_start(stack, name, command, folder, {}, _find_in_log(r"^(\d+)\n")))


def start_litellm(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    """Start LiteLLM's proxy as it is by default, in Python."""
    return _start_litellm(stack, folder, upstream, rust=False)


def start_litellm_rust(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    """Start LiteLLM's proxy with its Rust core, which takes requests of the Messages API to Anthropic only."""
    return replace(_start_litellm(stack, folder, upstream, rust=True), name="litellm-rust")


def uses_rust_core(peer: Peer) -> bool:
    """Whether the Rust core of LiteLLM has answered anything: its threads are there from its first request on."""
    threads = Path(f"/proc/{peer.pid}/task").glob("*/comm")
    return any(name.read_text().startswith("tokio-rt") for name in threads)


def _start_litellm(stack: ExitStack, folder: Path, upstream: Upstream, *, rust: bool) -> Peer:
    home, port = peer_environments.install_litellm(), _find_free_port()
    routes = {
        bodies.MODEL: {"model": f"openai/{bodies.MODEL}", "api_base": upstream.url},
        bodies.MESSAGES_MODEL: {"model": f"anthropic/{bodies.MESSAGES_MODEL}", "api_base": upstream.origin},
    }
    config = folder / "litellm.json"
    models = [{"model_name": name, "litellm_params": {**route, "api_key": "x"}} for name, route in routes.items()]
    config.write_text(json.dumps({"model_list": models}))
    pinned = re.search(r"^litellm==(\S+)", peer_environments.LITELLM_LOCK.read_text(), re.MULTILINE)
    command = [
        str(home / "bin" / "litellm"),
        "--config",
        str(config),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    extra = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a price list before it starts
        "LITELLM_LOG": "ERROR",
        "LITELLM_RUST": "true" if rust else "false",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # no key to check
        **upstream.trust,
    }
    started = _start(stack, "litellm", [*command, "--num_workers", "1"], folder, extra, lambda _: port)
    return Peer("litellm", pinned[1] if pinned else "", *started)


def start_tensorzero(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    """Start TensorZero's gateway, a Rust library without a program, inside a Python process that only waits."""
    home = peer_environments.install_tensorzero()
    config = folder / "tensorzero.toml"
    config.write_text(TENSORZERO_CONF.format(url=upstream.url))
    program = folder / "gateway.py"
    program.write_text(TENSORZERO_PROGRAM.format(config=str(config)))
    pinned = re.search(r"^tensorzero==(\S+)", peer_environments.TENSORZERO_LOCK.read_text(), re.MULTILINE)
    command = [str(home / "bin" / "python"), str(program)]
    started = _start(
        stack, "tensorzero", command, folder, upstream.trust, _find_in_log(r"http://127\.0\.0\.1:(\d+)/openai/v1")
    )
    request = RequestShape("/openai/v1/chat/completions", f"tensorzero::model_name::{bodies.MODEL}")
    return Peer("tensorzero", pinned[1] if pinned else "", *started, request)


def start_portkey(stack: ExitStack, folder: Path, upstream: Upstream) -> Peer:
    (node, server), port = peer_environments.install_portkey(), _find_free_port()
    version = json.loads((server.parent.parent / "package.json").read_text())["version"]
    command = [str(node), str(server), "--headless", f"--port={port}"]
    extra = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1", **upstream.trust}
    started = _start(stack, "portkey", command, folder, extra, lambda _: port)
    headers = ("x-portkey-provider: openai", f"x-portkey-custom-host: {upstream.url}")
    return Peer("portkey", version, *started, RequestShape(headers=headers))


PEERS: dict[str, Callable[[ExitStack, Path, Upstream], Peer]] = {
    "nginx": start_nginx,
    "relay": start_relay,
    "comparing-relay": start_comparing_relay,
    "sightline": start_sightline,
    "litellm": start_litellm,
    "tensorzero": start_tensorzero,
    "portkey": start_portkey,
    "litellm-rust": start_litellm_rust,
}
CHAT_PEERS = tuple(name for name in PEERS if name != "litellm-rust")
RELAYS = ("relay", "comparing-relay")
TLS_PEERS = tuple(name for name in CHAT_PEERS if name not in RELAYS)
MESSAGES_PEERS = ("nginx", "sightline", "litellm", "litellm-rust")
