"""`sightline completion SHELL`: a script that completes verbs, options and their values, made from the parsers.

All shells get the same table: for each verb, or verb and action, the words that can follow, and for each option that
takes a value, the values that are known. A shell completes file names where the table has nothing.

The other verb that is about all verbs is here, too: `sightline help`.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sightline.cli.terminal import CommandLine, VerbOutcome

EXAMPLE = """  sightline completion bash
  source <(sightline completion bash)          # in ~/.bashrc
  source <(sightline completion zsh)           # in ~/.zshrc, after compinit
  sightline completion fish | source           # in ~/.config/fish/config.fish"""


@dataclass(frozen=True, slots=True)
class CommandWords:
    """The words that can follow a verb, or a verb and an action."""

    name: str  # `config`, `config set`, `config set mode`; empty: the command itself
    words: Mapping[str, str]  # verbs, actions and values by position, each with its meaning, which may be empty
    options: Mapping[str, str] = field(default_factory=dict)  # each with its meaning
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the options that take one


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = "Print a script that lets a shell complete verbs, options and their values."
    parser.add_argument("shell", metavar="SHELL", choices=sorted(_WRITERS), help=", ".join(_WRITERS))


def run(args: Namespace) -> VerbOutcome:
    for line in _WRITERS[args.shell](list_command_words(args.command_line)):
        print(line)
    return 0


def list_command_words(command_line: CommandLine) -> list[CommandWords]:
    """Return the table of all verbs, as their parsers define them."""
    summaries = command_line.summaries
    table = [CommandWords("", summaries, {"--help": "show the verbs", "--version": "show the version"})]
    for name in summaries:
        table += _list_parser_words(name, command_line.build_parser(name))
    table += _list_setting_words(table)
    help_words = next(each for each in table if each.name == "help")
    table[table.index(help_words)] = CommandWords("help", summaries, help_words.options)
    return table


def _list_setting_words(table: list[CommandWords]) -> Iterator[CommandWords]:
    """Yield the words after the name of a setting: its values where it is set, and no other name."""
    from sightline.settings import KEYS

    for action in (each for each in table if each.name.split()[:1] == ["config"] and KEYS[0].name in each.words):
        for key in KEYS:
            values = key.kind.words if action.name == "config set" else ()
            yield CommandWords(f"{action.name} {key.name}", dict.fromkeys(values, ""), action.options, action.values)


def _list_parser_words(name: str, parser: ArgumentParser) -> Iterator[CommandWords]:
    words: dict[str, str] = {}
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:  # noqa: SLF001, argparse has no other way to list them
        meaning = "" if action.help in (None, SUPPRESS) else " ".join(str(action.help).split())
        if isinstance(action, _SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            words |= {each: helps.get(each, "") for each in action.choices}
            for each, inner in action.choices.items():
                yield from _list_parser_words(f"{name} {each}", inner)
        elif not action.option_strings:
            words |= dict.fromkeys(_list_values(action), "")
        else:
            options |= dict.fromkeys((each for each in action.option_strings if each.startswith("--")), meaning)
            if action.nargs != 0:
                values |= dict.fromkeys(action.option_strings, _list_values(action))
    yield CommandWords(name, words, options, values)


def _list_values(action: Action) -> tuple[str, ...]:
    """Return the values of an argument that are known: its choices, or by what it is called in the help."""
    from sightline.profiles.presets import PRESETS
    from sightline.settings import KEYS

    if action.choices is not None:
        return tuple(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    named = {"KEY": tuple(key.name for key in KEYS), **dict.fromkeys(_UPSTREAM_METAVARS, tuple(PRESETS))}
    return named.get(metavar, ())


_UPSTREAM_METAVARS = ("PROVIDER", "NAME|URL", "[NAME=]URL", "NAME")


def write_bash(table: list[CommandWords]) -> Iterator[str]:
    """Write a function for bash; zsh understands it with bashcompinit."""
    yield "_sightline() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '  local name="" words="" index'
    yield "  for ((index = 1; index < COMP_CWORD; index++)); do"
    yield '    case "$name ${COMP_WORDS[index]}" in'
    yield '      *" --") COMPREPLY=(); return ;;'
    for each in table[1:]:
        before, _, last = each.name.rpartition(" ")
        yield f'      "{before} {last}") name="{each.name}" ;;'
    yield "    esac"
    yield "  done"
    yield '  case "$name:$previous" in'
    for each in table:
        for option, values in each.values.items():
            yield f'    "{each.name}:{option}") COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$current")); return ;;'
    yield "  esac"
    yield '  [ -n "$name" ] || [ "$COMP_CWORD" = 1 ] || return'  # an unknown verb
    yield '  case "$name" in'
    for each in table:
        yield f'    "{each.name}") words="{" ".join((*each.words, *each.options))}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _sightline sightline"


def write_zsh(table: list[CommandWords]) -> Iterator[str]:
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from write_bash(table)


def write_fish(table: list[CommandWords]) -> Iterator[str]:
    names = {each.name for each in table}
    actions = {each.name: [word for word in each.words if f"{each.name} {word}" in names] for each in table}
    for each in table:
        yield from _write_fish_command(each, _build_fish_condition(each.name, actions))


def _build_fish_condition(name: str, actions: Mapping[str, list[str]]) -> str:
    """Return the condition under which the words of a command are completed."""
    if not name:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
    return f"{seen}; and not __fish_seen_subcommand_from {' '.join(actions[name])}" if actions[name] else seen


def _write_fish_command(command: CommandWords, condition: str) -> Iterator[str]:
    start = f"complete -c sightline -n {_quote(condition)}"
    for word, meaning in command.words.items():
        yield f"{start} -f -a {_quote(word)}{_describe(meaning)}"
    for option, meaning in command.options.items():
        values = command.values.get(option)
        known = f" -f -a {_quote(' '.join(values))}" if values else ""
        value = "" if values is None else f" -r{known}"
        yield f"{start} -l {option.removeprefix('--')}{value}{_describe(meaning)}"


def _describe(meaning: str) -> str:
    return f" -d {_quote(meaning)}" if meaning else ""


def _quote(text: str) -> str:
    """Quote a text for fish."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_WRITERS = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}


class HelpVerb:
    """`sightline help [VERB]`: the same as --help."""

    EXAMPLE = """  sightline help
  sightline help serve
  sightline help config set"""

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("words", nargs="*", metavar="VERB", help="a verb; default: list all verbs")

    @staticmethod
    def run(args: Namespace) -> VerbOutcome:
        command_line: CommandLine = args.command_line
        return command_line.run([*args.words, "--help"])
