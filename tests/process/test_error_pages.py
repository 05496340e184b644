# SPDX-License-Identifier: BSD-3-Clause
"""Each public error has a page, and its address stands below the message. The pages run in test_docs.py."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracejit import errors

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "errors"
BASES = {"TraceJitError", "TraceJitWarning"}
NAMES = {name for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, Exception)}


def shown(code: str) -> list[str]:
    """Return the last lines of what a process writes that ends with an error."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()[-3:]


def address(name: str) -> str:
    return f"See {errors.DOCUMENTATION}/errors/{name}.html"


def test_each_error_has_a_page_and_is_in_the_list():
    assert {page.stem for page in FOLDER.glob("*.md")} == NAMES - BASES | {"index"}
    listed = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) \|", (FOLDER / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [(name, name) for name in sorted(NAMES - BASES)]


@pytest.mark.parametrize("name", sorted(NAMES - BASES))
def test_a_page_has_a_mistake_and_a_working_version(name):
    text = (FOLDER / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    mistake, _, working = text.partition("**What works.**")
    assert "**The mistake.**" in mistake and "```" in mistake and "```" in working
    assert name.endswith("Warning") or name in mistake


def test_the_address_stands_below_the_message():
    *_, message, below = shown("import tracejit as tj; tj.relu(None)")
    assert message.endswith("list of numbers as x, not None.")
    assert below == address("ArgumentError")


def test_a_warning_that_is_an_error_has_an_address():
    code = "import warnings, tracejit as tj; warnings.simplefilter('error'); warnings.warn('text', tj.CacheWarning)"
    assert shown(code)[-2:] == ["tracejit.errors.CacheWarning: text", address("CacheWarning")]


def test_a_class_that_extends_an_error_has_the_address_of_that_error():
    code = "import tracejit as tj\nclass Mine(tj.BoundsError): pass\nraise Mine('text')"
    assert shown(code)[-2:] == ["Mine: text", address("BoundsError")]


def test_a_note_of_a_user_follows_and_belongs_to_one_error():
    code = "import tracejit as tj\nerror = tj.DimsError('text')\nerror.add_note('mine')\n"
    assert shown(code + "raise error")[-2:] == [address("DimsError"), "mine"]
    assert shown(code + "raise tj.DimsError('another')")[-1] == address("DimsError")
    assert shown(code + "import pickle; raise pickle.loads(pickle.dumps(error))")[-2:] == [
        address("DimsError"),
        "mine",
    ]


def test_the_message_is_as_it_was_raised():
    error = errors.DimsError("text")
    assert (str(error), error.args) == ("text", ("text",))
