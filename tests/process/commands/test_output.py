# SPDX-License-Identifier: BSD-3-Clause
"""Output of commands: results and errors as text and as JSON, warnings, and streams that cannot be written."""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tracejit import cli, config
from tracejit.commands import arguments, output
from tracejit.commands.output import CommandError, Result
from tracejit.errors import CacheError, CacheWarning


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(what: Any, *given: str) -> int:
    """Run a command `try it` that does `what` with its arguments."""
    parser = arguments.Parser(prog="tracejit")
    commands = parser.add_subparsers().add_parser("try").add_subparsers()
    arguments.add_command(commands, "it", what, "see what happens")
    return output.run(parser.parse_args(["try", *given]))


def raising(error: BaseException) -> Any:
    def command(_: argparse.Namespace) -> Result:
        raise error

    return command


@pytest.mark.parametrize("given", [["--json", "it"], ["it", "--json"], ["--json", "it", "--json"]])
def test_a_result_as_json(capsys, given) -> None:
    assert run(lambda _: Result({"path": Path("a/b")}, "text", 1, "a note"), *given) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "schema": 1, "command": "try it", "result": {"path": "a/b"}, "note": "a note"
    }  # fmt: skip
    assert printed.err == ""


def test_a_result_as_text(capsys) -> None:
    assert run(lambda _: Result({}, "text", 1, "a note"), "it") == 1
    assert capsys.readouterr() == ("text\n", "tracejit try it: a note\n")
    assert run(lambda _: Result({}, ""), "it") == 0
    assert capsys.readouterr() == ("", "")


def test_values_that_cannot_be_part_of_a_result() -> None:
    with pytest.raises(TypeError, match="complex cannot be part of a result"):
        run(lambda _: Result(1j, ""), "it", "--json")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CacheError("the cache is gone"), "CacheError", "the cache is gone"),
        (CommandError("Odd", "it is odd"), "Odd", "it is odd"),
        (PermissionError(13, "Permission denied", "/a/b"), "OSError", "/a/b: Permission denied"),
        (OSError("odd"), "OSError", "odd"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "interrupted"),
    ],
)
def test_errors(capsys, error, kind, text) -> None:
    assert run(raising(error), "it") == 1
    assert capsys.readouterr() == ("", f"tracejit try it: {text}\n")
    assert run(raising(error), "--json", "it") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "schema": 1, "command": "try it", "error": {"kind": kind, "message": text}
    }  # fmt: skip
    assert printed.err == ""


@pytest.mark.parametrize(
    ("given", "command", "text"),
    [
        (["cache", "show", "--json"], "cache show", "the following arguments are required: KEY"),
        (["--json"], "", "the following arguments are required: COMMAND"),
        (["--js", "cache", "show"], "cache show", "the following arguments are required: KEY"),
        (
            ["cache", "list", "a", "b", "--json"],
            "",
            "unrecognized arguments: b",
        ),
    ],
)
def test_wrong_usage_as_json(capsys, given, command, text) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(given)
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "schema": 1, "command": command, "error": {"kind": "UsageError", "message": text}
    }  # fmt: skip
    assert printed.err.startswith("usage: tracejit ")
    assert printed.err.endswith(f"error: {text}\n")


def test_a_warning_is_a_message_even_if_warnings_are_errors(capsys) -> None:
    def warning(_: argparse.Namespace) -> Result:
        warnings.warn("kernels are not kept", CacheWarning, stacklevel=1)
        return Result({}, "done")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(warning, "it") == 0
    assert capsys.readouterr() == ("done\n", "tracejit try it: kernels are not kept\n")


def test_warnings_of_other_packages_stay_warnings() -> None:
    def warning(_: argparse.Namespace) -> Result:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return Result({}, "")

    with pytest.raises(DeprecationWarning, match="old"):
        run(warning, "it")


def test_warnings_of_other_packages_are_shown_unchanged() -> None:
    def warning(_: argparse.Namespace) -> Result:
        warnings.simplefilter("always", DeprecationWarning)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return Result({}, "")

    with pytest.warns(DeprecationWarning, match="old"):
        assert run(warning, "it") == 0


@pytest.mark.parametrize("given", [["cache", "dir"], ["cache", "info", "--json"], ["--help"]])
def test_a_reader_that_has_ended(given) -> None:
    """The reader ends before anything is printed."""
    code = f"import sys; sys.stdin.read(); from tracejit.cli import main; sys.exit(main({given}))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def ended(given: list[str], how: str) -> tuple[int, bytes, bytes]:
    """Run the command in a shell that does something with its streams; return its exit code, output and errors.

    The folder of its cache does not exist.
    """
    code = f"import sys; from tracejit.cli import main; sys.exit(main({given}))"
    shell = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-c", code]
    environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(Path(__file__) / "none")}
    done = subprocess.run(shell, capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("given", [["cache", "dir"], ["cache", "info", "--json"], ["--help"]])
def test_the_output_cannot_be_written(given) -> None:
    told = b"tracejit: standard output cannot be written (No space left on device)\n"
    assert ended(given, "> /dev/full") == (1, b"", told)
    assert ended(["cache", "show", "f"], "2> /dev/full") == (1, b"", b"")


def test_streams_that_are_closed() -> None:
    assert ended(["cache", "dir"], ">&-") == (0, b"", b"")
    assert ended(["cache", "shew"], "2>&-") == (2, b"", b"")
    assert ended(["cache", "show", "f"], "2>&-") == (1, b"", b"")


def test_an_interrupt_while_the_output_is_written(capsys, monkeypatch) -> None:
    def interrupted(_: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "run", interrupted)
    assert cli.main(["cache", "dir"]) == 1
    assert capsys.readouterr() == ("", "tracejit: interrupted\n")


def test_a_name_that_cannot_be_printed(capsys) -> None:
    assert run(lambda _: Result({}, "caf\udce9"), "it") == 0
    assert capsys.readouterr().out == "caf\\udce9\n"


def test_the_package_runs_as_a_module(folder) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tracejit", "cache", "dir"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.endswith("cache\n")
