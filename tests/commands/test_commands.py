"""The grammar of /vision-proxy: every verb, every malformed form, and back to text."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.cli.terminal import add_command_arguments
from sightline.commands import (
    NAME,
    SETTINGS,
    VERBS,
    ChangeSetting,
    Command,
    Consent,
    Describe,
    GroundingModels,
    ListImages,
    Redescribe,
    Status,
    UseModel,
    format_usage,
)
from sightline.commands.grammar import format_shell, is_command, parse, parse_arguments, parse_words
from sightline.grounding import FORMATS
from sightline.model.geometry import REGIONS, Crop, FractionCrop, NamedCrop, PixelCrop
from sightline.model.refusal import Refusal
from tests.requirements import requirement


def quote_word(word: str) -> str:
    """Return a word as it has to be typed, so that `split_words` returns it again."""
    option = re.match(r"--[a-z]+=", word)
    head = option[0] if option else ""
    value = word[len(head) :]
    if value and not re.search(r"""[\s\\"'“”]""", value):
        return word
    return head + '"' + re.sub(r"""([\\"])""", r"\\\1", value) + '"'


def _typed(command: Command) -> str:
    """A command as a person would type it."""
    return " ".join([NAME, *map(quote_word, command.words)])


GOOD: dict[str, Command] = {
    "": Status(),
    "status": Status(),
    "list": ListImages(),
    "describe a.png": Describe(("a.png",)),
    "describe sha256:abcdef012345 b.png": Describe(("sha256:abcdef012345", "b.png")),
    'describe a.png --question "what is \\"this\\"?"': Describe(("a.png",), 'what is "this"?'),
    "describe a.png --question='what\\now?'": Describe(("a.png",), "what\\now?"),
    "describe a.png --question “what is this?”": Describe(("a.png",), "what is this?"),
    'describe "my shot.png" it\'s.png my\\ other.png': Describe(("my shot.png", "it's.png", "my other.png")),
    "describe C:\\shots\\a.png": Describe(("C:\\shots\\a.png",)),
    "describe '\\\\host\\a.png'": Describe(("\\\\host\\a.png",)),
    'describe "\\\\host\\a.png"': Describe(("\\host\\a.png",)),
    "describe -- --odd.png": Describe(("--odd.png",)),
    "describe --save -- --odd.png": Describe(("--odd.png",), save=True),
    "consent -- yes --odd": Consent("yes", "--odd"),
    "describe a.png --crop r=top-right": Describe(("a.png",), crops=((0, NamedCrop("top-right")),)),
    "describe a.png --crop 0:r=top-right": Describe(("a.png",), crops=((0, NamedCrop("top-right")),)),
    "describe a.png --crop 0:n=0.5,0.5,0.4,0.4": Describe(("a.png",), crops=((0, FractionCrop(0.5, 0.5, 0.4, 0.4)),)),
    "describe a.png --crop=0:p=1840,120,840,360": Describe(("a.png",), crops=((0, PixelCrop(1840, 120, 840, 360)),)),
    "describe a b --crop 1:r=top --crop 0:r=left": Describe(
        ("a", "b"), crops=((1, NamedCrop("top")), (0, NamedCrop("left")))
    ),
    "describe --crop 1:r=top 0:r=left a b": Describe(("a", "b"), crops=((1, NamedCrop("top")), (0, NamedCrop("left")))),
    "describe a.png --save --model openrouter/qwen/qwen3-vl": Describe(
        ("a.png",), model="openrouter/qwen/qwen3-vl", save=True
    ),
    "redescribe a.png": Redescribe("a.png"),
    "redescribe --model google/gemini-3-pro a.png": Redescribe("a.png", "google/gemini-3-pro"),
    "consent": Consent(),
    "consent list": Consent(),
    "consent yes": Consent("yes"),
    "consent no openai": Consent("no", "openai"),
    "model google/gemini-3-pro": UseModel("google/gemini-3-pro"),
    "model local": UseModel("local"),
    "describe a.png --model local": Describe(("a.png",), model="local"),
    "redescribe a.png --model local": Redescribe("a.png", "local"),
    "mode always": ChangeSetting("mode", "always"),
    "fallback": ChangeSetting("mode", "fallback"),
    "always": ChangeSetting("mode", "always"),
    "off": ChangeSetting("mode", "off"),
    "route": ChangeSetting("mode", "route"),
    "context off": ChangeSetting("includeContext", False),
    "tool on": ChangeSetting("tool", "on"),
    "tool auto": ChangeSetting("tool", "auto"),
    "max-images-per-call 20": ChangeSetting("maxImagesPerCall", 20),
    "max-batch 1": ChangeSetting("maxBatch", 1),
    "cache-size 0": ChangeSetting("cacheSize", 0),
    "grounding-models list": GroundingModels("list"),
    "grounding-models reset": GroundingModels("reset"),
    "grounding-models add a/b": GroundingModels("add", "a/b"),
    "grounding-models add a/b --format unit_xyxy --yes": GroundingModels("add", "a/b", "unit_xyxy", yes=True),
    "grounding-models remove a/b": GroundingModels("remove", "a/b"),
}


