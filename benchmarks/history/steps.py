# SPDX-License-Identifier: BSD-3-Clause
"""The steps of the table, in tracejit alone: how long one takes, and what comes before the first replay."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import make_job
from benchmarks.worker import SEED
from benchmarks.workloads import BY_NAME, TABLE

FOLDER = Path(__file__).parents[1]  # in which `history` lies, for a new process


def job_of(name: str) -> Any:
    """Return a workload of the table as a function with its data, not yet called."""
    workload = BY_NAME[name]
    return make_job("tracejit", workload, workload.data(np.random.default_rng(SEED)))


class Step:
    """A step that is replayed."""

    params = [workload.name for workload in TABLE if workload.kind != "sizes"]  # noqa: RUF012  # as asv wants it
    param_names = ("workload",)
    timeout = 300

    def setup(self, name: str) -> None:
        self.job = job_of(name)
        self.job.first()

    def time_step(self, name: str) -> None:
        self.job.run(1)

    def peakmem_step(self, name: str) -> None:
        self.job.run(1)

    def track_kernels(self, name: str) -> int:
        return self.job.function.stats.kernels

    track_kernels.unit = "kernels"  # type: ignore[attr-defined]


class First:
    """The first steps until one has been replayed, with an empty cache: recording, building, compiling."""

    params = ("mlp-small", "transformer", "rnn")
    param_names = ("workload",)
    number = repeat = 1
    min_run_count = 3
    timeout = 300

    def timeraw_first_step(self, name: str) -> tuple[str, str]:
        found = f"import sys; sys.path.append({str(FOLDER)!r})"
        return "job.first()", f"{found}; from history.steps import job_of; job = job_of({name!r})"


def timeraw_import() -> str:
    """How long a new process needs to import tracejit, NumPy included."""
    return "import tracejit"
