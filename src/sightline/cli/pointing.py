"""Whom `setup` makes an agent ask: the provider that it asks now, with the key that is that provider's.

A key goes to no host but its own. Where an agent asks an address that has no name here, or a key would come to
stand beside another provider's address, that is said instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.cli.agents import Agent, Aim
from sightline.cli.launch import Launch, Place, copilot, launch, opencode, pi, qwen
from sightline.cli.launch.codex import BUILT_IN, Asked, asked
from sightline.cli.launch.gemini import saved_login
from sightline.cli.launch.started import address_of, part
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, unversioned

_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")
_LOGGED_IN = ("openai", "chatgpt")  # whose login is Codex's own
_OTHER_LOGINS = ("experimental_bearer_token", "auth", "http_headers", "env_http_headers", "query_params")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for, and what is there."""

    agent: Agent
    upstream: str  # empty: the one that is asked now
    model: str
    place: Place
    named: Mapping[str, Upstream]

    def name_of(self, address: str) -> str | Refusal:
        """The upstream at an address; empty for none. Nobody is taken for another because they share a host."""
        if "://" not in address:
            return address
        bare = unversioned(address)
        there = (name for name, each in self.named.items() if bare in map(unversioned, each.bases.values()))
        return next(there, None) or Refusal(
            "not_found",
            f"{self.agent.title} asks {address} now, which has no name here",
            "name it in the setting `upstreams`, or name another provider with --upstream",
        )

    def key_of(self, upstream: str) -> str:
        known = self.named.get(upstream)
        if known is None or known.api_key or known.on_loopback:
            return ""
        return next(iter(known.key_variables), "KEY")


def aimed(wish: Wish) -> Aim | Refusal:
    return _AIMS.get(wish.agent.name, _plain)(wish)


def _plain(wish: Wish) -> Aim | Refusal:
    usual = wish.agent.usual
    return replace(usual, upstream=wish.upstream) if wish.upstream else usual


def _now(wish: Wish, api: WireName) -> str | Refusal:
    """The upstream that the agent asks now, by its name."""
    started = launch([wish.agent.name], wish.place)
    if not isinstance(started, Launch):
        return started
    return wish.name_of(started.formerly.get(api) or wish.agent.usual.upstream)


def _claude(wish: Wish) -> Aim | Refusal:
    now = _now(wish, "anthropic")
    if not wish.upstream or now == wish.upstream:
        return now if isinstance(now, Refusal) else Aim(now)
    file = wish.agent.file_in(wish.place.env)
    held = part(wish.place.json(file), "env") if file else {}
    if tokens := [name for name in _TOKENS if held.get(name)]:
        return _foreign(f"{tokens[0]} in {file}", now, wish.upstream)
    return Aim(wish.upstream)


def _foreign(key: str, now: str | Refusal | None, upstream: str) -> Refusal:
    whose = f"the one of {now}" if isinstance(now, str) else "another provider's"
    return Refusal(
        "not_permitted",
        f"{key} is {whose}, and would be sent to {upstream}",
        "take it and the address out of the file first, or leave --upstream out",
    )


def _codex(wish: Wish) -> Aim | Refusal:
    found = asked(["codex"], wish.place)
    now = found if isinstance(found, Refusal) else wish.name_of(found.address or BUILT_IN)
    if no := _overruled(wish):
        return no
    if isinstance(found, Asked) and (not wish.upstream or wish.upstream == now):
        return now if isinstance(now, Refusal) else _taken_over(wish, found, now)
    if not wish.upstream and isinstance(now, Refusal):
        return now
    login = wish.upstream in _LOGGED_IN
    key = "" if login else wish.key_of(wish.upstream)
    return Aim(wish.upstream, version=_version(wish.upstream), key=key, login=login)


def _taken_over(wish: Wish, found: Asked, upstream: str) -> Aim | Refusal:
    """The provider that Codex asks now, with the key that it takes for it."""
    if other := [name for name in _OTHER_LOGINS if found.table.get(name)]:
        return Refusal(
            "unsupported_type",
            f"the provider {found.provider} of Codex has {other[0]}, which a table of ours would lose",
            f"write {wish.place.address}/u/{upstream}{_version(upstream)} into its base_url by hand",
        )
    login = not found.table or found.table.get("requires_openai_auth") is True
    key = found.table.get("env_key")
    return Aim(upstream, version=_version(upstream), key=key if isinstance(key, str) else "", login=login)


def _version(upstream: str) -> str:
    return "" if upstream == "chatgpt" else "/v1"


def _overruled(wish: Wish) -> Refusal | None:
    """A profile of Codex that is always on, and names a provider of its own."""
    file = wish.agent.file_in(wish.place.env) or Path()
    config = wish.place.toml(file)
    profile = config.get("profile")
    if not isinstance(profile, str) or not part(config, "profiles", profile).get("model_provider"):
        return None
    return Refusal(
        "unsupported_type",
        f"the profile {profile} in {file} names a model_provider, which wins over what would be written",
        "take it out of the profile first",
    )