@requirement("FR-3.1", "command.words")
@pytest.mark.parametrize(("typed", "expected"), GOOD.items())
def test_a_command_is_understood(typed: str, expected: Command) -> None:
    assert parse(f"{NAME} {typed}") == expected
    assert parse(_typed(expected)) == expected
    assert parse(f"\n {NAME}\n{typed.replace(' --', chr(10) + '--')} \n") == expected


BAD: dict[str, tuple[str, ...]] = {  # what is typed, and what the answer has to name
    "dance": ("'dance'",),
    "descirbe a.png": ("'descirbe'",),
    "describe": ("describe", "sha256:"),
    "describe ''": ("describe", "sha256:"),
    'describe "a.png': ('"',),
    "describe 'a.png": ("'",),
    'describe "a.png"b': ("a.png",),
    "describe a.png --shout": ("describe", "'--shout'"),
    "describe a.png --format qwen_pixels": ("describe", "'--format'"),
    "describe a.png --question": ("--question",),
    "describe a.png --question --save": ("--question",),
    "describe a.png --question '  '": ("question",),
    "describe a.png --question a --question b": ("--question",),
    "describe a.png --save=yes": ("--save",),
    "describe a.png --save --save": ("--save",),
    "describe a.png b.png --save": ("--save",),
    "describe a.png --question why --save": ("--save",),
    "describe a.png --crop 0:r=top --save": ("--save",),
    "describe sha256:abcdef012345#crop:1,2,3,4 --save": ("--save",),
    "describe a.png --model gemini": ("'gemini'",),
    "describe a.png --model google/": ("'google/'",),
    "describe a.png --crop": ("--crop",),
    "describe a.png b.png --crop r=top": ("'r=top'",),
    "describe a.png --crop r=top --crop 0:r=left": ("image 0",),
    "describe a.png --crop r=top p=0,0,1,1": ("'r=top p=0,0,1,1'",),
    "describe a.png --crop x:r=top": ("'x:r=top'",),
    "describe a.png --crop 0:r=top,n=0,0,1,1": ("'0:r=top,n=0,0,1,1'",),
    "describe a.png --crop 0:r=top n=0,0,1,1": ("'0:r=top n=0,0,1,1'",),
    "describe a.png --crop '0:r=top | p=0,0,1,1'": ("'0:r=top | p=0,0,1,1'",),
    "describe a.png --crop 0:": ("'0:'",),
    "describe a.png --crop 0:q=1,2,3,4": ("'0:q=1,2,3,4'",),
    "describe a.png --crop 0:r=middle": ("'0:r=middle'", "'middle'"),
    "describe a.png --crop 0:p=1,2,3": ("'0:p=1,2,3'", "'p=1,2,3'"),
    "describe a.png --crop 0:p=1,2,3,nan": ("'0:p=1,2,3,nan'",),
    "describe a.png --crop 1:r=top": ("image 1",),
    "describe a.png --crop 0:r=top 0:r=left": ("image 0",),
    "redescribe": ("redescribe", "0"),
    "redescribe a b": ("redescribe", "2"),
    "redescribe sha256:abcdef012345#crop:1,2,3,4": ("redescribe",),
    "redescribe a --question b": ("redescribe", "'--question'"),
    "redescribe a --model b": ("'b'",),
    "consent maybe": ("consent", "'maybe'"),
    "consent list openai": ("consent", "'list openai'"),
    "consent yes a b": ("consent", "'yes a b'"),
    "model": ("model", "0"),
    "model gemini": ("'gemini'",),
    "model locals": ("'locals'",),
    "grounding-models add local": ("'local'",),
    "mode": ("mode", "0"),
    "mode sometimes": ("mode", "'sometimes'"),
    "off now": ("mode", "2"),
    "context maybe": ("context", "'maybe'"),
    "tool maybe": ("tool", "'maybe'"),
    "max-images-per-call 0": ("max-images-per-call", "'0'"),
    "max-images-per-call 21": ("max-images-per-call", "'21'"),
    "max-batch 11": ("max-batch", "'11'"),
    "max-batch two": ("max-batch", "'two'"),
    "cache-size 501": ("cache-size", "'501'"),
    "cache-size -1": ("cache-size", "'-1'"),
    "grounding-models": ("grounding-models",),
    "grounding-models praise": ("grounding-models", "'praise'"),
    "grounding-models list all": ("list",),
    "grounding-models reset --yes": ("reset",),
    "grounding-models add": ("add", "0"),
    "grounding-models add a/b c/d": ("add", "2"),
    "grounding-models add b": ("'b'",),
    "grounding-models add a/b --format runes": ("'runes'",),
    "grounding-models remove": ("remove", "0"),
    "grounding-models remove a/b --format unit_xyxy": ("remove",),
    "list all": ("list",),
    "status --json": ("status", "'--json'"),
}


