# SPDX-License-Identifier: BSD-3-Clause
"""The table of python -m benchmarks.cuda, through the stand-in for the driver."""

import sys
from typing import Any

import pytest
from fake_cublas import fake_cublas
from fake_driver import fake_device
from llvm_texts import NEEDS_LLVM_22

from benchmarks import cuda
from benchmarks.workloads.transformer import transformer
from tracejit.errors import DeviceError

pytestmark = NEEDS_LLVM_22


def fail(*_: Any) -> Any:
    raise DeviceError("of no use")


@pytest.mark.slow
def test_a_library_that_fails_does_not_end_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workloads of the table of README have a loss for each library, and their arguments are trees."""
    rows = [
        cuda.of_shapes("small chain", cuda.chain, ((9,), (9,))),
        cuda.of_table(transformer("transformer", width=8, heads=2, length=3, batch=2)),
    ]
    monkeypatch.setattr(cuda, "ROUNDS", 2)
    monkeypatch.setattr(cuda, "REPEATS", 1)
    monkeypatch.setattr(cuda, "workloads", lambda: rows)
    monkeypatch.setattr(sys, "argv", ["benchmarks.cuda"])
    own = cuda.ours()
    others = [own._replace(name="unmade", array=fail), own._replace(name="untimed", timed=fail)]
    monkeypatch.setattr(cuda, "torches", lambda: others)
    monkeypatch.setattr(cuda, "jaxes", lambda: [own._replace(name="wrong", numpy=lambda x: own.numpy(x) + 1)])
    with fake_device() as fake, fake_cublas(fake, None):
        assert cuda.main() == 0
    shown = capsys.readouterr()
    head, *table = shown.out.splitlines()[1:]
    assert head.split() == ["tracejit", "with", "cuBLASLt", "unmade", "untimed", "wrong"]
    for line, row in zip(table, rows, strict=True):
        ours, by_library, *failed = line.removeprefix(row.name).partition("  first calls")[0].split()
        assert float(ours) > 0 and float(by_library) > 0
        assert failed[:4] == ["failed:", "DeviceError"] * 2 and failed[4:6] == ["wrong", "by"]
        assert f"{row.name}, untimed: of no use\n" in shown.err
