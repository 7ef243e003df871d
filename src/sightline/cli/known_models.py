"""What is known about the models of upstreams, from the tables, the settings and the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sightline.model.ports import Store
from sightline.model.profile import Lesson, ToolImagePlacement, Upstream
from sightline.model.scene import Json
from sightline.profiles.presets import PRESETS
from sightline.runtime import find_model_profile
from sightline.settings import Settings
from sightline.vision.capabilities import (
    get_provider_name,
    load_capability_table,
    supports_pdf,
    supports_video,
    supports_vision,
)
from sightline.vision.prompts import find_grounding_format
from sightline.wire import WIRES

_SEES = {True: "sees", False: "text only", None: "may see"}
_PLACEMENTS: Mapping[ToolImagePlacement, str] = {
    "native": "in tool results",
    "hoist": "after tool results",
    "bridge": "after tool results and a short reply",
    "as_sent": "where the client puts them",
}


@dataclass(frozen=True, slots=True)
class KnownModel:
    upstream: str
    model: str
    vision: bool | None  # None: unknown, and assumed to see
    pdf: bool
    video: bool
    tools: bool  # whether tools may ask it about images, which needs its exact id in a table
    tool_images: ToolImagePlacement
    grounding: str
    why: str  # the rule that decided `vision`

    def as_json(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        kinds = [_SEES[self.vision], *(["pdf"] if self.pdf else []), *(["video"] if self.video else [])]
        if self.vision and not self.tools:
            kinds[0] = "sees behind the proxy, but is not known to tools"
        placed = [] if self.vision is False else [f"images {_PLACEMENTS[self.tool_images]}"]
        places = [f"coordinates {self.grounding}"] if self.grounding != "none" else []
        return f"{self.upstream}/{self.model}: {', '.join([*kinds, *placed, *places])} ({self.why})"


def list_known_models(
    settings: Settings, record: Store, upstreams: Mapping[str, Upstream], only: str = ""
) -> list[KnownModel]:
    """Return what is known about models, by upstream and name.

    `only`: an upstream, for all its models in the tables too; or UPSTREAM/MODEL, for any model. Without it, models that
    only the large table has are left out.
    """
    lessons: dict[str, dict[str, Lesson]] = {}
    for name, model, lesson in record.policy.list_lessons():
        lessons.setdefault(name, {})[model] = lesson
    if only and only not in upstreams:
        name, _, model = only.partition("/")
        return [_look_up(settings, record, upstreams[name], model, lessons.get(name, {}))]
    return [
        _look_up(settings, record, upstream, model, lessons.get(name, {}))
        for name, upstream in sorted(upstreams.items())
        if only in ("", name)
        for model in sorted({*_list_names(settings, upstream, all_listed=bool(only)), *lessons.get(name, {})})
    ]


def _list_names(settings: Settings, upstream: Upstream, *, all_listed: bool) -> Iterator[str]:
    """Yield the names of an upstream's models that a rule, a setting or a table has in full."""
    preset = PRESETS.get(upstream.preset)
    if preset is not None:
        yield from (rule.pattern for rule in preset.rules if not _is_pattern(rule.pattern))
        yield from filter(None, [preset.sibling, *(rule.sibling for rule in preset.rules)])
    for pattern in settings.models:
        head, slash, model = pattern.partition("/")
        if slash and head == upstream.name and not _is_pattern(model):
            yield model
    if all_listed:
        prefix = f"{upstream.preset or upstream.name}/"
        yield from (name.removeprefix(prefix) for name in load_capability_table() if name.startswith(prefix))


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _look_up(
    settings: Settings, record: Store, upstream: Upstream, model: str, lessons: Mapping[str, Lesson]
) -> KnownModel:
    wire = next(wire.name for wire in WIRES if wire.name in upstream.bases)
    profile = find_model_profile(settings, record, upstream, wire, model)
    provider = get_provider_name(upstream, settings)
    published = lessons[model].published if model in lessons else {}
    return KnownModel(
        upstream.name,
        model,
        profile.vision,
        pdf=supports_pdf(model, provider, settings) or published.get("pdf", False) or profile.takes_pdf,
        video=supports_video(model, provider, settings) or published.get("video", False),
        tools=supports_vision(model, provider, settings),
        tool_images=profile.tool_images,
        grounding=find_grounding_format(settings, _list_aliases(upstream, model)),
        why=profile.why,
    )


def _list_aliases(upstream: Upstream, model: str) -> Sequence[str]:
    return tuple(dict.fromkeys((f"{upstream.name}/{model}", f"{upstream.preset or upstream.name}/{model}", model)))
