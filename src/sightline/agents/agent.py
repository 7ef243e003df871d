"""What Sightline knows about one coding agent: the file of each agent fills in one `CodingAgent`.

In its texts `$P` is replaced by the proxy's address, `$B` by the address that the agent gets, `$N` by the agent's name
for a provider, `$U` by our name for it, `$M` by a model, `$K` by the variable that holds the provider's key, `$L` by
the key in Copilot's file, and `$A` by how Codex logs in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sightline.agents.launch import (
    Launch,
    LaunchContext,
    Steering,
    bypass_web_proxies,
    refuse_own_address,
    refuse_upstream,
)
from sightline.model.profile import Upstream, WireName, strip_version
from sightline.model.refusal import Refusal
from sightline.model.value import value_class


@value_class
class ProviderTarget:
    """The provider that an agent asks through the proxy."""

    upstream: str  # our name for it
    provider: str = ""  # the agent's name for it; empty: the same
    version: str = ""  # what follows our address
    key: str = ""  # the variable that holds the key; empty: none is needed
    login: bool = False  # the agent's own login is the key
    needs_key: bool = False  # the agent has not used this provider before, and needs its key from now on


@value_class
class SetupRequest:
    """What the user asks `setup` for, and what is configured."""

    agent: CodingAgent
    upstream: str  # empty: keep the one that the agent asks now
    model: str
    context: LaunchContext
    upstreams: Mapping[str, Upstream]

    def find_upstream(self, address: str) -> str | Refusal:
        """Return the name of the upstream at an address; a name is returned as it is. A shared host isn't enough."""
        if "://" not in address:
            return address
        bare = strip_version(address)
        there = (name for name, each in self.upstreams.items() if bare in map(strip_version, each.bases.values()))
        return next(there, None) or Refusal(
            "not_found",
            f"{self.agent.title} uses {address} now, which is not a named upstream",
            "give it a name in the setting `upstreams`, or name another provider with --upstream",
        )

    def find_current(self, api: WireName) -> str | Refusal:
        """Return the name of the upstream that the agent asks now."""
        started = self.agent.launch([self.agent.name], self.context)
        if not isinstance(started, Launch):
            return started
        return self.find_upstream(started.former_upstreams.get(api) or self.agent.default_target.upstream)

    def find_key(self, upstream: str) -> str:
        """Return the variable that holds the key of an upstream; empty: it needs none."""
        known = self.upstreams.get(upstream)
        if known is None or known.api_key or known.is_on_loopback:
            return ""
        return next(iter(known.key_variables), "KEY")

    def refuse_key(self, key: str, now: str | Refusal | None) -> Refusal:
        """Return the refusal to send the key of one provider to another."""
        owner = now if isinstance(now, str) else "another provider"
        return Refusal(
            "not_permitted",
            f"{key} belongs to {owner}, and would be sent to {self.upstream}",
            "remove the key and the address from the file first, or leave out --upstream",
        )


def choose_default_target(request: SetupRequest) -> ProviderTarget | Refusal:
    """Return the agent's usual provider, or the one that the user names."""
    usual = request.agent.default_target
    return replace(usual, upstream=request.upstream) if request.upstream else usual


