"""What Sightline knows about one coding agent: every file of an agent fills in one `Agent`.

In its texts `$P` stands for the proxy's address, `$B` for the address that the agent gets, `$N` for a provider by the
agent's name, `$M` for a model, `$K` for the variable that holds the provider's key, `$L` for the key in Copilot's file,
and `$A` for how Codex logs in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.agents.launch import Launch, Place, bypass_web_proxies, refuse_own_address
from sightline.agents.projects import Steering
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, unversioned


@dataclass(frozen=True, slots=True)
class Target:
    """The provider that an agent asks through the proxy."""

    upstream: str  # by our name
    provider: str = ""  # by the agent's name; empty: the same
    version: str = ""  # what follows our address
    key: str = ""  # the variable that holds the key; empty: none is needed
    login: bool = False  # the agent's own login is the key


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """What the user asks `setup` for, and what is configured."""

    agent: Agent
    upstream: str  # empty: keep the one that the agent asks now
    model: str
    place: Place
    named: Mapping[str, Upstream]

    def find_upstream(self, address: str) -> str | Refusal:
        """Return the name of the upstream at an address; a name is returned as it is. A shared host isn't enough."""
        if "://" not in address:
            return address
        bare = unversioned(address)
        there = (name for name, each in self.named.items() if bare in map(unversioned, each.bases.values()))
        return next(there, None) or Refusal(
            "not_found",
            f"{self.agent.title} asks {address} now, which has no name here",
            "name it in the setting `upstreams`, or name another provider with --upstream",
        )

    def find_current(self, api: WireName) -> str | Refusal:
        """Return the name of the upstream that the agent asks now."""
        started = self.agent.launch([self.agent.name], self.place)
        if not isinstance(started, Launch):
            return started
        return self.find_upstream(started.formerly.get(api) or self.agent.usual.upstream)

    def find_key(self, upstream: str) -> str:
        """Return the variable that holds the key of an upstream; empty: it needs none."""
        known = self.named.get(upstream)
        if known is None or known.api_key or known.on_loopback:
            return ""
        return next(iter(known.key_variables), "KEY")

    def refuse_key(self, key: str, now: str | Refusal | None) -> Refusal:
        """Return the refusal to send the key of one provider to another."""
        whose = f"the one of {now}" if isinstance(now, str) else "another provider's"
        return Refusal(
            "not_permitted",
            f"{key} is {whose}, and would be sent to {self.upstream}",
            "take it and the address out of the file first, or leave --upstream out",
        )


def choose_usual(request: SetupRequest) -> Target | Refusal:
    """Return the agent's usual provider, or the one that the user names."""
    usual = request.agent.usual
    return replace(usual, upstream=request.upstream) if request.upstream else usual


def find_no_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return nothing: no file of a project steers the agent unless its own record trusts the folder."""
    return []


@dataclass(frozen=True, slots=True)
class Agent:
    name: str  # of its command
    title: str
    start: Callable[[Sequence[str], Place], Launch | Refusal]  # how a command of it is started so that it asks us
    packages: tuple[str, ...] = ()  # of npm that contain it
    find_steering: Callable[[Sequence[str], Place], list[Steering]] = find_no_steering
    choose_target: Callable[[SetupRequest], Target | Refusal] = choose_usual
    point: str = ""  # how it is pointed here, in one short line; empty: `once` is one
    once: str = ""  # one run, nothing of the user's changed
    file: str = ""  # where it is pointed permanently …
    moved: tuple[str, str] = ("", "")  # … the variable that names another folder, and the file below that …
    named: str = ""  # … the variable that names the file itself …
    lines: str = ""  # … and what belongs in the file; without a file, the command that does it
    use: str = ""  # what the user has to tell the agent then; empty: nothing
    sees: str = ""  # how it learns that its model takes images; empty: it sends them anyway
    note: str = ""
    mcp: str = ""  # how it gets the tools over MCP; empty: it supports no MCP
    usual: Target = Target("NAME", version="/v1", key="KEY")  # for the texts, unless the user names another
    model: str = ""  # likewise; empty: the texts name none

    def launch(self, argv: Sequence[str], place: Place) -> Launch | Refusal:
        """Return how a command line of this agent is started so that it asks the proxy, or why it isn't."""
        started = self.start(argv, replace(place, env=bypass_web_proxies(place.env)))
        return started if isinstance(started, Refusal) or place.flagged else refuse_own_address(started, place)

    def render(self, address: str, target: Target | None = None, model: str = "") -> Agent:
        """Return the same agent with its texts filled in for a running proxy, a provider and a model."""
        target = target or self.usual
        known = {
            "$P": address,
            "$B": f"{address}/u/{target.upstream}{target.version}",
            "$N": json.dumps(target.provider or target.upstream)[1:-1],  # as it is written between quotes
            "$M": json.dumps(model or self.model)[1:-1],
            "$K": target.key,
            ", $L": f', "apiKey": "{target.key}"' if target.key else "",
            ",$A": "".join(f",{each.replace(' ', '')}" for each in _list_login(target)),
            "\n$A": "".join(f"\n{each}" for each in _list_login(target)),
        }

        def fill(text: str) -> str:
            for mark, value in known.items():
                text = text.replace(mark, value)
            return text

        point, once, lines, use, note = map(fill, (self.point, self.once, self.lines, self.use, self.note))
        return replace(self, point=point, once=once, lines=lines, use=use, note=note)

    def find_file(self, env: Mapping[str, str]) -> Path | None:
        """Return where its settings file is for a user of this environment, or None if it has none."""
        variable, below = self.moved
        if not self.file:
            return None
        if self.named and env.get(self.named):
            return Path(env[self.named]).absolute()
        return Path(env[variable], below) if env.get(variable) else Path(self.file).expanduser()

    @property
    def brief(self) -> str:
        return self.point or self.once


def _list_login(target: Target) -> list[str]:
    if target.login:
        return ["requires_openai_auth = true"]
    return [f'env_key = "{target.key}"'] if target.key else []


def choose_from_table(
    request: SetupRequest, built_in: Mapping[str, str], bases: Mapping[str, str], get_version: Callable[[str], str]
) -> Target | Refusal:
    """Return one of the providers that an agent has by name: its own, or one that the user has added.

    `built_in` has the upstreams of its own providers, `bases` the addresses that the user has given to any of them.
    """
    usual = request.agent.usual
    now = {name: request.find_upstream(url) for name, url in bases.items() if url}
    asks: dict[str, str | Refusal] = {**built_in, **now}
    if not request.upstream:
        provider = usual.provider or usual.upstream
        found = asks[provider]
        return found if isinstance(found, Refusal) else Target(found, provider, get_version(provider))
    if provider := next((name for name, upstream in asks.items() if upstream == request.upstream), ""):
        return Target(request.upstream, provider, get_version(provider))
    if provider := next((name for name, upstream in built_in.items() if upstream == request.upstream), ""):
        return request.refuse_key(f"the key of its provider {provider}", now[provider])
    return Refusal(
        "not_found",
        f"{request.agent.title} has no provider that asks {request.upstream}",
        f"it can be pointed at {', '.join(sorted(set(built_in.values())))}",
    )
