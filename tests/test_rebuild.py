# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache verify --rebuild`: stored code against what its source compiles to; planted code is found."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tracejit import cache, cli, config
from tracejit.cache import trial
from tracejit.cache.trial import Case, Memory, TrialError, Trials
from tracejit.compile import numba_target
from tracejit.program import Kernel
from tracejit.store.entry import Entry, Key, decode, encode
from tracejit.store.kernels import SUFFIX
from tracejit.store.programs import Programs

TRAIN = """\
import numpy as np
import tracejit as tj


@tj.dlaccelerate
def step(w, x, places, mask):
    h = tj.tanh(x.T @ w)
    picked = h[places]
    kept = tj.where(mask, h, 0.0)
    noise = tj.rand((3, 2), like=h)
    loss = (picked**2).sum() + kept.max(axis=0).sum() + (noise * h).sum() + (h @ h.T).sum()
    return loss, tj.dlgradient(loss, w), tj.cumsum(h, axis=0), h.argmax(axis=1)


w = np.ones((5, 2), np.float32)
x = np.ones((5, 6), np.float32)[::-1, ::2]
for _ in range(3):
    step(tj.dlarray(w), tj.dlarray(x), np.array([0, 2, 1]), np.array([[True], [False], [True]]))


@tj.dlaccelerate
def large(x, y):
    return x @ y


for _ in range(3):
    large(np.ones((1000, 1000)), np.ones((1000, 1001)))  # BLAS
"""


SMALL = """\
import numpy as np
import tracejit as tj


@tj.dlaccelerate
def step(x):
    return tj.cumsum(tj.tanh(x + 1.0), axis=0)


for _ in range(3):
    step(tj.dlarray(np.ones((5, 3), np.float32)))
"""


def fill(folder: Path, program: str) -> Path:
    """Return the cache of a process that ran a program."""
    (folder / "train.py").write_text(program)
    environment = os.environ | {"TRACEJIT_CACHE_DIR": str(folder / "cache"), "TRACEJIT_BACKEND": "cpu"}
    subprocess.run([sys.executable, str(folder / "train.py")], check=True, env=environment)
    return folder / "cache"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("rebuild"), SMALL)


