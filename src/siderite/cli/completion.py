"""`siderite completion SHELL`: what a shell needs to complete words, printed from the parser."""

import argparse
from collections.abc import Iterator

from siderite.cli.main import parser

_BASH = """\
# siderite completion; for the shell you are in:  eval "$(siderite completion bash)"
_siderite_words() {{
    case $1 in
{words}
    esac
}}
_siderite() {{
    local at=siderite word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        [ -n "$(_siderite_words "$at $word")" ] && at="$at $word"
    done
    COMPREPLY=($(compgen -W "$(_siderite_words "$at")" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -F _siderite siderite
"""
_ZSH = """\
autoload -Uz compinit bashcompinit && compinit -u && bashcompinit
"""
_FISH = """\
# siderite completion; for the shell you are in:  siderite completion fish | source
function __siderite_place
    set -l at siderite
    for word in (commandline -opc)[2..-1]
        contains -- "$at $word" $__siderite_places; and set at "$at $word"
    end
    echo $at
end
set -g __siderite_places {places}
complete -c siderite -e
{lines}
"""


def run(said: argparse.Namespace) -> int:
    """Print it."""
    if said.shell == "fish":
        print(_fish(list(_places())), end="")
        return 0
    words = "\n".join(f"    '{place}') echo '{' '.join(found)}' ;;" for place, found in _places())
    print((_ZSH if said.shell == "zsh" else "") + _BASH.format(words=words), end="")
    return 0


def _fish(places: list[tuple[str, list[str]]]) -> str:
    lines = []
    for place, found in places:
        here = f"complete -c siderite -n 'test (__siderite_place) = \"{place}\"'"
        words = " ".join(word for word in found if not word.startswith("-"))
        lines += [f"{here} -f -a '{words}'"] if words else []
        for word in found:
            if word.startswith("--"):
                lines.append(f"{here} -l {word[2:]}")
    names = " ".join(f"'{place}'" for place, _ in places)
    return _FISH.format(places=names, lines="\n".join(lines))


def _places(command: argparse.ArgumentParser | None = None, at: str = "siderite") -> Iterator[
    tuple[str, list[str]]
]:  # fmt: skip
    """For each command, by the words that lead there, what can follow."""
    command = command or parser()
    here: list[str] = []
    below = []
    for action in command._actions:
        here += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            below.append(action)
        if not action.option_strings and action.choices:
            here += [str(choice) for choice in action.choices]
    yield at, here
    for action in below:
        for word, sub in action.choices.items():
            yield from _places(sub, f"{at} {word}")
