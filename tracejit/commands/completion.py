# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit completion`: a script by which a shell completes commands, options and names of functions.

The script is made of the parser, so that it knows what the parser knows. Names of functions are in the cache; the
script asks `tracejit cache list --names` for them.
"""

import argparse
from typing import Any

from tracejit.commands import grammar, shells
from tracejit.commands.arguments import add_command
from tracejit.commands.output import Result

SHELLS = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}


def add(commands: Any) -> None:
    """Add the command to a parser."""
    verb = add_command(
        commands, "completion", _completion, "print a script by which a shell completes commands",
        description="Print a script by which a shell completes commands, options and names of functions.",
        epilog="bash: put eval \"$(tracejit completion bash)\" into ~/.bashrc. zsh: put eval \"$(tracejit completion "
        "zsh)\" into ~/.zshrc, after compinit. fish: tracejit completion fish > "
        "~/.config/fish/completions/tracejit.fish.",
    )  # fmt: skip
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def _completion(arguments: argparse.Namespace) -> Result:
    script = SHELLS[arguments.shell](list(grammar.commands_of(arguments.parser))).rstrip("\n")
    return Result({"shell": arguments.shell, "script": script}, script)
