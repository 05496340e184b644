# SPDX-License-Identifier: BSD-3-Clause
"""Programs on disk: their descriptions, and how many processes used them."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracejit import config, dlaccelerate, dlarray, dlgradient, tanh
from tracejit.store import programs
from tracejit.store.programs import Programs, StoredProgram

NAME = "0" * 64


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


def use_of(at: float) -> dict[str, float]:
    return {"at": at, "build_ns": 1, "compile_ns": 0}


def stepped(rows: int) -> None:
    """Call an accelerated function of this file until it is replayed."""

    @dlaccelerate
    def step(w, x):
        loss = (tanh(x @ w) ** 2).sum()
        return loss, dlgradient(loss, w)

    for _ in range(4):
        step(dlarray(np.ones((3, 2), np.float32)), dlarray(np.ones((rows, 3), np.float32)))
    assert step.stats.hits > 0


def test_a_program_is_described_when_it_is_built(root: Path) -> None:
    stepped(5)
    (found,) = Programs(str(root)).all()
    program = found.program
    assert program["function"].endswith("step")
    assert (program["target"], program["schema"]) == ("cpu", programs.SCHEMA)
    assert program["inputs"] == ["3x2 float32", "5x3 float32"]
    assert program["outputs"] == ["scalar float32", "3x2 float32"]
    assert program["row_count"] == len(program["rows"]) > 1
    assert {Path(file).name for row in program["rows"] for file, _ in row["where"]} == {"test_programs.py"}
    assert program["rows"][0]["operations"] == "matmul"
    assert [kernel["name"] for kernel in program["kernels"]] == list(dict.fromkeys(names_of(program)))
    (use,) = found.uses
    assert use["build_ns"] > 0


def test_the_description_of_a_program(root: Path) -> None:
    stepped(5)
    (found,) = Programs(str(root)).all()
    program = found.program
    file, first = stepped.__code__.co_filename, stepped.__code__.co_firstlineno
    assert program["defined"] == [file, first + 3]
    assert program["signature"] == [["w", "3x2 float32"], ["x", "5x3 float32"]]
    assert program["ops"][0] == {
        "number": 0, "name": "matmul", "inputs": ["in1", "in0"], "params": {},
        "outputs": [["v0", [5, 2], "float32"]], "where": [file, first + 5], "rows": [0],
    }  # fmt: skip
    assert [op["name"] for op in program["ops"]][:3] == ["matmul", "tanh", "square"]
    assert program["rows"][0] | {"arguments": []} == {
        "number": 0, "kernel": 0, "arguments": [], "operations": "matmul", "ops": [0], "purpose": "",
        "where": [[file, first + 5]], "part": [0, 1, 0],
    }  # fmt: skip
    assert program["pairs"][0] == {
        "made": 0, "read": 1, "value": "v0", "why": "matmul is a matrix product, which has a kernel of its own"
    }  # fmt: skip
    assert program["memory"][0] == {
        "kind": "input", "number": 1, "offset": 0, "bytes": 60, "value": "in1", "op": None, "first": 0,
        "last": len(program["rows"]) - 1,
    }  # fmt: skip
    assert program["left_out"] == {}
    assert program["kernels"][0]["lines"] == []  # of a product
    names = [op["name"] for op in program["ops"]]
    assert {names[op] for _, op in program["kernels"][1]["lines"]} >= {"tanh", "square", "sum"}


def test_a_long_loop_is_described_by_its_beginning_and_each_kernel(root: Path) -> None:
    @dlaccelerate
    def long(w, x):
        for _ in range(200):
            x = tanh(x @ w)
        return x.sum()

    for _ in range(3):
        long(dlarray(np.ones((2, 2), np.float32)), dlarray(np.ones((2, 2), np.float32)))
    (found,) = Programs(str(root)).all()
    program = found.program
    assert program["row_count"] == 400
    assert {row["kernel"] for row in program["rows"]} == set(range(len(program["kernels"])))
    assert len(program["rows"]) <= 200 + len(program["kernels"])
    assert program["left_out"]["rows"] == 400 - len(program["rows"])


def test_values_of_arguments_are_short_and_the_same_in_each_process(root: Path) -> None:
    @dlaccelerate
    def scaled(x, function, text):
        return function(x)

    for _ in range(3):
        scaled(dlarray(np.ones(2)), tanh, "a" * 300)
    (found,) = Programs(str(root)).all()
    (_, x), (_, function), (_, text) = found.program["signature"]
    assert (x, function) == ("2 float64", "<function tanh>")
    assert text == "'" + "a" * 196 + "..."


def names_of(program: dict[str, Any]) -> list[str]:
    return [program["kernels"][row["kernel"]]["name"] for row in program["rows"]]


def test_the_same_program_is_one_file_with_a_line_for_each_use(root: Path) -> None:
    for _ in range(3):
        stepped(5)
    stepped(6)
    found = {tuple(each.program["inputs"]): each for each in Programs(str(root)).all()}
    assert {inputs: len(each.uses) for inputs, each in found.items()} == {
        ("3x2 float32", "5x3 float32"): 3,
        ("3x2 float32", "6x3 float32"): 1,
    }


def test_nothing_is_written_without_a_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "cache", "off")
    stepped(5)
    assert not root.exists()


def test_files_are_private(root: Path) -> None:
    Programs(str(root)).keep({"function": "f"}, use_of(1.0))
    for path in (root / "programs").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damaged_files_are_left_out(root: Path) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))
    kept.keep({"function": "g"}, use_of(2.0))
    (whole,) = [each for each in kept.all() if each.program["function"] == "g"]
    for path in (root / "programs").glob("*.program"):
        if path.stem != whole.name:
            path.write_bytes(path.read_bytes()[:-1])
    (root / "programs" / f"{NAME}.program").write_text("[" * 100_000)
    (root / "programs" / "notes.txt").write_text("mine")
    with (root / "programs" / f"{whole.name}.uses").open("a") as uses:
        uses.write('{"at": \n[1]\n')
    assert kept.all() == [whole]


def test_damaged_files_are_written_again(root: Path) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))
    (found,) = kept.all()
    (path,) = (root / "programs").glob("*.program")
    path.write_bytes(path.read_bytes()[:-1])
    assert (kept.all(), [name for name, _ in kept.bad()]) == ([], [found.name])
    kept.keep({"function": "f"}, use_of(2.0))
    assert ([each.program for each in kept.all()], list(kept.bad())) == ([found.program], [])


@pytest.mark.parametrize("spoil", ["link", "mode"])
def test_files_that_cannot_be_trusted_are_written_again(root: Path, tmp_path: Path, spoil: str) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))
    (found,) = kept.all()
    (path,) = (root / "programs").glob("*.program")
    if spoil == "link":
        moved = path.rename(tmp_path / "elsewhere")
        path.symlink_to(moved)
    else:
        path.chmod(0o666)
    assert kept.all() == []
    kept.keep({"function": "f"}, use_of(2.0))
    assert ([each.program for each in kept.all()], list(kept.bad())) == ([found.program], [])
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_a_program_that_cannot_be_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))

    def read(file: int, count: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", read)
    assert [reason for _, reason in kept.bad()] == ["it cannot be read (Input/output error)"]
    assert kept.all() == kept.heads() == []


def test_a_different_schema_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SCHEMA", 99)
    Programs(str(root)).keep({"function": "f"}, use_of(1.0))
    monkeypatch.undo()
    assert Programs(str(root)).all() == []


def test_the_last_used_comes_first_and_the_oldest_goes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MOST", 3)
    kept = Programs(str(root))
    for i in range(5):
        kept.keep({"function": f"f{i}"}, use_of(i))
        for path in (root / "programs").glob("*.program"):
            if json.loads(path.read_text().splitlines()[1])["function"] == f"f{i}":
                os.utime(path, (i, i))
    assert [each.program["function"] for each in kept.all()] == ["f4", "f3", "f2"]
    assert len(list((root / "programs").iterdir())) == 6


def test_uses_of_one_program_are_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_USES_BYTES", 100)
    kept = Programs(str(root))
    for i in range(10):
        kept.keep({"function": "f"}, use_of(i))
    (found,) = kept.all()
    assert [use["at"] for use in found.uses] == [0, 1]


def test_removing(root: Path) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))
    (found,) = kept.all()
    assert not kept.remove("../" + found.name)
    assert not kept.remove(NAME)
    assert kept.remove(found.name)
    assert kept.all() == []
    assert list((root / "programs").iterdir()) == []


def test_a_folder_that_cannot_be_used_costs_nothing(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    Programs(str(root)).keep({"function": "f"}, use_of(1.0))
    assert list(root.iterdir()) == []


def test_uses_are_not_written_through_a_link(root: Path, tmp_path: Path) -> None:
    kept = Programs(str(root))
    kept.keep({"function": "f"}, use_of(1.0))
    (found,) = kept.all()
    target = tmp_path / "target"
    target.write_text("")
    uses = root / "programs" / f"{found.name}.uses"
    uses.unlink()
    uses.symlink_to(target)
    kept.keep({"function": "f"}, use_of(2.0))
    assert target.read_text() == ""
    assert kept.all() == []  # nor read through it
    uses.unlink()
    uses.write_text("")
    uses.chmod(0o622)
    kept.keep({"function": "f"}, use_of(3.0))
    assert uses.read_text() == ""


def test_constants_are_described_by_their_size_alone(root: Path) -> None:
    secret = np.array([1234567.0, 2.0, 3.0], np.float32)

    @dlaccelerate
    def scaled(x):
        return x * dlarray(secret) + 0.25

    for _ in range(4):
        scaled(dlarray(np.ones(3, np.float32)))
    (found,) = Programs(str(root)).all()
    assert isinstance(found, StoredProgram)
    assert "1234567" not in json.dumps(found.program)


def test_a_call_goes_on_if_its_program_cannot_be_described(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise StopIteration("no reason")

    monkeypatch.setattr("tracejit.describe.inventory.describe", broken)
    with caplog.at_level("WARNING", "tracejit"):
        stepped(6)
    assert [record.getMessage() for record in caplog.records] == [
        "stepped.<locals>.step: no description was written to the cache: StopIteration: no reason"
    ]
    assert Programs(str(root)).all() == []
