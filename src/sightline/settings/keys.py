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
    """A dot in a name stands for an object within the object, and may be written either way."""

    name: str
    default: Json
    kind: Kind
    meaning: str
    variable: str = ""  # where the environment calls it something else than its own name

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, the strongest first."""
        words = self.variable or re.sub(r"(?=[A-Z])", "_", self.name).replace(".", "_").upper()
        return tuple(prefix + words for prefix in PREFIXES)


KEYS: tuple[Key, ...] = (
    Key("mode", "fallback", choice("fallback", "always", "off", "route"),
        "when images are told in words: for blind models, always, never, or when their turn is over, "
        "`imageModel` having taken its requests"),
    Key("provider", "", TEXT, "the provider of the model that looks; empty: found by itself"),
    Key("modelId", "", TEXT, "the model that looks, by its name at that provider"),
    Key("systemPrompt", "", TEXT, "instructions for the model that looks; empty: Sightline's own"),
    Key("includeContext", default=True, kind=FLAG,
        meaning="whoever describes a new image by itself is told the end of the conversation that it stands in"),
    Key("tool", "auto", choice("auto", "on", "off"),
        "offer analyze_image to blind models, to every model, or to none; programs are offered it unless it is off"),
    Key("maxImagesPerCall", 10, count(1, 20), "images in one call of analyze_image, or one describe"),
    Key("maxBatch", 4, count(1, 10),
        "images of one turn that are looked at together by themselves, beside each on its own; 1: none are"),
    Key("cacheSize", 50, count(0, 500), "answers of analyze_image that a process remembers; 0: none"),
    Key("pHashSimilarityThreshold", 0.8, number(0, 1),
        "how much alike two images are that are called similar", "PHASH_THRESHOLD"),
    Key("groundingModels", {}, kinds.GROUNDING,
        'how a model writes coordinates: {"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}'),
    Key("model", "", TEXT,
        "provider/model in one; in the environment it comes before provider and modelId"),
    Key("apiKey", "", TEXT, "the key for the model that looks, where no usual variable holds it"),
    Key("baseUrl", "", kinds.URL, "where the model that looks is served, if not at its provider's usual address"),
    Key("auxiliary.vision.model", "", TEXT, "the model that looks, before every other way to name it"),
    Key("auxiliary.vision.provider", "", TEXT, "its provider; empty: as `provider`"),
    Key("auxiliary.vision.apiKey", "", TEXT, "its key; empty: as `apiKey`, where the provider is the same"),
    Key("auxiliary.vision.baseUrl", "", kinds.URL, "its address; empty: as `baseUrl`, where the provider is the same"),
    Key("toolset", ["vision"], kinds.TOOLS, "the tools that are offered, by name or by the name of their set"),
    Key("listImages", "folder", choice("folder", "all"),
        "the images that list_images names: those that were found in the working folder, or all of the record"),
    Key("fsReach", [], kinds.FOLDERS,
        "folders in which the tools may read, and edit_file write, beside the working folder and the temporary one"),
    Key("models", {}, kinds.MODELS, 'what a model can do, by pattern: {"zai/glm-5*": {"vision": false}}'),
    Key("upstreams", {}, kinds.UPSTREAMS,
        'providers by name: {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}'),
    Key("imageCapability", DEFAULT_CAPABILITY, kinds.CAPABILITY,
        "what a client is told that it may send; what is not said stays as it is"),
    Key("trustPeerCapability", "trust", choice("trust", "verify", "ignore"),
        "what a peer says it does by itself counts, counts once it was seen, or never counts"),
    Key("retention", "auto", kinds.RETENTION,
        "images that a tool brought and can bring again give way to a line about them: "
        "by what the prompt cache costs, after N turns, or never"),
    Key("retention.pasted", "keep", choice("keep", "retire"),
        "whether pasted images are retired too, where a tool can show them again"),
    Key("lowering", "byWire", choice("byWire", "hoist"),
        "images of tool results stand where each wire takes them, or always in a message of their own; "
        "an entry of `upstreams` may say it for itself"),
    Key("grounding", default=True, kind=FLAG, meaning="ask models that can for coordinates"),
    Key("boxes", default=True, kind=FLAG, meaning="add coordinates in pixels of the original image"),
    Key("joint", "auto", choice("auto", "turn"),
        "what was seen of several images together stays until it no longer pays, or goes with its turn"),
    Key("visionFit", "auto", choice("auto", "never"),
        "vision_analyze makes an image fit that is too large, or refuses it"),
    Key("visionCache", default=False, kind=FLAG, meaning="vision_analyze and video_analyze remember their answers"),
    Key("maxImagesPerTurn", 20, count(0, 1000),
        "how many images are described in one turn, the newest first; 0: no limit"),
    Key("maxToolCallsPerTurn", 10, count(0, 1000), "calls of analyze_image in one turn that ask somebody; 0: no limit"),
    Key("seer", "auto", choice("auto", "off"),
        "auto: find a model that looks when none is named; off: only the named one"),
    Key("imageModel", "", TEXT,
        "in the mode route: the model that takes the requests of a turn with new images, by its name at the same "
        "upstream"),
    Key("references", default=True, kind=FLAG,
        meaning="on the proxy a pasted image that is shown has its sha256 beside it, by which it can be asked for"),
    Key("acp.mcpServer", default=True, kind=FLAG,
        meaning="sessions behind `sightline acp` get Sightline's own MCP server, unless they have it already"),
    Key("record", "disk", choice("disk", "memory"), "where images and descriptions are remembered"),
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
