# SPDX-License-Identifier: BSD-3-Clause
"""Completion of the commands in bash, zsh and fish, as scripts.

Each script finds out by the words before the cursor at which command it is, and offers what the grammar has there. Only
names of functions are asked for when they are wanted.
"""

from collections.abc import Callable, Sequence
from shlex import quote

from tracejit.commands.grammar import FILES, NAMES, NOTHING, Command, Value

_BASH = """\
# Completion of tracejit in bash, made by `tracejit completion bash`.
_tracejit() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at=tracejit kind= values= options= word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$at ${COMP_WORDS[i]}" in
            %(paths)s) at="$at ${COMP_WORDS[i]}" ;;
        esac
    done
    # --option=value is three words.
    if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [[ $cur == = ]]; then cur=; fi
    case "$at $prev" in
%(options)s
        *)
            case "$at" in
%(commands)s
            esac
            if [[ $cur == -* ]]; then kind=words values=$options; fi
            ;;
    esac
    case $kind in
        words) COMPREPLY=($(compgen -W "$values" -- "$cur")) ;;
        files)
            local IFS=$'\\n'
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
            ;;
        names)
            while IFS= read -r word; do
                if [[ $word == "${cur//\\\\/}"* ]]; then COMPREPLY+=("$(printf %%q "$word")"); fi
            done < <("${COMP_WORDS[0]}" cache list --names 2>/dev/null)
            ;;
    esac
}
complete -F _tracejit tracejit
"""

_ZSH = """\
#compdef tracejit
# Completion of tracejit in zsh, made by `tracejit completion zsh`.
_tracejit() {
    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} at=tracejit kind= word
    local -a values options
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$at $word" in
            %(paths)s) at="$at $word" ;;
        esac
    done
    if [[ $cur == --*=* ]]; then
        prev=${cur%%%%=*}
        compset -P '*='
    fi
    case "$at $prev" in
%(options)s
        *)
            case "$at" in
%(commands)s
            esac
            if [[ $cur == -* ]]; then kind=words values=("${(@)options}"); fi
            ;;
    esac
    case $kind in
        words) _describe tracejit values ;;
        files) _files ;;
        names) values=(${(f)"$("${words[1]}" cache list --names 2>/dev/null)"}); compadd -a values ;;
    esac
}
if [[ ${funcstack[1]} == _tracejit ]]; then _tracejit "$@"; else compdef _tracejit tracejit; fi
"""

_FISH = """\
# Completion of tracejit in fish, made by `tracejit completion fish`.
function __tracejit_at
    set -l at tracejit
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case %(paths)s
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c tracejit -f
%(completions)s
"""


def bash(commands: Sequence[Command]) -> str:
    """Return the script for bash."""

    def value_of(value: Value) -> str:
        return f"kind={value}" if isinstance(value, str) else f"kind=words values={quote(' '.join(value))}"

    return _BASH % {
        "paths": " | ".join(_paths(commands)),
        "options": _cases(8, _options(commands, value_of)),
        "commands": _cases(
            16,
            {
                each.path: f"{value_of(tuple(each.commands) or each.value)} options={quote(' '.join(_names(each)))}"
                for each in commands
            },
        ),
    }


def zsh(commands: Sequence[Command]) -> str:
    """Return the script for zsh, which shows what commands and options do."""

    def value_of(value: Value | dict[str, str]) -> str:
        if isinstance(value, str):
            return f"kind={value}"
        told = value if isinstance(value, dict) else dict.fromkeys(value, "")
        words = [quote(f"{word}:{help}" if help else word) for word, help in told.items()]
        return f"kind=words values=({' '.join(words)})"

    return _ZSH % {
        "paths": " | ".join(_paths(commands)),
        "options": _cases(8, _options(commands, value_of)),
        "commands": _cases(
            16,
            {
                each.path: f"{value_of(each.commands or each.value)} "
                f"options=({' '.join([quote(f'{name}:{help}') for name, help in _names(each).items()])})"
                for each in commands
            },
        ),
    }


def fish(commands: Sequence[Command]) -> str:
    """Return the script for fish, which shows what commands and options do."""
    lines = []
    for each in commands:
        at = f"complete -c tracejit -n {quote(f'__tracejit_at {each.path}')}"
        lines += [f"{at} -a {name} -d {quote(help)}" for name, help in each.commands.items()]
        if not each.commands and each.value != NOTHING:
            lines.append(f"{at} {_of_fish(each.value)}")
        for option in each.options:
            names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
            taken = [] if option.value is None else ["-r", _of_fish(option.value)]
            lines.append(" ".join([at, *names, *taken, "-d", quote(option.help)]))
    return _FISH % {"paths": " ".join(_paths(commands)), "completions": "\n".join(lines)}


def _of_fish(value: Value) -> str:
    if value == FILES:
        return "-F"
    if value == NOTHING:
        return "-f"
    words = "(tracejit cache list --names 2>/dev/null)" if value == NAMES else " ".join(value)
    return f"-f -a {quote(words)}"


def _paths(commands: Sequence[Command]) -> list[str]:
    """Return the words of all commands but the program's own, as patterns."""
    return [quote(each.path) for each in commands[1:]]


def _options(commands: Sequence[Command], value_of: Callable[[Value], str]) -> dict[str, str]:
    """Return what follows each option that something follows, by the words of the command and the option."""
    return {
        f"{each.path} {name}": value_of(option.value)
        for each in commands
        for option in each.options
        if option.value is not None
        for name in option.names
    }


def _names(command: Command) -> dict[str, str]:
    """Return how the options of a command are written, and what they do."""
    return {name: option.help for option in command.options for name in option.names}


def _cases(indent: int, cases: dict[str, str]) -> str:
    return "\n".join(f"{' ' * indent}{quote(words)}) {then} ;;" for words, then in cases.items())
