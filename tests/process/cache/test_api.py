# SPDX-License-Identifier: BSD-3-Clause
"""tracejit.cache: the verbs of `tracejit cache` from code."""

import errno
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tracejit import cli, config
from tracejit.cache import inspect as verbs
from tracejit.errors import CacheError
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import KernelStore


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


def stepped(*sizes: int) -> None:
    @tj.dlaccelerate
    def step(w, x, rate):
        return tj.tanh(x @ w).sum() * rate

    for size in sizes:
        for _ in range(3):
            step(tj.dlarray(np.ones((3, 2))), tj.dlarray(np.ones((size, 3)), "BC"), 0.5)


NAME = "stepped.<locals>.step"


def test_the_verbs_are_those_of_the_command(capsys) -> None:
    with pytest.raises(SystemExit):
        cli.main(["cache", "--help"])
    verbs = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert set(tj.cache.__all__) <= set(verbs)


@pytest.mark.parametrize("name", sorted({*tj.cache.__all__} - {"pack", "unpack"}))
def test_every_verb_shows_what_the_command_prints(root, capsys, name) -> None:
    stepped(4, 5)
    arguments = [NAME] if name in ("why", "remove") else []
    if name == "show":
        arguments = [tj.cache.list()[0].key]
    first = getattr(tj.cache, name)(*arguments)
    if name in ("remove", "purge"):
        stepped(4, 5)
    cli.main(["cache", name, *arguments])
    printed = capsys.readouterr().out
    shown = first if name == "dir" else repr(first)
    if name in ("remove", "purge"):  # kernels that are loaded are not written again
        shown, printed = (text.partition(" and ")[0] for text in (shown, printed))
        assert shown == printed == "removed 2 programs"
    else:
        assert f"{shown}\n" == printed


def test_a_program_is_listed_with_its_call(root) -> None:
    stepped(4, 5)
    first, second = tj.cache.list()
    assert first.function == second.function == NAME
    assert first.file == __file__
    assert first.line == inspect.getsourcelines(stepped)[1] + 1
    assert first.signature == (
        ("w", "3x2 float64"), ("x", "5(B) x 3(C) float64"), ("rate", "0.5")
    )  # fmt: skip
    assert (first.hits, first.target) == (0, "cpu")
    stepped(5)
    assert [(each.key, each.hits) for each in tj.cache.list()] == [(first.key, 1), (second.key, 0)]
    assert repr(tj.cache.list(limit=0)) == "()"


def test_why_names_the_argument(root) -> None:
    stepped(4, 5)
    found = tj.cache.why(NAME)
    assert [(each.what, each.here, each.there) for each in found.differences] == [
        ("argument x", "5(B) x 3(C) float64", "4(B) x 3(C) float64")
    ]
    assert found.process is not None
    assert {each.what for each in found.process} <= {"kernel"}  # the Python back end stores none


def test_columns_are_those_of_the_docstring(root) -> None:
    (text,) = re.findall(r"sort: (.*?)\. Numbers", inspect.getdoc(tj.cache.list) or "", re.DOTALL)
    assert re.findall(r'"(\w+)"', text) == list(verbs.COLUMNS)
    for column in verbs.COLUMNS:
        assert tj.cache.list(sort=column) == ()
    text = f"there is no column 'colour' to sort by; the columns are {', '.join(verbs.COLUMNS)}"
    with pytest.raises(CacheError, match=f"^{text}$"):
        tj.cache.list(sort="colour")


def test_results_are_data(root) -> None:
    stepped(4)
    assert tj.cache.info().programs == 1
    assert tj.cache.show(NAME).program["function"] == NAME
    KernelStore(str(root), 1 << 20).save(StoredKernel(KernelKey((("kind", "kernel"),)), "f", (), 1, "", b""))
    verified = tj.cache.verify()
    assert (verified.kernels, verified.programs, verified.bad) == (tj.cache.info().kernels, 1, [])
    assert tj.cache.dir() == str(root)
    removed = tj.cache.remove("nothing")
    assert (removed.programs, removed.kernels, removed.bytes) == (0, 0, 0)


@pytest.mark.parametrize("verb", ["remove", "purge"])
class TestWhatCannotBeRemoved:
    """The tests may run as root, who may remove what he likes; so a file that stays is one that unlink refuses."""

    @pytest.fixture
    def call(self, root, verb):
        stepped(4, 5)
        KernelStore(str(root), 1 << 20).save(
            StoredKernel(KernelKey((("kind", "kernel"),)), "f", (), 1, "", b"")
        )
        return (lambda: tj.cache.remove(NAME)) if verb == "remove" else tj.cache.purge

    def test_in_a_read_only_folder(self, root, call, monkeypatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", refuse)
            with pytest.raises(
                CacheError, match=r"^files of the cache in .* cannot be removed: Read-only file system"
            ):
                call()
        assert tj.cache.info().programs == 2
        assert call().programs == 2

    def test_removed_by_another_process_meanwhile(self, root, call, monkeypatch) -> None:
        unlink = os.unlink

        def remove_first(*arguments: object, **options: object) -> None:
            unlink(*arguments, **options)  # type: ignore[arg-type]
            unlink(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "unlink", remove_first)
        assert call().programs == 0
        assert tj.cache.info().programs == 0

    def test_in_a_folder_that_is_not_trusted(self, root, call) -> None:
        (root / "kernels").chmod(0o777)
        with pytest.raises(
            CacheError, match=r"cannot be used: other users may write to the folder .*kernels"
        ):
            call()
        assert len([*(root / "programs").glob("*.program")]) == 2


def test_verified_in_words() -> None:
    bad = f"{'a' * 12}  odd\n1 kernel and 0 programs are good, 1 entry is not"
    assert repr(verbs.Verified(1, 0, [("a" * 64, "odd")])) == bad
    assert repr(verbs.Verified(61, 16, [])) == "61 kernels and 16 programs are good"
    assert verbs.Verified(61, 16, []).good == 77


def test_importing_tracejit_does_not_load_the_cache_tools() -> None:
    code = (
        "import sys, json, tracejit; before = [*sys.modules]; tracejit.cache; "
        "print(json.dumps([[m for m in some if m.startswith('tracejit.')] for some in (before, [*sys.modules])]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert not [name for name in before if name.startswith("tracejit.cache")]
    assert "tracejit.cache" in after
    assert not {"tracejit.cache.inspect", "tracejit.cache.diff", "tracejit.store.kernels"} & {*after}
