"""Every setting with its name, default, meaning and kind, and the file that has their values.

The file is read and written as a whole, with access only for its owner if it contains a key.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from sightline.disk import explain_os_error, write_atomically
from sightline.model.media_capability import DEFAULT_CAPABILITY
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.shared_address import has_password
from sightline.model.value import value_class
from sightline.settings.setting_kinds import (
    API_KEY_NAME,
    BLOBS,
    CAPABILITY,
    FLAG,
    FOLDERS,
    GROUNDING,
    MODELS,
    PASTED,
    PROMPT,
    RETENTION,
    SEER,
    STORE,
    STORE_NAME,
    SWITCH,
    TEXT,
    TOOLS,
    UPSTREAMS,
    URL,
    SettingKind,
    choice,
    number,
    parse_strict_json,
    whole_number,
)

if sys.platform != "win32":
    import fcntl

PREFIXES = ("SIGHTLINE_", "PI_VISION_PROXY_")


@value_class
class Setting:
    """One setting. A dot in its name means a nested object; a file may write it either way."""

    name: str
    default: Json
    kind: SettingKind
    meaning: str
    variable: str = ""  # its name in the environment, if that is not derived from `name`
    attribute: str = ""  # its field in `Settings`, if that is not derived from `name`
    needs_restart: bool = False  # processes that are already running don't use a new value

    @property
    def field(self) -> str:
        """The field of `Settings` that has its typed value."""
        return self.attribute or _snake_case(self.name)

    @property
    def restart_note(self) -> str:
        """What to tell the user who sets it; empty: running processes use it within a second."""
        return "; restart commands that are already running" if self.needs_restart else ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it; the first that is set wins."""
        words = self.variable or _snake_case(self.name).upper()
        return tuple(prefix + words for prefix in PREFIXES)


def _snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).replace(".", "_").lower()


