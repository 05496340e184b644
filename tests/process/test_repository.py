# SPDX-License-Identifier: BSD-3-Clause
"""What stands in several files of the repository agrees: versions, pinned actions, what issues ask for."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_actions_are_pinned_by_one_hash_each():
    used = {
        tuple(line.split("@"))
        for path in WORKFLOWS
        for line in re.findall(r"^ *-? *uses: *(.*)$", path.read_text(), re.MULTILINE)
    }
    assert len({action for action, _ in used}) == len(used) > 3
    assert [pin for _, pin in used if not re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_more_rights_than_it_needs(path):
    text = path.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_versions_agree():
    version = PROJECT["version"]
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == version
    first = re.search(r"^## (\S+)", (ROOT / "docs" / "changelog.md").read_text(), re.MULTILINE)
    assert first[1] == version


def test_every_python_that_is_promised_is_tested():
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())[1]
    assert re.findall(r'"(.*?)"', tested) == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_lowest_versions_are_those_of_the_project():
    command = [sys.executable, str(ROOT / ".ci" / "versions")]
    lowest = subprocess.run([*command, "lowest"], capture_output=True, text=True, check=True).stdout
    extras = [name for extra in ("cli", "demo", "test") for name in PROJECT["optional-dependencies"][extra]]
    outside = [name for name in extras if not name.startswith("tracejit[")]
    assert lowest.splitlines() == [name.replace(">=", "==") for name in [*PROJECT["dependencies"], *outside]]
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+", line) for line in lowest.splitlines())
    one = subprocess.run([*command, "2.3.*"], capture_output=True, text=True, check=True).stdout
    assert one == "numpy==2.3.*\n"


@pytest.mark.parametrize("name", ["defect", "speed"])
def test_issues_ask_what_the_doctor_says(name):
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text()
    assert "`tracejit doctor --json`" in text
