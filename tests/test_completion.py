# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit completion`: the scripts run in their shells, and offer what the parser takes."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracejit import cli
from tracejit.commands import grammar, shells
from tracejit.commands.arguments import Parser
from tracejit.store.programs import Programs

COMMANDS = ["cache", "completion", "demo"]
FUNCTIONS = ["f.<locals>.step", "evaluate", "step, forward"]
COLUMNS = ["key", "function", "where", "target", "kernels", "size", "hits", "build", "compile", "used"]

# How a shell is asked what it offers for words, the last of which is not complete; it prints a line for each.
_ASK = {
    "bash": """
        source script
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _tracejit
        for each in "${COMPREPLY[@]}"; do echo "$each"; done
    """,
    # zsh offers nothing outside of its editor: what the script calls prints what it is given.
    "zsh": """
        compdef() { : }
        _describe() { print -l -- ${${(P)2}%%:*} }
        _files() { print -l -- ${words[CURRENT]}* }
        compadd() { [[ -z ${(P)2} ]] || print -l -- ${(P)2} }
        compset() { : }
        source ./script
        words=("$@") CURRENT=$#
        _tracejit
    """,
    "fish": """
        source script
        complete -C (string join ' ' -- $argv) | string replace -r '\\t.*' ''
    """,
}
_START = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}


@pytest.fixture
def shell(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return what a shell offers for a line, given as words."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    programs = Programs(str(tmp_path / "cache"))
    for at, function in enumerate([*FUNCTIONS, FUNCTIONS[0]]):
        programs.keep({"function": function, "arena_bytes": at}, {"at": 4e9 - at})
    command = tmp_path / "tracejit"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tracejit "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "script").write_text(script(name))

    def ask(*words: str) -> list[str]:
        start = [*_START[name], _ASK[name]]
        given = [*start, "tracejit", *words] if name == "fish" else [*start, name, "tracejit", *words]
        done = subprocess.run(given, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        # fish and bash choose by the word that is begun, zsh leaves that to its editor.
        begun = words[-1].rpartition("=")[2]
        return [each for each in done.stdout.splitlines() if name != "zsh" or each.startswith(begun)]

    return ask


def script(name: str) -> str:
    make = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[name]
    return make(list(grammar.commands_of(cli.parser())))


every_shell = pytest.mark.parametrize("shell", ["bash", "zsh", "fish"], indirect=True)


@every_shell
def test_commands_and_options(shell) -> None:
    assert set(COMMANDS) <= set(shell(""))
    assert "--version" in shell("-")
    assert shell("comp") == ["completion"]
    assert {"dir", "info", "list", "show", "why", "verify", "remove", "purge"} <= set(shell("cache", ""))
    assert shell("cache", "pu") == ["purge"]
    assert {"--sort", "--limit", "--json"} <= set(shell("cache", "list", "--"))
    assert shell("cache", "list", "--li") == ["--limit"]
    assert shell("cache", "--json", "list", "--li") == ["--limit"]
    assert set(shell("completion", "")) == {"bash", "zsh", "fish"}
    assert shell("cache", "dir", "") == []


@every_shell
def test_values_of_options(shell) -> None:
    assert set(shell("cache", "list", "--sort", "")) == set(COLUMNS)
    assert shell("cache", "list", "--sort", "fu") == ["function"]
    assert shell("cache", "list", "--limit", "") == []
    assert shell("demo", "--out", "scr") == ["script"]
    assert shell("demo", "--epochs", "") == []


@every_shell
def test_names_of_functions(request, shell) -> None:
    is_bash = "bash" in request.node.name
    quoted = "f.\\<locals\\>.step" if is_bash else FUNCTIONS[0]
    part = "step\\,\\ forward" if is_bash else FUNCTIONS[2]
    assert set(shell("cache", "show", "")) == {quoted, "evaluate", part}
    assert shell("cache", "why", "step", "ev") == ["evaluate"]
    assert shell("cache", "remove", "f.") == [quoted]


@pytest.mark.parametrize("shell", ["bash"], indirect=True)
def test_words_as_bash_splits_and_quotes_them(shell) -> None:
    assert shell("cache", "list", "--sort", "=", "fu") == ["function"]
    assert set(shell("cache", "list", "--sort", "=")) == set(COLUMNS)
    assert shell("cache", "show", "f.\\<loc") == ["f.\\<locals\\>.step"]


@pytest.mark.parametrize("shell", ["zsh", "fish"], indirect=True)
def test_a_value_after_an_equals_sign(request, shell) -> None:
    found = shell("cache", "list", "--sort=fu")
    assert found == (["function"] if "zsh" in request.node.name else ["--sort=function"])


@every_shell
def test_no_names_without_a_cache(shell, tmp_path) -> None:
    shutil.rmtree(tmp_path / "cache")
    assert shell("cache", "show", "") == []


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script(capsys, name) -> None:
    assert cli.main(["completion", name]) == 0
    assert capsys.readouterr() == (script(name), "")
    assert cli.main(["completion", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1, "command": "completion", "result": {"shell": name, "script": script(name).rstrip("\n")}
    }  # fmt: skip


def test_wrong_usage(capsys) -> None:
    for given, text in ((["csh"], "invalid choice: 'csh'"), ([], "required: SHELL")):
        with pytest.raises(SystemExit) as stop:
            cli.main(["completion", *given])
        assert stop.value.code == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert text in printed.err


def test_the_grammar_is_that_of_the_parser() -> None:
    parser = Parser(prog="it")
    parser.add_argument(
        "--level", "-l", type=int, choices=(1, 2), default=2, help="one of %(choices)s (%(default)s)"
    )
    verbs = parser.add_subparsers()
    verb = verbs.add_parser("go", help="go on")
    verb.add_argument("where", metavar="KEY|FUNCTION")
    verb.add_argument("--to", type=Path, metavar="FILE")
    verb.add_argument("--pattern", metavar="PATTERN")
    verbs.add_parser("pack", help="pack up").add_argument("file", metavar="FILE")
    common = [
        grammar.Option(("-h", "--help"), "show this help message and exit", None),
        grammar.Option(("--json",), "print one JSON object", None),
    ]
    assert list(grammar.commands_of(parser)) == [
        grammar.Command(
            "it",
            {"go": "go on", "pack": "pack up"},
            [*common, grammar.Option(("--level", "-l"), "one of 1, 2 (2)", ("1", "2"))],
            grammar.NOTHING,
        ),
        grammar.Command(
            "it go",
            {},
            [
                *common,
                grammar.Option(("--to",), "", grammar.FILES),
                grammar.Option(("--pattern",), "", grammar.NOTHING),
            ],
            grammar.NAMES,
        ),
        grammar.Command("it pack", {}, common, grammar.FILES),
    ]


def test_every_command_is_in_every_script() -> None:
    def paths(parser: argparse.ArgumentParser) -> list[str]:
        below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        return [
            parser.prog,
            *(path for each in below for one in each.choices.values() for path in paths(one)),
        ]

    for name in ("bash", "zsh", "fish"):
        text = script(name)
        assert all(f"'{path}'" in text for path in paths(cli.parser())[1:]), name