KEYS: tuple[Setting, ...] = (
    Setting("mode", "fallback", choice("fallback", "always", "off", "route"),
        "fallback: images are described for text-only models; always: for every model; off: for none; "
        "route: turns with new images go to `imageModel`, and the images are described afterwards"),
    Setting("provider", "", TEXT,
        "replaced by `seer`: the provider of the vision model; `apiKey` and `baseUrl` belong to it if it is set"),
    Setting("modelId", "", TEXT, "replaced by `seer`: the vision model, by its name at `provider`"),
    Setting("systemPrompt", "", PROMPT, "instructions for the vision model; empty: Sightline's own"),
    Setting("includeContext", default=True, kind=FLAG,
        meaning="the vision model also gets the end of the conversation when it describes a new image"),
    Setting("tool", "auto", choice("auto", "on", "off"),
        "auto: the proxy offers analyze_image to text-only models; on: to every model; off: to none, "
        "and the library does not list it either"),
    Setting("maxImagesPerCall", 10, whole_number(1, 20),
        "how many images one call of analyze_image, or one describe, may have"),
    Setting("maxBatch", 4, whole_number(1, 10),
        "how many images of one turn are also described together, to compare them; 1: never"),
    Setting("cacheSize", 50, whole_number(0, 500), "how many answers of analyze_image a process remembers; 0: none"),
    Setting("pHashSimilarityThreshold", 0.8, number(0, 1),
        "how much two images must be alike to count as similar", "PHASH_THRESHOLD", "phash_similarity_threshold"),
    Setting("groundingModels", {}, GROUNDING,
        'how a model writes coordinates: {"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}'),
    Setting("model", "", TEXT,
        "replaced by `seer`: the vision model as PROVIDER/MODEL; in the environment it overrides the settings file"),
    Setting("apiKey", "", TEXT, "the key for the vision model, if none of its provider's usual variables is set",
        attribute="main_api_key"),
    Setting("baseUrl", "", URL, "where the vision model is served, if not at its provider's usual address",
        attribute="main_base_url"),
    Setting("auxiliary.vision.model", "", TEXT,
        "the vision model; overrides `seer` and all other settings that name one"),
    Setting("auxiliary.vision.provider", "", TEXT, "its provider; empty: as `provider`"),
    Setting("auxiliary.vision.apiKey", "", TEXT, "its key; empty: as `apiKey`, if provider and address are the same"),
    Setting("auxiliary.vision.baseUrl", "", URL,
        "its address; empty: as `baseUrl`, if the provider is the same"),
    Setting("toolset", ["vision"], TOOLS, "the tools to offer, by name; vision stands for all but edit_file"),
    Setting("listImages", "folder", choice("folder", "all"),
        "the images that list_images lists: those that were found in the working folder, or all in the record"),
    Setting("fsReach", [], FOLDERS,
        "folders that tools may read, and edit_file may write, besides the working folder and the temporary one"),
    Setting("network", "off", SWITCH,
        "on: an image at a public https address is fetched when a text-only model is sent one, or a tool is asked to "
        "view one; off: no name is resolved and nothing is fetched, except an address given to ask or as file_url"),
    Setting("render", "on", SWITCH,
        "on: tools also show files that are not images, such as drawings and documents, by rendering them; off: they "
        "show images only; the command line always renders"),
    Setting("models", {}, MODELS, 'what a model can do, by pattern: {"zai/glm-5*": {"vision": false}}'),
    Setting("upstreams", {}, UPSTREAMS,
        'providers by name: {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}'),
    Setting("imageCapability", DEFAULT_CAPABILITY, CAPABILITY,
        "the image capability that is advertised to ACP clients; fields that are left out keep their default"),
    Setting("trustPeerCapability", "trust", choice("trust", "verify", "ignore"),
        "whether to rely on a peer's promises about images: trust: yes; verify: once the peer has kept them; "
        "ignore: no"),
    Setting("retention", "auto", RETENTION,
        "when an image that its tool can show again is replaced by a line about it: "
        "auto: when that is cheaper than keeping it in the prompt cache; turns:N: after N turns; off: never"),
    Setting("retention.pasted", "keep", PASTED,
        "whether pasted images are retired too, if a tool can show them again"),
    Setting("lowering", "byWire", choice("byWire", "hoist"),
        "byWire: images of tool results stay where the wire allows it; hoist: they always get a message of their own; "
        "an entry of `upstreams` can override it"),
    Setting("legible", "auto", choice("auto", "off"),
        "auto: the proxy folds a tall page into columns if the provider would reduce it until its text is lost, unless "
        "a tool of the conversation takes coordinates; off: it is sent as it is"),
    Setting("grounding", default=True, kind=FLAG,
        meaning="ask vision models for coordinates, if they can give them"),
    Setting("boxes", default=True, kind=FLAG,
        meaning="add the coordinates in an answer, in pixels of the original image"),
    Setting("joint", "auto", choice("auto", "turn"),
        "how long a description of several images together stays in the conversation: auto: as long as keeping it "
        "costs less than removing it; turn: in its own turn only"),
    Setting("visionFit", "auto", choice("auto", "never"),
        "what to do with an image that is too large for vision_analyze: auto: refit it; never: refuse it"),
    Setting("visionCache", default=False, kind=FLAG, meaning="vision_analyze and video_analyze remember their answers"),
    Setting("maxImagesPerTurn", 20, whole_number(0, 1000),
        "how many images are described in one turn, the newest first; 0: no limit"),
    Setting("maxToolCallsPerTurn", 10, whole_number(0, 1000),
        "how many calls of analyze_image in one turn may ask a vision model; 0: no limit"),
    Setting("seer", "auto", SEER,
        "the vision model that describes images; auto: chosen for each request; local: Sightline's own reader; "
        "off: none"),
    Setting("imageModel", "", TEXT,
        "with mode route: the model that gets turns with new images, by its name at the same upstream"),
    Setting("references", default=True, kind=FLAG,
        meaning="the proxy adds a label with its sha256 to each pasted image, so that tools can refer to it"),
    Setting("acp.mcpServer", default=True, kind=FLAG,
        meaning="sessions behind `sightline acp` get Sightline's own MCP server, unless they have it already"),
    Setting("record", "disk", choice("disk", "memory"),
        "where images and descriptions are stored: disk: on disk, until they expire; memory: until the process ends",
        needs_restart=True),
    Setting("store", "", STORE,
        "the address of a PostgreSQL database for a record that replicas share, like postgresql://USER@HOST/DATABASE; "
        "it needs `blobs`; a password is better in PGPASSWORD",
        needs_restart=True),
    Setting("blobs", "", BLOBS,
        "where the images of a shared record are: s3://BUCKET/PREFIX, with the key in the usual AWS variables, or "
        "file:///FOLDER on a disk that all replicas have",
        needs_restart=True),
)  # fmt: skip


def find_key(name: str) -> Setting | Refusal:
    """Return the setting of a name, or refuse with a suggestion."""
    allowed = {key.name: key for key in KEYS}
    if name in allowed:
        return allowed[name]
    import difflib  # only for a misspelt name

    close = difflib.get_close_matches(name, allowed, 1)
    remedy = f"did you mean {close[0]}?" if close else "sightline config show lists all settings"
    return Refusal("not_found", f"there is no setting {name!r}", remedy)


# The file


SettingsObject = dict[str, Json]