@pytest.fixture
def root(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the cache of a process that ran SMALL."""
    root = tmp_path / "cache"
    shutil.copytree(small, root)
    monkeypatch.setattr(config.settings, "cache_dir", str(root))
    return root


def entries(root: Path) -> dict[str, Entry]:
    """Return the entries by the names of their functions."""
    found = [
        decode(path.read_bytes(), path.name.removesuffix(SUFFIX)) for path in (root / "kernels").iterdir()
    ]
    return {entry.symbol: entry for entry in found}


def named(root: Path, stem: str) -> Entry:
    (found,) = [entry for symbol, entry in entries(root).items() if symbol.startswith(stem)]
    return found


def plant(root: Path, entry: Entry, change: Callable[[str], str]) -> str:
    """Exchange the code of an entry for that of another source, as one who may write to the folder can."""
    assert change(entry.source) != entry.source
    code, needs = numba_target.lower(Kernel(entry.symbol, change(entry.source))).object_code()
    planted = entry._replace(code=code, needs=needs)
    name = entry.key.name + SUFFIX
    (root / "kernels" / name).write_bytes(encode(planted))
    assert cache.verify().bad == []  # its hashes agree
    return entry.key.name


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()
    }


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["cache", "verify", "--rebuild", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_what_was_compiled_here_is_good(capsys, tmp_path, monkeypatch) -> None:
    root = fill(tmp_path, TRAIN)
    monkeypatch.setattr(config.settings, "cache_dir", str(root))
    before = state(root)
    used = {kernel["entry"] for each in Programs(str(root)).all() for kernel in each.program["kernels"]}
    functions = len(entries(root)) - len(used)
    assert 0 < functions <= 3  # the executor, and what threads run
    found = cache.verify(rebuild=True)
    assert (found.good, found.bad) == (len(used) + functions, [])
    assert found.rebuilt is not None
    assert (found.rebuilt.by_results, found.rebuilt.by_code) == (len(used), functions)
    assert found.rebuilt.left_out == []
    assert found.rebuilt.runs >= 4 * len(used)
    assert state(root) == before


def test_output(capsys, root) -> None:
    assert run(capsys) == (
        0,
        "4 entries are good, 0 are not\n"
        "compared with rebuilt code: 2 by results in 8 runs, 2 by code, as no program uses them; 0 could not be "
        "compared\n",
        "",
    )
    assert json.loads(run(capsys, "--json")[1])["result"] == {
        "good": 4, "bad": [], "by_results": 2, "by_code": 2, "runs": 8, "left_out": [],
    }  # fmt: skip


def test_planted_code_is_found_by_its_results(capsys, root) -> None:
    key = plant(root, named(root, "cumsum_"), lambda source: source.replace("cumsum(", "cumsum(0 * "))
    code, out, err = run(capsys)
    assert (code, err) == (1, "")
    assert out.startswith(f"{key[:12]}  compiled again, it gives other results in 2 of 2 runs\n")
    (bad,) = json.loads(run(capsys, "--json")[1])["result"]["bad"]
    assert bad == {"key": key, "reason": "compiled again, it gives other results in 2 of 2 runs"}


def test_planted_code_that_no_program_uses_is_found_by_its_code(root) -> None:
    key = plant(root, named(root, "cumsum_"), lambda source: source.replace("cumsum(", "cumsum(0 * "))
    for path in (root / "programs").iterdir():
        path.unlink()
    reason = "its code is not what its source compiles to; no program says how to run it"
    found = cache.verify(rebuild=True)
    assert found.bad == [(key, reason)]
    assert found.rebuilt is not None
    assert (found.rebuilt.by_results, found.rebuilt.by_code) == (0, len(entries(root)) - 1)


def test_planted_code_that_crashes_or_hangs_harms_nobody(root, monkeypatch) -> None:
    monkeypatch.setattr(trial, "_TIME_S", 1.5)
    crashing = plant(
        root, named(root, "cumsum_"), lambda source: source.replace("read_f32(args", "read_f32(7 * args")
    )
    endless = "    while n0 == n0:\n        o0[0] = o0[0] + f32(1.0)\n"
    hanging = plant(
        root, named(root, "add_tanh_"), lambda source: source.replace("    for i0", f"{endless}    for i0", 1)
    )
    found = dict(cache.verify(rebuild=True).bad)
    assert set(found) == {crashing, hanging}
    assert found[crashing].startswith("on the memory of its launches, its code ends the process (-")
    assert found[hanging] == "on the memory of its launches, its code does not end"


def test_a_source_that_was_exchanged(root) -> None:
    entry = named(root, "cumsum_")
    other = entry._replace(source=entry.source.replace("cumsum(", "cumsum(0 * "))
    (root / "kernels" / (entry.key.name + SUFFIX)).write_bytes(encode(other))
    assert cache.verify(rebuild=True).bad == [
        (entry.key.name, "its source is not the one that it was found by")
    ]


def test_a_source_that_cannot_be_compiled(root) -> None:
    entry = named(root, "cumsum_")
    source = entry.source.replace("cumsum(", "no_such_function(")
    from tracejit.compile.key import key_of

    key = key_of("kernel", source)
    assert key is not None
    (root / "kernels" / (key.name + SUFFIX)).write_bytes(encode(entry._replace(source=source, key=key)))
    assert cache.verify(rebuild=True).bad == [(key.name, "its source cannot be compiled")]


def test_what_is_of_another_machine_is_left_out(capsys, root) -> None:
    entry = named(root, "cumsum_")
    parts = tuple((name, "z80" if name == "cpu" else value) for name, value in entry.key.parts)
    other = entry._replace(key=Key(parts))
    (root / "kernels" / (other.key.name + SUFFIX)).write_bytes(encode(other))
    code, out, _ = run(capsys)
    assert code == 0
    assert "; 1 could not be compared\n" in out
    reason = "it was compiled for another machine, or by another version"
    assert out.endswith(f"\n{other.key.name[:12]}  not compared: {reason}\n")


def test_a_description_that_lies_about_memory_makes_no_kernel_bad(root, tmp_path) -> None:
    for each in Programs(str(root)).all():
        lie = json.loads(json.dumps(each.program))
        for buffer in lie["memory"]:
            buffer["bytes"] = min(buffer["bytes"], 4)
        for row in lie["rows"]:
            row["arguments"] = [
                argument + 10**12 if isinstance(argument, int) and argument > 2 else argument
                for argument in row["arguments"]
            ]
        Programs(str(root)).remove(each.name)
        Programs(str(root)).keep(lie, {"at": 1.0})
    found = cache.verify(rebuild=True)
    assert found.bad == []
    assert found.rebuilt is not None
    assert found.rebuilt.left_out
    assert all("rebuilt code ends the process" in reason for _, reason in found.rebuilt.left_out)


@pytest.mark.parametrize("change", [{"rows": 1}, {"memory": None}, {"rows": [{}]}])
def test_descriptions_that_nobody_wrote_are_no_help(root, change) -> None:
    for each in Programs(str(root)).all():
        Programs(str(root)).remove(each.name)
        Programs(str(root)).keep(each.program | change, {"at": 1.0})
    found = cache.verify(rebuild=True)
    assert found.rebuilt is not None
    assert (found.bad, found.rebuilt.by_results) == ([], 0)
    assert found.rebuilt.by_code == len(entries(root))


def test_code_that_is_none() -> None:
    trials = Trials()
    with pytest.raises(
        TrialError, match="object code of f cannot be loaded: there is no function of that name"
    ):
        trials.run("f", b"\x7fELF", (), [])
    trials.close()


def test_memory_of_a_trial_is_random_and_what_is_around_it_counts(root) -> None:
    entry = named(root, "cumsum_")
    (path,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    (row,) = [each for each in path.program["rows"] if each["operations"] == "cumsum"]
    numbers = [each for each in row["arguments"] if isinstance(each, int)]
    memory = [Memory(24, 8, "float32"), Memory(24, 16, "float32")]
    arguments = [*numbers, ["memory", 0, 0], ["memory", 1, 0]]
    trials = Trials()
    first, again, other = trials.run(
        entry.symbol, entry.code, entry.needs, [Case(memory, arguments, seed) for seed in (0, 0, 1)]
    )
    beside = trials.run(
        entry.symbol, entry.code, entry.needs, [Case(memory, [*arguments[:-1], ["memory", 1, 32]], 0)]
    )
    trials.close()
    assert first == again
    assert len({first, other, *beside}) == 3


def test_numbers_as_words() -> None:
    given = [7, ["float32", "inf"], ["bool", "True"], ["int8", "-1"], ["float64", "-0.5"]]
    found = list(trial._words(given, []))
    assert found == [7, 0x7F800000, 1, 0xFF, np.float64(-0.5).view(np.int64)]


def test_arguments_that_are_none(root) -> None:
    entry = named(root, "cumsum_")
    trials = Trials()
    for arguments in ([1 << 70], [["float99", "1"]], [["memory", 3, 0]]):
        with pytest.raises(TrialError, match=r"cannot be called \((OverflowError|TypeError|IndexError): "):
            trials.run(entry.symbol, entry.code, entry.needs, [Case([], arguments, 0)])
    trials.close()
