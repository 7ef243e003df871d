"""Every setting: its name, its default, what it may be and what it means."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from sightline.model.capability import DEFAULT_CAPABILITY
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import kinds
from sightline.settings.kinds import FLAG, TEXT, Kind, choice, count, number

PREFIXES = ("SIGHTLINE_", "PI_VISION_PROXY_")


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. A dot in its name means an object within the object, and may be written either way."""

    name: str
    default: Json
    kind: Kind
    meaning: str
    variable: str = ""  # where the environment calls it something else than its own name
    attribute: str = ""  # where `Settings` calls it something else than its own name

    @property
    def field(self) -> str:
        """The field of `Settings` that holds its typed value."""
        return self.attribute or _snake_case(self.name)

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, the strongest first."""
        words = self.variable or _snake_case(self.name).upper()
        return tuple(prefix + words for prefix in PREFIXES)


def _snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).replace(".", "_").lower()


KEYS: tuple[Key, ...] = (
    Key("mode", "fallback", choice("fallback", "always", "off", "route"),
        "fallback: images are described for models that cannot see; always: for every model; off: for none; "
        "route: turns with new images go to `imageModel`, and the images are described afterwards"),
    Key("provider", "", TEXT, "the provider of the vision model that describes images; empty: chosen automatically"),
    Key("modelId", "", TEXT, "the vision model, by its name at that provider"),
    Key("systemPrompt", "", kinds.PROMPT, "instructions for the vision model; empty: Sightline's own"),
    Key("includeContext", default=True, kind=FLAG,
        meaning="the vision model also gets the end of the conversation when it describes a new image"),
    Key("tool", "auto", choice("auto", "on", "off"),
        "auto: the proxy offers analyze_image to blind models; on: to every model; off: to none, "
        "and the library does not list it either"),
    Key("maxImagesPerCall", 10, count(1, 20), "how many images one call of analyze_image, or one describe, may have"),
    Key("maxBatch", 4, count(1, 10),
        "how many images of one turn are also described together, to compare them; 1: never"),
    Key("cacheSize", 50, count(0, 500), "how many answers of analyze_image a process remembers; 0: none"),
    Key("pHashSimilarityThreshold", 0.8, number(0, 1),
        "how much alike two images must be to be called similar", "PHASH_THRESHOLD", "phash_similarity_threshold"),
    Key("groundingModels", {}, kinds.GROUNDING,
        'how a model writes coordinates: {"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}'),
    Key("model", "", TEXT,
        "provider/model in one; in the environment it comes before provider and modelId"),
    Key("apiKey", "", TEXT, "the key for the vision model, where none of its provider's usual variables holds it",
        attribute="main_api_key"),
    Key("baseUrl", "", kinds.URL, "where the vision model is served, if not at its provider's usual address",
        attribute="main_base_url"),
    Key("auxiliary.vision.model", "", TEXT, "the vision model; this key goes before all others that name one"),
    Key("auxiliary.vision.provider", "", TEXT, "its provider; empty: as `provider`"),
    Key("auxiliary.vision.apiKey", "", TEXT, "its key; empty: as `apiKey`, where the provider is the same"),
    Key("auxiliary.vision.baseUrl", "", kinds.URL, "its address; empty: as `baseUrl`, where the provider is the same"),
    Key("toolset", ["vision"], kinds.TOOLS, "the tools that are offered, by name, or by the name of a set of them"),
    Key("listImages", "folder", choice("folder", "all"),
        "the images that list_images names: those that were found in the working folder, or all of the record"),
    Key("fsReach", [], kinds.FOLDERS,
        "folders in which the tools may read, and edit_file write, beside the working folder and the temporary one"),
    Key("network", "off", kinds.NETWORK,
        "on: an image at a public https address is fetched when a text-only model is sent one, or a tool is asked to "
        "view one; off: no name is looked up and nothing is fetched, but for an address given to ask or as file_url"),
    Key("models", {}, kinds.MODELS, 'what a model can do, by pattern: {"zai/glm-5*": {"vision": false}}'),
    Key("upstreams", {}, kinds.UPSTREAMS,
        'providers by name: {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}'),
    Key("imageCapability", DEFAULT_CAPABILITY, kinds.CAPABILITY,
        "what an ACP client is told it may send; fields that are left out keep their default"),
    Key("trustPeerCapability", "trust", choice("trust", "verify", "ignore"),
        "whether a peer's promises about images are believed: trust: yes; verify: once they were seen to be kept; "
        "ignore: no"),
    Key("retention", "auto", kinds.RETENTION,
        "when an image that its tool can show again is replaced by a line about it: "
        "auto: when that is cheaper than keeping it in the prompt cache; turns:N: after N turns; off: never"),
    Key("retention.pasted", "keep", kinds.PASTED,
        "whether pasted images are retired too, where a tool can show them again"),
    Key("lowering", "byWire", choice("byWire", "hoist"),
        "byWire: images of tool results stay where the wire allows it; hoist: they always get a message of their own; "
        "an entry of `upstreams` may say it for itself"),
    Key("grounding", default=True, kind=FLAG, meaning="ask vision models for coordinates, where they can give them"),
    Key("boxes", default=True, kind=FLAG, meaning="add the coordinates in an answer, in pixels of the original image"),
    Key("joint", "auto", choice("auto", "turn"),
        "how long a description of several images together stays in the conversation: auto: as long as keeping it "
        "costs less than removing it; turn: in its own turn only"),
    Key("visionFit", "auto", choice("auto", "never"),
        "an image that is too large for vision_analyze: auto: is made to fit; never: is refused"),
    Key("visionCache", default=False, kind=FLAG, meaning="vision_analyze and video_analyze remember their answers"),
    Key("maxImagesPerTurn", 20, count(0, 1000),
        "how many images are described in one turn, the newest first; 0: no limit"),
    Key("maxToolCallsPerTurn", 10, count(0, 1000),
        "how many calls of analyze_image in one turn may ask a vision model; 0: no limit"),
    Key("seer", "auto", choice("auto", "off"),
        "auto: choose a vision model when none is named; off: use only the named one"),
    Key("imageModel", "", TEXT,
        "in the mode route: the model that gets the turns with new images, by its name at the same upstream"),
    Key("references", default=True, kind=FLAG,
        meaning="the proxy puts a label with its sha256 beside each pasted image, by which tools can ask for it"),
    Key("acp.mcpServer", default=True, kind=FLAG,
        meaning="sessions behind `sightline acp` get Sightline's own MCP server, unless they have it already"),
    Key("record", "disk", choice("disk", "memory"),
        "where images and descriptions are kept: disk: for good; memory: until the process ends"),
    Key("store", "", TEXT, "to come: another place for the rows of the record, as an address"),
    Key("blobs", "", TEXT, "to come: another place for the bytes of the record, as an address"),
)  # fmt: skip


def find(name: str) -> Key | Refusal:
    known = {key.name: key for key in KEYS}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1)
    remedy = f"did you mean {close[0]}?" if close else "config show lists them"
    return Refusal("not_found", f"there is no setting {name!r}", remedy)
