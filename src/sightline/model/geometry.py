"""Sizes of pictures, in pixels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int

    @property
    def edge(self) -> int:
        """The longer side."""
        return max(self.width, self.height)

    @property
    def pixels(self) -> int:
        return self.width * self.height

    def within(self, edge: int) -> Size:
        """The largest size of the same shape whose longer side is at most `edge`; never larger than itself."""
        if self.edge <= edge:
            return self
        scale = edge / self.edge
        return Size(max(1, round(self.width * scale)), max(1, round(self.height * scale)))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"
