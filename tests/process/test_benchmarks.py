# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks run: a tiny workload of ours in this process, without Numba and without peers."""

import ctypes
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from effort import sweep

from benchmarks import (
    bench_captured,
    bench_convolution,
    bench_products,
    bench_programs,
    bench_random,
    bench_single_ops,
    bench_state,
    bench_writes,
    internals,
    report,
    run,
    single_ops,
)
from benchmarks.__main__ import main
from benchmarks.cost import Cost, Rates, cost, record, roofline_us
from benchmarks.libraries.reference import reference
from benchmarks.nested import leaves, mapped
from benchmarks.run import OURS, Measured, Row, Settings, differences, taken
from benchmarks.worker import SEED, Session
from benchmarks.workload import Workload
from benchmarks.workloads import BY_NAME, SWEEP, TABLE
from benchmarks.workloads.mlp import mlp
from benchmarks.workloads.transformer import transformer
from tracejit import config

TINY = mlp((3, 4, 2), 5, name="tiny")


@pytest.fixture(autouse=True)
def _without_numba(monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")


def test_a_workload_runs_and_is_measured() -> None:
    session = Session(OURS, TINY)
    first = session.answer({"do": "first"})
    results = taken(first["results"])
    assert set(results) == {"loss", *(f"gradient[{layer}].{name}" for layer in (0, 1) for name in "bw")}
    assert 0 < results["loss"] < 5
    assert all(np.abs(array).max() > 0 for array in results.values())
    measured = session.answer({"do": "measure", "seconds": 0.01})
    assert measured["count"] >= 1
    assert min(measured["steps_ns"]) > 0
    products = 2 * (3 * 5 * 3 * 4 - 5 * 3 * 4) + 3 * 2 * 5 * 4 * 2  # the input has no gradient
    assert session.answer({"do": "cost"})["flops"] > products
    row = Row(
        TINY,
        {OURS: Measured(first["first_s"], [n / 1e3 for n in measured["steps_ns"]])},
        Cost(10, 4, "float32"),
    )
    versions = {OURS: {OURS: "1.0", "Python": "3.11.7"}, "jax": {"error": "not installed: jax"}}
    printed = report.text([row], Rates({"float32": 1e9}, 1e9), Settings(), versions)
    assert printed.splitlines()[1].startswith("MLP 3-4-2, batch 5")
    assert "\ntracejit 1.0, Python 3.11.7\njax: not installed: jax\n" in printed
    assert differences(results, reference(TINY, TINY.data(np.random.default_rng(SEED))), TINY.tolerance) == ""


@pytest.mark.parametrize("workload", [w for w in TABLE if w.name in ("calls", "sizes")], ids=lambda w: w.name)
def test_other_kinds_run(workload) -> None:
    small = replace(TINY, kind="sizes") if workload.kind == "sizes" else workload
    session = Session(OURS, small)
    assert taken(session.answer({"do": "first"})["results"])
    assert session.answer({"do": "measure", "seconds": 0.0})["count"] == 1


def test_the_cost_of_a_product() -> None:
    import tracejit as tj

    x = tj.dlarray(np.ones((4, 8), np.float32))
    found = cost(record(tj.dlaccelerate(lambda x: x @ x.T), x))
    assert found == Cost(2 * 4 * 4 * 8, 4 * (32 + 16), "float32")
    assert roofline_us(found, Rates({"float32": 256e6}, 1e12)) == pytest.approx(1)


def test_results_that_differ_are_named() -> None:
    expected = {"loss": np.float64(2), "gradient": np.array([1.0, 3.0])}
    assert differences(expected, expected, 0) == ""
    wrong = expected | {"gradient": np.array([1.0, 3.1])}
    assert differences(wrong, expected, 0.01) == "results differ: gradient by 1.0e-01 of 3.0e+00"
    assert differences(expected | {"loss": np.float64("nan")}, expected, 0.01)
    assert differences({"loss": np.float64(2)}, expected, 0.01)
    assert differences(expected | {"gradient": np.ones(3)}, expected, 0.01)


@pytest.mark.parametrize("workload", TABLE, ids=lambda workload: workload.name)
def test_numpy_agrees_with_the_reference(workload) -> None:
    if workload.name.startswith("mlp-") and workload.name != "mlp-tiny":  # the same code, with more of all
        workload = replace(TINY, name=workload.name)
    if workload.name == "transformer":
        workload = transformer("transformer", width=16, heads=2, length=4, batch=2)
    found = reference(workload, workload.data(np.random.default_rng(SEED)))
    assert all(array.dtype == np.float64 for array in found.values())
    assert workload.kind == "forward" or "loss" in found


def test_a_loss_or_a_gradient_that_is_not_numpys_is_found() -> None:
    def with_loss(change) -> Workload:
        def loss(params, batch):
            return TINY.losses["numpy"]()(params, batch) + change(params, start)

        return replace(TINY, losses={**TINY.losses, "numpy": lambda: loss})

    data = TINY.data(np.random.default_rng(0))
    start = data[0][0]["b"].astype(np.float64)
    with pytest.raises(ValueError, match=r"tiny: NumPy's loss is .*, tracejit's"):
        reference(with_loss(lambda params, start: 1e-8), data)
    with pytest.raises(ValueError, match=r"tiny: along gradient\[0\]\.b NumPy's loss changes by"):
        reference(with_loss(lambda params, start: 0.01 * (params[0]["b"] - start).sum()), data)


def test_a_peer_that_is_wrong_is_shown_as_wrong() -> None:
    def printed(**runs: Measured) -> list[str]:
        found = {OURS: Measured(0, [2.0])} | {name.replace("_", " "): run for name, run in runs.items()}
        row = Row(TINY, found, Cost(1, 1, "float32"))
        return report._times(row, Rates({"float32": 1e9}, 1e9))[3:7]

    wrong = Measured(note="results differ: loss by 1 of 2", is_wrong=True)
    absent = Measured(note="not installed: torch")
    assert printed(jax=wrong, torch=absent) == ["wrong", "-", "-", "-"]
    assert printed(jax=wrong, jax_unrolled=Measured(0, [8.0]), torch_compile=wrong) == [
        "8.00",
        "-",
        "wrong",
        "4.00",
    ]


WRONG = """
import json, sys
import numpy as np
from benchmarks import worker
from benchmarks.run import OURS
from benchmarks.workloads import BY_NAME

session = worker.Session(OURS, BY_NAME[sys.argv[4]])
for line in sys.stdin:
    answer = session.answer(json.loads(line))
    if "results" in answer:
        with np.load(answer["results"]) as file:
            arrays = dict(file)
        arrays["loss"] *= 1.01
        np.savez(answer["results"], **arrays)
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.slow
def test_a_library_that_computes_something_else_is_not_timed(tmp_path, monkeypatch) -> None:
    """Its process answers as any other does, and its loss is one hundredth too large."""
    monkeypatch.setenv("TRACEJIT_BACKEND", "python")
    python, script = tmp_path / "python", tmp_path / "wrong.py"
    script.write_text(WRONG)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    python.chmod(0o755)
    absent = tmp_path / "absent"
    absent.write_text("#!/bin/sh\n")
    absent.chmod(0o755)
    settings = Settings(
        threads=1, rounds=1, turn_s=0.0, compilers=False, pythons={"jax": str(python), "torch": str(absent)}
    )
    row = run.measure(BY_NAME["mlp-tiny"], settings)
    found = row.runs["jax"]
    assert found.is_wrong and not found.parts_us
    assert re.fullmatch(r"results differ: loss by \S+ of \S+", found.note)
    assert row.runs["torch"].note == "the process ended: without a word"
    assert row.best_peer() is None and row.ratio() is None
    assert "wrong" in report._times(row, Rates({"float32": 1e9}, 1e9))


def test_a_library_may_have_a_python_of_its_own(tmp_path) -> None:
    python, mark = tmp_path / "python", tmp_path / "mark"
    python.write_text(f'#!/bin/sh\ntouch "{mark}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    found = run.versions(Settings(threads=1, pythons={"jax": str(python)}))
    assert list(found) == [OURS, "jax", "torch"] and mark.exists()
    assert all("Python" in versions or "not installed" in versions["error"] for versions in found.values())


def test_a_python_that_is_none_is_an_error(tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--jax-python", str(tmp_path / "python"), "mlp-tiny"])
    assert f"--jax-python: {tmp_path / 'python'} is no program" in capsys.readouterr().err


def test_the_ratio_is_to_the_fastest_peer() -> None:
    runs = {
        OURS: Measured(0, [2.0, 1.0, 3.0]),
        "jax": Measured(0, [8.0, 9.0]),
        "torch": Measured(0, [7.0, 30.0]),
    }
    runs["torch compile"] = Measured(note="results differ")
    row = Row(TINY, runs, Cost(1, 1, "float32"))
    assert row.best_peer() == ("jax", 8.5)
    assert row.ratio() == 8.5 / 2
    assert row.ratio("min_us") == 7
    assert report.geometric_mean([row, row], "min_us") == pytest.approx(7)


def test_recording_building_and_calling_are_timed() -> None:
    assert [row[0] for row in internals.recording((10,), 1)] == ["10"]
    (row,) = internals.building((40,))
    assert int(row[0]) > 20
    *stages, rest, total = map(float, row[1:])
    assert min(stages) >= 0
    assert sum(stages) + rest == pytest.approx(total, abs=1)
    assert [row[0] for row in internals.guarding(1)][:2] == ["no guard", "ten outcomes of if"]
    assert internals.calling((2,))[0][2] == "nan"  # without a compiled program there is none to launch


def test_random_numbers_are_timed() -> None:
    found = bench_random.rows(8, 1)
    assert [row[0] for row in found] == ["rand", "randn", "dropout"] * 2 + ["randi", "randperm"]
    assert all(cost > 0 for row in found for cost in row[2:])


def test_convolutions_are_timed(monkeypatch) -> None:
    layer = bench_convolution.Layer(1, 2, 3, (4, 4), (2, 2))
    monkeypatch.setattr(bench_convolution, "CASES", {"small": layer, "back": layer._replace(transposed=True)})
    found = bench_convolution.rows(["small", "back"], 1, 0.0, False)
    assert [name for name, _ in found] == ["small", "back"]
    assert all(time > 0 for _, times in found for time in times)
    assert bench_convolution.line("small", [1.0, 2.0, 4.0, 3.0] * 2).split()[5:7] == ["3.00", "1.50"]


def test_programs_are_timed(tmp_path, capsys) -> None:
    files = [tmp_path / "one.npz", tmp_path / "other.npz"]
    for file in files:
        bench_programs.work("Newton's regression", "ours", False, 0.0, str(file))
    turn = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 < turn["least"] <= turn["middle"] and turn["first"] > 0
    assert bench_programs.apart(*files) == 0
    np.savez(tmp_path / "wrong.npz", arr_0=np.array(1.0), arr_1=np.ones(10))
    assert bench_programs.apart(files[0], tmp_path / "wrong.npz") > 0.1
    peer = {name: 2 * value for name, value in turn.items()}
    found = {("ours", False): [turn], ("ours", True): [peer], ("jax", False): [peer]}
    assert bench_programs.report("wave", found, 1.0) == 2.0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split()[:3] == ["wave", "ours", "unrolled"]
    assert printed[3].endswith("ratio 2.00   THE RESULTS DIFFER by 1e+00")


def test_steps_that_write_are_timed() -> None:
    small = {name: bench_writes.CASES[name] for name in ("30", "MLP 64-128-10")}
    found = bench_writes.rows(1, 0.0, small)
    assert [name for name, *_ in found] == list(small)
    assert all(cost > 0 for row in found for cost in row[1:])


def test_methods_that_write_their_state_are_timed() -> None:
    found = bench_state.rows(1, 0.0, [10])
    assert [row[0] for row in found] == ["descend", "drift", "remember", "learn"]
    assert all(cost > 0 for row in found for cost in row[2:])


def test_captured_state_is_timed(capsys) -> None:
    bench_captured.main(["--repeats", "1"])
    printed = capsys.readouterr().out
    assert "with names" in printed and "not watched" in printed


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(TABLE) + len(SWEEP)


def test_containers() -> None:
    tree = {"b": [1, 2], "a": (3,)}
    assert leaves(tree, "x") == {"x.a[0]": 3, "x.b[0]": 1, "x.b[1]": 2}
    assert mapped(str, tree) == {"b": ["1", "2"], "a": ("3",)}


def test_an_unknown_name_is_an_error(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["calls", "nothing"])
    assert "no workload is called nothing;" in capsys.readouterr().err


def test_products_are_called_by_a_compiled_loop() -> None:
    seen = []
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t)(seen.append)
    bench_products.looped()(ctypes.cast(kernel, ctypes.c_void_p).value, 48, 5)
    assert seen == [48] * 5


def test_the_history_measures_steps_of_the_table() -> None:
    code = (
        "import sys; sys.path.append('benchmarks')\n"
        "from history.steps import First, Step, timeraw_import\n"
        "step = Step()\n"
        "step.setup('calls'), step.time_step('calls')\n"
        "run, setup = First().timeraw_first_step('mlp-small')\n"
        "exec(setup), exec(run), exec(timeraw_import())\n"
        "print(len(Step.params), step.track_kernels('calls'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TRACEJIT_BACKEND": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{sum(w.kind != 'sizes' for w in TABLE)} 1\n", "")


SINGLE = list(single_ops.rows([100]))


def test_calls_of_single_operations_are_complete() -> None:
    layouts = {row.layout for row in SINGLE}
    assert layouts == set(single_ops.LAYOUTS)
    assert len({(row.name, row.layout) for row in SINGLE}) == len(SINGLE)
    assert {"exp(x)", "np.sort(x)", "np.sum(A, axis=1), tall", "add.at of rows"} <= {
        row.name for row in SINGLE
    }
    assert single_ops.Row.read(SINGLE[0].written()) == SINGLE[0]
    strided = next(row for row in SINGLE if row.layout == "strided")
    assert not any(array.flags.c_contiguous for array in single_ops.operands(strided))


def in_turn(rows: list[single_ops.Row]) -> list[single_ops.Row]:
    """Return each operation in one of its layouts by turns, at night in all of them."""
    of_name: dict[str, list[single_ops.Row]] = {}
    for row in rows:
        of_name.setdefault(row.name, []).append(row)
    return [row for i, same in enumerate(of_name.values()) for row in sweep([same[i % len(same)]], same)]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("row", in_turn(SINGLE), ids=lambda row: f"{row.name}-{row.layout}")
def test_a_single_operation_is_measured(row: single_ops.Row) -> None:
    times = bench_single_ops.measure_ours(row, 0.0)
    assert times["same"], "the results differ"
    assert min(times[name] for name in ("ours", "uncompiled", "numpy")) > 0


def test_the_table_of_single_operations() -> None:
    some = SINGLE[:2]
    found = [{"ours": 2.0, "numpy": 4.0, "uncompiled": 3.0, "jax": 8.0, "same": True},
             {"ours": 2.0, "numpy": 1.0, "uncompiled": 3.0, "same": False}]  # fmt: skip
    lines = bench_single_ops.table(some, found, behind=True).splitlines()
    assert len(lines) == 1 + 1 + 3
    assert lines[1].startswith(some[1].name) and lines[1].endswith(
        "0.50       -       1.50  THE RESULTS DIFFER"
    )
    assert lines[2] == "100 elements, numpy: geometric mean 1.00, 1 of 2 rows behind"
    faster = bench_single_ops.merged(found[0], {"ours": 1.0, "numpy": 5.0, "uncompiled": 3.0, "same": True})
    assert bench_single_ops.ratios(faster) == {"numpy": 4.0, "jax": 8.0, "uncompiled": 3.0}
