# SPDX-License-Identifier: BSD-3-Clause
"""The command: its streams, its exit codes, its imports, and the demo."""

import importlib.metadata
import importlib.util
import json
import subprocess
import sys

import pytest

from tracejit import cli
from tracejit.commands import demo

VERSION = importlib.metadata.version("tracejit")


@pytest.mark.parametrize(
    "arguments, code, where, text",
    [
        (["--version"], 0, "out", f"tracejit {VERSION}\n"),
        (["--help"], 0, "out", "usage: tracejit [-h] [--json] [--version] COMMAND ..."),
        (["demo", "--help"], 0, "out", 'pip install "tracejit[demo]"'),
        ([], 2, "err", "the following arguments are required: COMMAND"),
        (["train"], 2, "err", "invalid choice: 'train'"),
        (["demo", "--epochs", "0"], 2, "err", "argument --epochs: expected a positive integer, not '0'"),
        (["demo", "--epochs", "ten"], 2, "err", "expected a positive integer, not 'ten'"),
    ],
)
def test_arguments(capsys, arguments, code, where, text):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == code
    printed = capsys.readouterr()
    assert text in getattr(printed, where)
    assert getattr(printed, "err" if where == "out" else "out") == ""


@pytest.mark.parametrize("missing", demo.MODULES)
def test_demo_names_the_missing_extra(capsys, monkeypatch, missing):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr() == (
        "", f'tracejit demo: {missing} is not installed; run: pip install "tracejit[demo]"\n'
    )  # fmt: skip


def test_demo(capsys, tmp_path):
    pytest.importorskip("sklearn")
    assert cli.main(["demo", "--epochs", "25", "--out", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr()
    lines = [(line[:18].strip(), line[18:].split()[0]) for line in printed.out.splitlines() if line]
    assert [name for name, _ in lines] == [
        "step uncompiled", "step accelerated", "ratio", "hit rate", "occupancy", "compile time",
        "losses differ by", "test accuracy", "convolutions", "test accuracy", "loss curve", "emitted source",
    ]  # fmt: skip
    rows = dict(reversed(lines))
    assert float(rows["test accuracy"]) >= 0.97
    assert float(dict(lines)["test accuracy"]) >= 0.985
    assert float(rows["losses differ by"]) <= 1e-4
    assert float(rows["hit rate"]) == pytest.approx(
        100 * (1 - 8 / 1225), abs=0.05
    )  # two traces were recorded, confirmed and audited
    assert rows["occupancy"] == "4"
    assert "training: 100%" in printed.err
    assert (tmp_path / "new" / "digits_loss.png").read_bytes().startswith(b"\x89PNG")
    compile((tmp_path / "new" / "digits_step.py").read_text(), "digits_step.py", "exec")


def test_demo_cannot_write(capsys, tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file" / "folder")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"tracejit demo: cannot write to {tmp_path / 'file' / 'folder'}: Not a directory\n"


def test_demo_fails_if_losses_differ(capsys, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    from tracejit.examples import digits, digits_convolution

    monkeypatch.setattr(digits, "TOLERANCE", -1.0)
    monkeypatch.setattr(digits_convolution, "run", lambda epochs: None)
    assert cli.main(["demo", "--epochs", "1", "--out", str(tmp_path)]) == 1
    assert "accelerated and uncompiled steps gave different losses" in capsys.readouterr().err


def test_demo_as_json(capsys, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    from tracejit.examples import digits, digits_convolution

    report = digits.Report(0.004, 0.001, 99.0, 4.0, 2.0, 9, 1e-7, 0.98, tmp_path / "a.png", tmp_path / "a.py")
    monkeypatch.setattr(digits, "run", lambda epochs, out: report)
    found = digits_convolution.ConvolutionReport(0.002, 28, 0.99)
    monkeypatch.setattr(digits_convolution, "run", lambda epochs: found)
    assert cli.main(["demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "command": "demo",
        "result": {
            "dense": {
                "uncompiled_s": 0.004, "accelerated_s": 0.001, "hit_rate": 99.0, "occupancy": 4.0, "compile_s": 2.0,
                "kernels": 9, "loss_difference": 1e-7, "test_accuracy": 0.98, "curve": str(tmp_path / "a.png"),
                "source": str(tmp_path / "a.py"),
            },
            "convolution": {"step_s": 0.002, "kernels": 28, "test_accuracy": 0.99},
        },
    }  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """Return the packages that are loaded after a statement in a process of its own."""
    code = (
        f"import contextlib, sys\nwith contextlib.suppress(SystemExit):\n    {statement}\nprint(*sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    return {name.partition(".")[0] for name in output.split()}


def test_the_command_loads_no_compiler():
    loaded = loaded_by("import tracejit.cli; tracejit.cli.main(['--version'])")
    assert "tracejit" in loaded
    assert not loaded & {"numba", "llvmlite", "scipy", *demo.MODULES}


def test_the_check_of_loaded_packages_can_fail():
    assert "llvmlite" in loaded_by("import llvmlite")
