"""Settings that follow their file while a process runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sightline.settings import COMMAND_LINE, FILE_NAME, KEYS, load_settings
from sightline.settings.live_settings import CHECK_SECONDS, LiveSettings, get_process_settings
from tests.requirements import requirement


class Process:
    """A process with live settings, whose clock the test moves."""

    def __init__(self, home: Path, held: object = None, flags: Mapping[str, str] | None = None, **env: str) -> None:
        self.file = home / FILE_NAME
        self.now = 100.0
        self.reports: list[str] = []
        if held is not None:
            self.write(held)
        self.live = LiveSettings(
            load_settings({"SIGHTLINE_HOME": str(home), **env}).override(flags or {}, COMMAND_LINE),
            self.reports.append,
            lambda settings: "nobody is no model" if settings.model == "nobody" else None,
            lambda: self.now,
        )

    def write(self, held: object) -> None:
        """Replace the file, as `sightline config` does."""
        new = self.file.with_suffix(".new")
        new.write_text(held if isinstance(held, str) else json.dumps(held), "utf-8")
        new.replace(self.file)

    def later(self) -> str:
        """Return the mode a second later."""
        self.now += CHECK_SECONDS
        return self.live.get().mode


@requirement("settings.live")
def test_a_change_counts_after_a_second_at_the_latest(home: Path) -> None:
    process = Process(home, {"mode": "always"})
    first = process.live.get()
    process.write({"mode": "off"})
    assert process.live.get() is first
    assert process.later() == "off"
    process.write({})
    assert process.later() == "fallback"
    assert process.reports == []


@requirement("settings.live")
def test_a_change_while_the_process_starts_counts_too(home: Path) -> None:
    process = Process(home, {"mode": "always"})
    process.write({"mode": "off"})
    assert process.live.get().mode == "off"


@requirement("settings.live")
def test_the_same_settings_stay_the_same_object(home: Path) -> None:
    process = Process(home, {"mode": "off"})
    first = process.live.get()
    process.write({"mode": "off"})
    assert process.later() == "off"
    assert process.live.get() is first


BROKEN = ["", '{"model": "nobody"}', '{"mode": "off"', "[]", '{"mode": "of"}', '{"mode": "off", "cacheSize": 9999}']


@requirement("settings.live.broken")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_file_keeps_the_old_settings_and_is_reported_once(home: Path, broken: str) -> None:
    process = Process(home, {"mode": "always"})
    process.live.get()
    for _ in range(2):
        process.write(broken)
        assert process.later() == "always"
    assert len(process.reports) == 1
    assert str(process.file) in process.reports[0]
    process.write({"mode": "off"})
    assert process.later() == "off"
    process.write(broken)
    assert process.later() == "off"
    assert len(process.reports) == 2, "it is broken again"


@requirement("settings.live.entries")
def test_an_invalid_entry_is_left_out_and_reported_once(home: Path) -> None:
    process = Process(home, {"mode": "always"})
    process.live.get()
    entries = {"a/b": {"format": "nope"}, "c/d": {"format": "qwen_pixels"}}
    for mode in ("off", "fallback"):
        process.write({"mode": mode, "groundingModels": entries})
        assert process.later() == mode
        assert process.live.get().grounding_models.keys() == {"c/d"}
    assert [("'a/b'" in report, str(process.file) in report) for report in process.reports] == [(True, True)]
    process.write(
        {
            "mode": "always",
            "groundingModels": entries,
            "upstreams": {"x": {"baseUrl": "nowhere"}, "y": {"preset": "zai"}},
        }
    )
    assert process.later() == "always"
    assert process.live.get().upstreams.keys() == {"y"}
    assert len(process.reports) == 2


@requirement("settings.live.broken")
def test_a_fault_that_was_there_at_the_start_does_not_stop_other_changes(home: Path) -> None:
    process = Process(home, {"mode": "always", "cacheSize": 9999})
    process.live.get()
    process.write({"mode": "off", "cacheSize": 9999})
    assert process.later() == "off"
    assert process.reports == []


@requirement("settings.live.broken")
def test_a_file_that_is_away_for_a_moment_is_being_replaced(home: Path) -> None:
    process = Process(home, {"mode": "off"})
    process.live.get()
    process.file.rename(process.file.with_suffix(".bak"))
    assert process.later() == "off"
    process.file.with_suffix(".bak").rename(process.file)
    assert process.later() == "off"
    process.file.unlink()
    assert process.later() == "off"
    assert process.later() == "fallback", "it was deleted"


@requirement("settings.live.restart")
def test_settings_that_need_a_restart_stay_and_are_reported(home: Path) -> None:
    process = Process(home, {"record": "disk"})
    process.live.get()
    process.write({"record": "memory", "mode": "off"})
    assert process.later() == "off"
    assert process.live.get().record == "disk"
    assert [line.split()[0] for line in process.reports] == ["record"]
    process.write({"record": "memory"})
    assert process.later() == "fallback"
    assert len(process.reports) == 1
    assert {key.name for key in KEYS if key.needs_restart} == {"record", "store", "blobs"}


@requirement("settings.live.restart")
def test_settings_of_the_command_line_stay_and_are_not_reported(home: Path) -> None:
    """The file never had them, so it has not changed them."""
    process = Process(home, {"mode": "fallback"}, flags={"store": "postgresql://host/name", "blobs": "s3://bucket"})
    process.live.get()
    process.write({"mode": "off"})
    assert process.later() == "off"
    assert (process.live.get().store, process.live.get().blobs) == ("postgresql://host/name", "s3://bucket")
    assert process.reports == []


@requirement("settings.live", "settings.order")
def test_the_environment_still_decides_over_the_file(home: Path) -> None:
    process = Process(home, {"mode": "always"}, SIGHTLINE_MODE="route")
    process.write({"mode": "off"})
    assert process.later() == "route"


@requirement("settings.live")
def test_process_settings_are_shared_within_one_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = get_process_settings()
    assert get_process_settings() is first
    (home / FILE_NAME).write_text('{"mode": "off"}')
    first.check_soon()
    assert get_process_settings().get().mode == "off"
    monkeypatch.setenv("SIGHTLINE_MODE", "always")
    assert get_process_settings().get().mode == "always"