def _qwen(wish: Wish) -> Aim | Refusal:
    usual = wish.agent.usual
    settings = wish.place.json(qwen.home_of(wish.place) / "settings.json")
    entries = part(settings, "modelProviders").get("openai")
    known = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    entry = next((one for one in known if wish.model and one.get("id") == wish.model), {})
    theirs = address_of(entry.get("baseUrl"))
    now = wish.name_of(theirs) if theirs else _now(wish, "openai_chat")
    if wish.upstream and wish.upstream != now:
        return replace(usual, upstream=wish.upstream, key=wish.key_of(wish.upstream))
    if isinstance(now, Refusal):
        return now
    key = entry.get("envKey")
    by_variable = not theirs and isinstance(started := launch(["qwen"], wish.place), Launch) and started.formerly
    usually = "OPENAI_API_KEY" if by_variable else wish.key_of(now)
    return replace(usual, upstream=now, key=key if isinstance(key, str) and key else usually)


def _pi(wish: Wish) -> Aim | Refusal:
    own = pi.providers(wish.place)
    said = {name: part(own, name) for name in own}
    bases = {name: address_of(each.get("baseUrl")) for name, each in said.items()}
    built_in = {theirs: ours for theirs, (ours, _) in pi.BUILT_IN.items()}
    return _of_table(wish, built_in, bases, lambda name: pi.kind(name, said.get(name, {}))[1])


def _opencode(wish: Wish) -> Aim | Refusal:
    own = part(opencode.configured(wish.place), "provider")
    bases = {name: address_of(part(own, name, "options").get("baseURL")) for name in own}
    return _of_table(wish, opencode.BUILT_IN, bases, lambda name: opencode.version_of(name, part(own, name)))


def _of_table(
    wish: Wish, by_name: Mapping[str, str], bases: Mapping[str, str], version: Callable[[str], str]
) -> Aim | Refusal:
    """One of the agent's own providers, or one that the user has given it."""
    usual = wish.agent.usual
    now = {name: wish.name_of(url) for name, url in bases.items() if url}
    asks: dict[str, str | Refusal] = {**by_name, **now}
    if not wish.upstream:
        provider = usual.provider or usual.upstream
        found = asks[provider]
        return found if isinstance(found, Refusal) else Aim(found, provider, version(provider))
    if provider := next((name for name, upstream in asks.items() if upstream == wish.upstream), ""):
        return Aim(wish.upstream, provider, version(provider))
    if provider := next((name for name, upstream in by_name.items() if upstream == wish.upstream), ""):
        return _foreign(f"the key of its provider {provider}", now[provider], wish.upstream)
    return Refusal(
        "not_found",
        f"{wish.agent.title} has no provider that asks {wish.upstream}",
        f"it can be pointed at {', '.join(sorted(set(by_name.values())))}",
    )


def _gemini(wish: Wish) -> Aim | Refusal:
    started = launch(["gemini"], wish.place)
    if isinstance(started, Refusal):
        return started
    if not saved_login(wish.place):
        return Refusal(
            "unsupported_type",
            "Gemini CLI has no saved login, and would stop with exit 41",
            "choose an API key with /auth in it first",
        )
    now = wish.name_of(started.formerly.get("gemini", wish.agent.usual.upstream))
    if wish.upstream and wish.upstream != now:
        return _foreign("the key of Gemini CLI", now, wish.upstream)
    return now if isinstance(now, Refusal) else Aim(now)


def _copilot(wish: Wish) -> Aim | Refusal:
    """A provider of its file keeps its key there; a new one has none that we could know."""
    if copilot.overruled(wish.place):
        return Refusal(
            "unsupported_type",
            f"{copilot.BASE_URL} is set, which wins over the providers file of Copilot CLI",
            "unset it first, or write sightline run -- copilot",
        )
    config = wish.place.json(wish.agent.file_in(wish.place.env) or "")
    own = {str(each.get("name")): each for each in copilot.listed(config, "providers")}
    urls = {name: address_of(each.get("baseUrl")) for name, each in own.items()}
    now = {name: wish.name_of(url) for name, url in urls.items() if url}
    serves = {each.get("id"): each.get("provider") for each in copilot.listed(config, "models")}
    asked = [name for name in now if wish.upstream in ("", now[name])]
    if provider := next((name for name in asked if serves.get(wish.model) == name), next(iter(asked), "")):
        found = now[provider]
        return found if isinstance(found, Refusal) else Aim(found, provider, copilot.version_of(own[provider]))
    if not wish.upstream:
        return Refusal(
            "unsupported_type",
            "Copilot CLI asks GitHub itself, which nothing can point elsewhere",
            "name a provider of your own with --upstream",
        )
    if wish.upstream in own:
        return _foreign(f"the key of its provider {wish.upstream}", now.get(wish.upstream), wish.upstream)
    return Aim(wish.upstream, version="/v1", key="KEY" if wish.key_of(wish.upstream) else "")


_AIMS: Mapping[str, Callable[[Wish], Aim | Refusal]] = {
    "claude": _claude,
    "codex": _codex,
    "qwen": _qwen,
    "pi": _pi,
    "opencode": _opencode,
    "gemini": _gemini,
    "copilot": _copilot,
}
