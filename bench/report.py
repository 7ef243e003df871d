"""The figures as one Markdown table, each with its target and whether it was met."""

from dataclasses import dataclass

TITLES = {
    "nginx": "nginx",
    "sightline": "Sightline",
    "litellm": "LiteLLM",
    "litellm-rust": "LiteLLM with Rust core",
    "tensorzero": "TensorZero",
    "portkey": "Portkey",
}
NAMES = tuple(TITLES)
GATEWAYS = NAMES[2:]


@dataclass(frozen=True)
class Target:
    """What must hold of a figure; None: nothing."""

    times_nginx: float | None = None  # at most so many times nginx
    less_than_litellm: float | None = None  # at least so many times less than LiteLLM
    ours: float | None = None  # at most this, whatever the others need
    more_than: float | None = None  # more than this


@dataclass(frozen=True)
class ProxyFigure:
    """One measure for every peer."""

    name: str
    values: dict[str, float]
    target: Target

    def ratio(self, over: str, under: str) -> float | None:
        """Return the ratio of two peers; None if one was left out, and for speeds and delays, which mislead."""
        if not self.name.startswith(("CPU", "memory")):
            return None
        top, bottom = self.values.get(over), self.values.get(under)
        return top / bottom if top is not None and bottom else None


@dataclass(frozen=True)
class Identity:
    """Whether a streamed reply came through each peer as the bytes the upstream sent."""

    values: dict[str, bool]


def _format_number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _format_verdict(words: str, target: str, met: bool) -> str:
    return f"{words} ({target}: {'met' if met else 'MISSED'})".strip()


def _compare_with_nginx(figure: ProxyFigure) -> str:
    """Return the ratio, with the target for it or for our own figure."""
    ratio, target, ours = figure.ratio("sightline", "nginx"), figure.target, figure.values.get("sightline")
    said = "" if ratio is None else f"{ratio:.1f}×"
    if target.times_nginx is not None and ratio is not None:
        return _format_verdict(said, f"≤ {target.times_nginx:g}×", ratio <= target.times_nginx)
    if target.ours is not None and ours is not None:
        return _format_verdict(said, f"≤ {target.ours:g}", ours <= target.ours)
    if target.more_than is not None and ours is not None:
        return _format_verdict(f"{ours / target.more_than:.2f}× of one", "> 1×", ours > target.more_than)
    return said or "–"


def _compare_with_litellm(figure: ProxyFigure) -> str:
    ratio, least = figure.ratio("litellm", "sightline"), figure.target.less_than_litellm
    if ratio is None:
        return "–"
    said = f"{ratio:.1f}×"
    return said if least is None else _format_verdict(said, f"≥ {least:g}×", ratio >= least)


def _compare_with_best(figure: ProxyFigure) -> str:
    """Return how many times as much as Sightline the cheapest other gateway needs."""
    ratios = [(ratio, name) for name in GATEWAYS if (ratio := figure.ratio(name, "sightline")) is not None]
    if not ratios:
        return "–"
    ratio, name = min(ratios)
    return f"{ratio:.1f}× ({TITLES[name]})"


def _write_row(figure: ProxyFigure, names: tuple[str, ...]) -> list[str]:
    numbers = (_format_number(figure.values.get(name)) for name in names)
    compared = (_compare_with_nginx(figure), _compare_with_litellm(figure), _compare_with_best(figure))
    return [figure.name, *numbers, *compared]


def _write_identity_row(identity: Identity, names: tuple[str, ...]) -> list[str]:
    words = {True: "identical", False: "re-written", None: "–"}
    ours = identity.values.get("sightline")
    verdict = "–" if ours is None else f"identical: {'met' if ours else 'MISSED'}"
    return ["streamed bytes", *(words[identity.values.get(name)] for name in names), verdict, "–", "–"]


def write_table(figures: list[ProxyFigure], identity: Identity, versions: dict[str, str]) -> str:
    names = tuple(name for name in NAMES if name in versions)
    columns = (f"{TITLES[name]} {versions[name]}".strip() for name in names)
    heads = ["", *columns, "Sightline ÷ nginx", "LiteLLM ÷ Sightline", "cheapest other gateway ÷ Sightline"]
    rows = [heads, *(_write_row(figure, names) for figure in figures), _write_identity_row(identity, names)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def list_missed(text: str) -> list[str]:
    """Return the rows of a table whose target was missed."""
    return [line.split("|")[1].strip() for line in text.splitlines() if "MISSED" in line]
