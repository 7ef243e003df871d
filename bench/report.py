"""The figures as one Markdown table, each with its target and whether it was met."""

from collections.abc import Callable
from dataclasses import dataclass

NAMES = ("nginx", "sightline", "litellm")


@dataclass(frozen=True)
class Figure:
    """One measure for every peer, lower being better where it has a target."""

    name: str
    values: dict[str, float]
    at_most: float | None = None  # times nginx
    at_least: float | None = None  # times less than LiteLLM

    def ratio(self, over: str, under: str) -> float | None:
        """None where a peer was left out, and for speeds and delays, whose ratios would mislead beside costs."""
        if not self.name.startswith(("CPU", "memory")):
            return None
        top, bottom = self.values.get(over), self.values.get(under)
        return top / bottom if top is not None and bottom else None


@dataclass(frozen=True)
class Identity:
    """Whether a streamed reply came through each peer as the bytes the upstream sent."""

    values: dict[str, bool]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(ratio: float | None, limit: float | None, sign: str, met: Callable[[float, float], bool]) -> str:
    if ratio is None:
        return "–"
    if limit is None:
        return f"{ratio:.1f}×"
    return f"{ratio:.1f}× ({sign} {limit:g}×: {'met' if met(ratio, limit) else 'MISSED'})"


def _row(figure: Figure) -> list[str]:
    return [
        figure.name,
        *(_number(figure.values.get(name)) for name in NAMES),
        _verdict(figure.ratio("sightline", "nginx"), figure.at_most, "≤", lambda a, b: a <= b),
        _verdict(figure.ratio("litellm", "sightline"), figure.at_least, "≥", lambda a, b: a >= b),
    ]


def _identity_row(identity: Identity) -> list[str]:
    words = {True: "identical", False: "re-written", None: "–"}
    ours = identity.values.get("sightline")
    verdict = "–" if ours is None else f"identical: {'met' if ours else 'MISSED'}"
    return ["streamed bytes", *(words[identity.values.get(name)] for name in NAMES), verdict, "–"]


def table(figures: list[Figure], identity: Identity, versions: dict[str, str]) -> str:
    heads = [
        "",
        *(f"{name} {versions.get(name, '')}".strip() for name in NAMES),
        "Sightline ÷ nginx",
        "LiteLLM ÷ Sightline",
    ]
    heads = [head.replace("sightline", "Sightline").replace("litellm", "LiteLLM") for head in heads]
    rows = [heads, *map(_row, figures), _identity_row(identity)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def missed(text: str) -> list[str]:
    """The rows of a table whose target was not met."""
    return [line.split("|")[1].strip() for line in text.splitlines() if "MISSED" in line]