@requirement("FR-3.1", "command.errors")
@pytest.mark.parametrize(("typed", "facts"), BAD.items())
def test_a_malformed_command_is_refused_in_one_line_with_a_remedy(typed: str, facts: tuple[str, ...]) -> None:
    refusal = parse(f"{NAME} {typed}")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "invalid_input"
    assert [fact for fact in facts if fact not in refusal.what] == []
    assert refusal.remedy
    assert len(str(refusal).splitlines()) == 1
    verb = typed.split()[0]
    if NAME in refusal.remedy:
        assert refusal.remedy.endswith(format_usage(verb if verb in VERBS else "mode"))


@requirement("command.errors")
def test_a_misspelled_verb_gets_a_suggestion() -> None:
    refusal = parse(f"{NAME} descirbe a.png")
    assert isinstance(refusal, Refusal)
    assert [verb for verb in VERBS if verb in refusal.remedy.replace("?", "").split()] == ["describe"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NAME, True),
        (f"  {NAME} list", True),
        (f"{NAME}\tlist", True),
        (f"{NAME}s", False),
        (f"see {NAME}", False),
        ("", False),
    ],
)
def test_a_command_is_recognised_by_its_first_word(text: str, expected: bool) -> None:
    assert is_command(text) is expected
    assert isinstance(parse(text), Refusal) is not expected


def test_usage_names_the_values_that_the_settings_take() -> None:
    assert format_usage("max-batch") == "/vision-proxy max-batch 1–10"
    assert format_usage("context") == "/vision-proxy context on|off"
    assert set(format_usage("mode").split()[-1].split("|")) >= {"fallback", "always", "off", "route"}


NAMES = st.text(min_size=1) | st.sampled_from(
    ["a.png", "--save", "--", "0:r=top", "r=top", "“", "\\", "a b", "n=", "-x"]
)
PART = st.text("abc-/.:\"'\\“é", min_size=1)
PROVIDED = st.builds(lambda a, b: f"{a}/{b}", PART.filter(lambda each: "/" not in each), PART)
SIDE = st.floats(allow_nan=False, allow_infinity=False)
CROPS: st.SearchStrategy[Crop] = (
    st.sampled_from(list(REGIONS)).map(NamedCrop)
    | st.builds(FractionCrop, SIDE, SIDE, SIDE, SIDE)
    | st.builds(PixelCrop, SIDE, SIDE, SIDE, SIDE)
)


@st.composite
def describing(draw: st.DrawFn) -> Describe:
    images = tuple(draw(st.lists(NAMES, min_size=1, max_size=4)))
    question = draw(st.just("") | st.text().filter(lambda each: bool(each.strip())))
    cropped = draw(st.lists(st.sampled_from(range(len(images))), unique=True))
    crops = tuple((index, draw(CROPS)) for index in cropped)
    whole = len(images) == 1 and not question and not crops and "#crop:" not in images[0]
    return Describe(images, question, crops, draw(st.just("") | PROVIDED), whole and draw(st.booleans()))


