"""Every setting: its name, default, meaning and kind."""

from __future__ import annotations

import difflib
import re

from sightline.model.media_capability import DEFAULT_CAPABILITY
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.settings.setting_kinds import (
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
    SWITCH,
    TEXT,
    TOOLS,
    UPSTREAMS,
    URL,
    SettingKind,
    choice,
    number,
    whole_number,
)

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
    close = difflib.get_close_matches(name, allowed, 1)
    remedy = f"did you mean {close[0]}?" if close else "sightline config show lists all settings"
    return Refusal("not_found", f"there is no setting {name!r}", remedy)
