# SPDX-License-Identifier: BSD-3-Clause
"""Completion in a shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tracejit import cli
from tracejit.commands.completion import SHELLS

# Prints a line for each word that bash offers for words, the last of which is incomplete.
_ASK_BASH = """
    source ./script
    COMP_WORDS=(tracejit "$@") COMP_CWORD=$#
    _shtab_tracejit tracejit "${COMP_WORDS[COMP_CWORD]}"
    printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash_offers(folder: Path, *words: str) -> set[str]:
    command = ["bash", "--norc", "-c", _ASK_BASH, "bash", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="this system has no bash")
def test_bash_offers_commands_options_and_files(tmp_path, capsys) -> None:
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    assert {"cache", "view", "doctor", "completion", "demo"} <= bash_offers(tmp_path, "")
    assert bash_offers(tmp_path, "comp") == {"completion"}
    assert bash_offers(tmp_path, "cache", "pu") == {"purge"}
    assert {"--sort", "--limit", "--json"} <= bash_offers(tmp_path, "cache", "list", "--")
    assert bash_offers(tmp_path, "completion", "") == set(SHELLS)
    assert bash_offers(tmp_path, "view", "step", "--out", "scr") == {"script"}
    assert bash_offers(tmp_path, "cache", "unpack", "scr") == {"script"}
