"""Every parser holds what its target says, for its corpus and for changed copies of it.

`make fuzz` tries many more inputs, with another seed each time: FUZZ_EXAMPLES says how many for each target.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS, read_corpus
from tests.requirements import requirement

LONG = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SLOW = {"server": 10, "settings": 3}  # how many times fewer inputs


@st.composite
def change(draw: st.DrawFn, corpus: list[bytes]) -> bytes:
    """Bytes of the corpus that are cut, overwritten, repeated or joined at a few places; sometimes any bytes."""
    data = bytearray(draw(st.sampled_from([*corpus, b""])))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 24)))
        data[start:end] = draw(
            st.binary(max_size=6)
            | st.sampled_from(
                [b"", bytes(data[start:end]) * 2, b"\xff", b"\x00", b'"', b"\r\n", b"{", b"]", b"-1", b"1e999"]
            )
            | st.sampled_from(corpus).map(lambda other: other[: len(other) // 2])
        )
    return bytes(data)


@requirement("project.fuzz")
@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_any_bytes(name: str) -> None:
    corpus = read_corpus(name)
    for data in corpus:
        TARGETS[name](data)

    @settings(
        max_examples=max(1, (LONG or 150) // SLOW.get(name, 1)),
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
    )
    @given(change(corpus))
    def run(data: bytes) -> None:
        TARGETS[name](data)

    run()


@requirement("project.fuzz")
def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == TARGETS.keys()
    assert all(map(read_corpus, TARGETS))