COMMANDS: st.SearchStrategy[Command] = st.one_of(
    describing(),
    st.builds(Redescribe, NAMES.filter(lambda each: "#crop:" not in each), st.just("") | PROVIDED),
    st.builds(Consent, st.sampled_from(["yes", "no"]), st.just("") | NAMES),
    st.just(Consent()),
    st.builds(UseModel, PROVIDED),
    st.builds(ChangeSetting, st.just("cacheSize"), st.integers(0, 500)),
    st.builds(ChangeSetting, st.just("includeContext"), st.booleans()),
    st.builds(ChangeSetting, st.just("mode"), st.sampled_from(["fallback", "always", "off", "route"])),
    st.builds(GroundingModels, st.just("add"), PROVIDED, st.sampled_from(["", *FORMATS]), st.booleans()),
    st.builds(GroundingModels, st.just("remove"), PROVIDED),
    st.builds(GroundingModels, st.sampled_from(["list", "reset"])),
    st.just(ListImages()),
    st.just(Status()),
)


@requirement("command.round_trip")
@given(COMMANDS)
def test_a_command_that_is_written_out_is_read_as_the_same(command: Command) -> None:
    assert parse(_typed(command)) == command
    assert parse_words(command.words) == command
    if "\x00" not in format_shell(command):
        assert shlex.split(format_shell(command)) == ["sightline", "vision-proxy", *command.words]


SHARDS = st.sampled_from(
    [*VERBS, *SETTINGS, "add", "remove", "yes", "--", "--crop", "--question", "--model", "--save", "--yes", "--format",
     "0:r=top", "1:", "n=1,2,3,4", "0:p=1,2,3,4", '"', "'", "“", "”", "\\", "a.png", "a/b", "=", "off", "7", "\n",
     "\x00", "²:r=top", "٣"]
)  # fmt: skip
ANY_WORDS = st.lists(SHARDS | st.text(), max_size=9)


@requirement("command.errors")
@given(ANY_WORDS, st.sampled_from([" ", ""]))
def test_any_words_give_a_command_or_a_refusal(words: list[str], space: str) -> None:
    for found in (parse(f"{NAME} {space.join(words)}"), parse_words(words), parse(space.join(words))):
        if isinstance(found, Refusal):
            assert found.code == "invalid_input"
            assert found.remedy
            assert len(str(found).splitlines()) == 1
        else:
            assert parse(_typed(found)) == found


SHELL = {
    "describe a.png b.png": Describe(("a.png", "b.png")),
    "describe -- --odd.png": Describe(("--odd.png",)),
    "describe a.png --question=--save --crop r=top": Describe(("a.png",), "--save", ((0, NamedCrop("top")),)),
    "describe a b --crop 1:r=top --crop 0:r=left --model local": Describe(
        ("a", "b"), crops=((1, NamedCrop("top")), (0, NamedCrop("left"))), model="local"
    ),
    "describe a.png --save": Describe(("a.png",), save=True),
    "redescribe a.png --model a/b": Redescribe("a.png", "a/b"),
    "consent": Consent(),
    "consent yes openai": Consent("yes", "openai"),
    "model a/b": UseModel("a/b"),
    "mode always": ChangeSetting("mode", "always"),
    "grounding-models add a/b --format unit_xyxy --yes": GroundingModels("add", "a/b", "unit_xyxy", yes=True),
    "status": Status(),
}


@requirement("command.words")
@pytest.mark.parametrize(("words", "expected"), SHELL.items())
def test_a_shell_parses_the_arguments_of_the_same_table(words: str, expected: Command) -> None:
    verb, *rest = words.split()
    parser = ArgumentParser()
    add_command_arguments(parser, verb)
    assert parse_arguments(verb, vars(parser.parse_args(rest))) == expected
    assert parse(f"{NAME} {words}") == expected


@pytest.mark.parametrize("words", ["describe a.png --crop 1:r=top", "describe a.png --model b", "redescribe a#crop:1"])
def test_arguments_of_a_shell_are_checked_as_those_of_a_chat(words: str) -> None:
    verb, *rest = words.split()
    parser = ArgumentParser()
    add_command_arguments(parser, verb)
    refusal = parse_arguments(verb, vars(parser.parse_args(rest)))
    assert isinstance(refusal, Refusal)
    assert refusal == parse(f"{NAME} {words}")
