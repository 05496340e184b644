# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit completion`: a script by which a shell completes commands and options, written by shtab."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import CommandError, Result

INSTALL = 'pip install "tracejit[cli]"'
SHELLS = ("bash", "zsh", "fish", "tcsh")


def add(commands: Any) -> None:
    """Add the command to a parser."""
    verb = add_command(
        commands,
        "completion",
        _completion,
        "print a script by which a shell completes commands and options",
        epilog='bash: put eval "$(tracejit completion bash)" into ~/.bashrc. '
        'zsh: put eval "$(tracejit completion zsh)" into ~/.zshrc, after compinit. '
        "fish: tracejit completion fish > ~/.config/fish/completions/tracejit.fish. "
        f"tcsh: tracejit completion tcsh >> ~/.tcshrc. The command needs an extra: {INSTALL}",
    )
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def _completion(arguments: argparse.Namespace) -> Result:
    try:
        import shtab
    except ImportError:
        raise CommandError("MissingPackage", f"shtab is not installed; run: {INSTALL}") from None
    _complete_paths(arguments.parser, shtab.FILE)
    script = shtab.complete(arguments.parser, arguments.shell)
    return Result({"shell": arguments.shell, "script": script}, script)


def _complete_paths(parser: argparse.ArgumentParser, complete: Any) -> None:
    """Let shells complete the arguments that are paths, of a parser and of the commands below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _complete_paths(below, complete)
        elif action.metavar in ("FILE", "DIR"):
            action.complete = complete  # type: ignore[attr-defined]
