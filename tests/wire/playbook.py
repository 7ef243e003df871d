"""A conversation with `listen` as a test: `Playbook(voice) >> event << what the client then gets`."""

from __future__ import annotations

from sightline.wire.listen import Event, Hearing, Voice, listen


class Playbook:
    def __init__(self, voice: Voice) -> None:
        self._state = Hearing(voice)
        self._said: bytes | None = None

    def __rshift__(self, event: Event) -> Playbook:
        assert not self._said, "what was said has not been asked about"
        self._state, self._said = listen(self._state, event)
        return self

    def __lshift__(self, expected: bytes) -> Playbook:
        assert self._said == expected
        self._said = None
        return self
