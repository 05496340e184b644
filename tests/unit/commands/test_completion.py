# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit completion`: a script for each shell, and what bash offers by it."""

import json
import sys

import pytest

from tracejit import cli
from tracejit.commands.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(capsys, shell) -> None:
    assert cli.main(["completion", shell]) == 0
    script, told = capsys.readouterr()
    assert "tracejit" in script and "purge" in script and told == ""
    assert cli.main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1, "command": "completion", "result": {"shell": shell, "script": script.removesuffix("\n")}
    }  # fmt: skip


def test_the_missing_extra_is_named(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert capsys.readouterr() == (
        "", 'tracejit completion: shtab is not installed; run: pip install "tracejit[cli]"\n'
    )  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), [(["csh"], "invalid choice: 'csh'"), ([], "required: SHELL")])
def test_wrong_usage(capsys, arguments, text) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["completion", *arguments])
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err
