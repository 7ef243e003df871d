"""A conversation with `listen` as a test: `Playbook(format) >> event << expected bytes`."""

from __future__ import annotations

from sightline.wire.sse import StreamFormat, StreamState, UpstreamEvent, listen


class Playbook:
    def __init__(self, voice: StreamFormat) -> None:
        self._state = StreamState(voice)
        self._said: bytes | None = None

    def __rshift__(self, event: UpstreamEvent) -> Playbook:
        assert not self._said, "what was said has not been asked about"
        self._state, self._said = listen(self._state, event)
        return self

    def __lshift__(self, expected: bytes) -> Playbook:
        assert self._said == expected
        self._said = None
        return self