def find_no_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return nothing, for an agent that reads settings of a project only in folders that its own record trusts."""
    return []


@value_class
class CodingAgent:
    name: str  # of its command
    title: str
    start: Callable[
        [Sequence[str], LaunchContext], Launch | Refusal
    ]  # return how to start a command of it so that it asks the proxy
    api: WireName | None = None  # that all its requests use; None: it depends on its provider
    packages: tuple[str, ...] = ()  # npm packages that contain it
    find_steering: Callable[[Sequence[str], LaunchContext], list[Steering]] = find_no_steering
    choose_target: Callable[[SetupRequest], ProviderTarget | Refusal] = choose_default_target
    short_hint: str = ""  # how to point it here, in one short line; empty: `one_run` is that short
    one_run: str = ""  # for a single run, without a change to the user's files
    file: str = ""  # the settings file that points it permanently …
    moved_by: tuple[str, str] = ("", "")  # … the variable that names another folder, and the file below that …
    file_variable: str = ""  # … the variable that names the file itself …
    file_lines: str = ""  # … and what belongs in the file; without a file, the command that does it
    after_setup: str = ""  # what the user has to do then; empty: nothing
    key_hint: str = ""  # where it gets the key of a provider that it has not used before
    vision_hint: str = ""  # how to tell it that its model takes images; empty: it sends them anyway
    note: str = ""
    mcp: str = ""  # how it gets the tools over MCP; empty: it supports no MCP
    default_target: ProviderTarget = ProviderTarget(
        "NAME", version="/v1", key="KEY"
    )  # for the texts, unless the user names another
    default_model: str = ""  # likewise; empty: the texts name none

    def launch(self, argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
        """Return how a command line of this agent is started so that it asks the proxy, or why it isn't."""
        context = replace(context, env=bypass_web_proxies(context.env))
        if self.api is not None and context.has_upstream and not context.uses_upstream(self.api):
            if context.is_upstream_known:
                return refuse_upstream(context, self.title)
            # Nothing is known about the upstream: who names it for an agent of one API names that API as well.
            context = replace(context, address=f"{context.address}/u/{context.upstream}", upstream_apis=(self.api,))
        started = self.start(argv, context)
        return started if isinstance(started, Refusal) or context.has_upstream else refuse_own_address(started, context)

    def render(self, address: str, target: ProviderTarget | None = None, model: str = "") -> CodingAgent:
        """Return the same agent with its texts filled in for a running proxy, a provider and a model."""
        target = target or self.default_target
        known = {
            "$P": address,
            "$B": f"{address}/u/{target.upstream}{target.version}",
            "$U": target.upstream,
            "$N": json.dumps(target.provider or target.upstream)[1:-1],  # escaped for use between quotes
            "$M": json.dumps(model or self.default_model)[1:-1],
            "$K": target.key,
            ", $L": f', "apiKey": "{target.key}"' if target.key else "",
            ",$A": "".join(f",{each.replace(' ', '')}" for each in _list_login(target)),
            "\n$A": "".join(f"\n{each}" for each in _list_login(target)),
        }

        def fill(text: str) -> str:
            for mark, value in known.items():
                text = text.replace(mark, value)
            return text

        return replace(
            self,
            short_hint=fill(self.short_hint),
            one_run=fill(self.one_run),
            file_lines=fill(self.file_lines),
            after_setup=fill(self.after_setup),
            key_hint=fill(self.key_hint),
            note=fill(self.note),
        )

    def find_file(self, env: Mapping[str, str]) -> Path | None:
        """Return where its settings file is for a user of this environment, or None if it has none."""
        variable, below = self.moved_by
        if not self.file:
            return None
        if self.file_variable and env.get(self.file_variable):
            return Path(env[self.file_variable]).absolute()
        return Path(env[variable], below) if env.get(variable) else Path(self.file).expanduser()

    @property
    def brief(self) -> str:
        return self.short_hint or self.one_run


def _list_login(target: ProviderTarget) -> list[str]:
    if target.login:
        return ["requires_openai_auth = true"]
    return [f'env_key = "{target.key}"'] if target.key else []


def choose_from_table(
    request: SetupRequest, built_in: Mapping[str, str], bases: Mapping[str, str], get_version: Callable[[str], str]
) -> ProviderTarget | Refusal:
    """Return one of the providers that an agent has by name: its own, or one that the user has added.

    `built_in` has the upstreams of its own providers, `bases` the addresses that the user has given to any of them.
    """
    usual = request.agent.default_target
    now = {name: request.find_upstream(url) for name, url in bases.items() if url}
    asks: dict[str, str | Refusal] = {**built_in, **now}
    if not request.upstream:
        provider = usual.provider or usual.upstream
        found = asks[provider]
        return found if isinstance(found, Refusal) else ProviderTarget(found, provider, get_version(provider))
    if provider := next((name for name, upstream in asks.items() if upstream == request.upstream), ""):
        needs_key = provider not in now and bool(request.find_key(request.upstream))
        return ProviderTarget(request.upstream, provider, get_version(provider), needs_key=needs_key)
    if provider := next((name for name, upstream in built_in.items() if upstream == request.upstream), ""):
        return request.refuse_key(f"the key of its provider {provider}", now[provider])
    return Refusal(
        "not_found",
        f"{request.agent.title} has no provider that uses {request.upstream}",
        f"it can be pointed at {', '.join(sorted(set(built_in.values())))}",
    )