def read_settings_file(path: Path) -> SettingsObject | Refusal:
    """Return the content of the file, or an empty object if there is no file."""
    try:
        values = parse_strict_json(_read_regular_file(path).decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        why, remedy = explain_os_error(error)
        return Refusal("not_permitted", f"{path} cannot be read: {why}", remedy)
    except (ValueError, RecursionError) as error:
        return Refusal("invalid_input", f"{path} is not valid JSON: {error}", "fix it or delete it")
    if not isinstance(values, dict):
        return Refusal("invalid_input", f"{path} is not a JSON object", "fix it or delete it")
    return values


def _read_regular_file(path: Path) -> bytes:
    """Read a regular file. Opening a pipe must not block until it has a writer."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def set_value(path: Path, name: str, value: Json) -> Refusal | None:
    """Set one key, and keep everything else in the file, including what another process has just changed."""
    return _edit_file(path, name, lambda values: insert_value(values, name, value))


def remove_value(path: Path, name: str, *, keep_object: bool) -> Refusal | None:
    """Remove one key, however it is written. `keep_object`: an object in its place contains other keys and stays."""

    def edit(values: SettingsObject) -> SettingsObject:
        while (value := find_value(values, name)) is not None and not (keep_object and isinstance(value, dict)):
            values = _delete_value(values, name)
        return values

    return _edit_file(path, name, edit)


def _delete_value(values: Mapping[str, Json], name: str) -> SettingsObject:
    """Return the values without the one that `find_value` finds, and without an object that becomes empty."""
    if name in values:
        return {key: value for key, value in values.items() if key != name}
    for head, tail in _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict) and find_value(inner, tail) is not None:
            rest = _delete_value(inner, tail)
            return {key: rest if key == head else value for key, value in values.items() if key != head or rest}
    return dict(values)


def _edit_file(path: Path, name: str, edit: Callable[[SettingsObject], SettingsObject]) -> Refusal | None:
    target = path.resolve()  # the file may be a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(target.parent):
            values = read_settings_file(target)
            if isinstance(values, Refusal):
                return values
            if (edited := edit(values)) != values:
                _write_file(target, edited)
    except OSError as error:
        why, remedy = explain_os_error(error)
        return Refusal("not_permitted", f"{path} cannot be written: {why}", remedy)
    except ValueError:  # a lone surrogate, or an infinite number
        return Refusal("invalid_input", f"{name}: the value cannot be written as JSON", "give plain text")
    return None


def _write_file(path: Path, values: SettingsObject) -> None:
    mode = 0o600 if has_secret(values) else _read_mode(path, default=0o644)
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), mode=mode, force_mode=path.exists())


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time edit the file. Locking the folder leaves no lock file behind."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def find_value(values: Mapping[str, Json], name: str) -> Json:
    """Return a value by its dotted name; the file may write it in full or as nested objects."""
    if name in values:
        return values[name]
    for head, tail in _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict) and (value := find_value(inner, tail)) is not None:
            return value
    return None


def insert_value(values: Mapping[str, Json], name: str, value: Json, *, within: bool = False) -> SettingsObject:
    """Return the values with one added, nested or with dots as the file already writes such names.

    If its place has an object with the keys below it, these are written beside it with dots.
    """
    for head, tail in () if name in values else _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict):
            return {**values, head: insert_value(inner, tail, value, within=True)}
    head, dot, tail = name.partition(".")
    if within and dot and name not in values:
        return {**values, head: insert_value({}, tail, value, within=True)}
    inner = values.get(name)
    below = {f"{name}.{each}": kept for each, kept in inner.items()} if _is_parent(inner, value) else {}
    return {**values, name: value, **below}


def _is_parent(inner: Json, value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(inner, dict) and not isinstance(value, dict)


def _split_at_dots(name: str) -> list[tuple[str, str]]:
    return [(name[:at], name[at + 1 :]) for at, character in enumerate(name) if character == "."]


def has_exposed_secret(path: Path, values: SettingsObject) -> bool:
    """Return whether the file contains a provider's key and users other than its owner can read it."""
    return os.name == "posix" and has_secret(values) and bool(_read_mode(path, default=0) & 0o077)


def remove_secrets(values: Mapping[str, Json]) -> SettingsObject:
    return _replace_secrets(values, lambda secret: None if secret else secret)


def mask_secrets(values: Mapping[str, Json]) -> SettingsObject:
    """Return the values with each secret replaced by whether it is set."""
    return _replace_secrets(values, lambda secret: "set" if secret else "")


def has_secret(values: SettingsObject) -> bool:
    return remove_secrets(values) != values


def _replace_secrets(values: Mapping[str, Json], replacement: Callable[[Json], Json]) -> SettingsObject:
    """Return the values with every provider's key replaced, or removed if the replacement is None."""
    changed: SettingsObject = {}
    for name, value in values.items():
        is_secret = name.rpartition(".")[2] == API_KEY_NAME or (
            name == STORE_NAME and isinstance(value, str) and has_password(value)
        )
        if is_secret:
            value = replacement(value)
        elif isinstance(value, dict):
            value = _replace_secrets(value, replacement)
        if value is not None or not is_secret:
            changed[name] = value
    return changed


def _read_mode(path: Path, *, default: int) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return default
