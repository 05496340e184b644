# SPDX-License-Identifier: BSD-3-Clause
"""Many processes build, load and evict entries of one small folder, and are killed at any moment."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracejit.store.entry import decode
from tracejit.store.kernels import SUFFIX, KernelStore

KERNELS = 20
LIMIT_BYTES = 20_000  # some six of them

WORKER = """
import ctypes, random, sys
import numpy as np
from tracejit.compile import registry
from tracejit.store.kernels import KernelStore
from tracejit.codegen.names import NAME, named

kept = KernelStore(sys.argv[1], int(sys.argv[2]))
registry.store = lambda: kept
kernels = [
    named(f"def {NAME}(args):\\n    x = read_f64(args[0])\\n    x[0] = x[0] * f64({i}) + f64(0.5)\\n", f"scale_{i}")
    for i in range(int(sys.argv[3]))
]
rng = random.Random(int(sys.argv[4]))
table = registry.KernelRegistry()
for i in rng.choices(range(len(kernels)), k=8):
    x = np.array([3.0])
    arguments = np.array([x.ctypes.data], np.intp)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(table.address(kernels[i]))(arguments.ctypes.data)
    if x[0] != 3.0 * i + 0.5:
        sys.exit(f"kernel {i} gave {x[0]}")
print(table.compiled, table.loaded)
"""


class Crowd:
    """Processes that use one folder, started again as they end."""

    def __init__(self, folder: Path, size: int, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.size = size
        self.running: list[subprocess.Popen[str]] = []
        self.killed = self.compiled = self.loaded = 0
        self.ended: list[tuple[int, str]] = []
        self.damaged: set[str] = set()

    def fill_up(self) -> None:
        while len(self.running) < self.size:
            arguments = (str(self.folder), str(LIMIT_BYTES), str(KERNELS), str(self.rng.randrange(10**9)))
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-W", "error", "-c", WORKER, *arguments],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip

    def gather(self) -> None:
        """Take note of what has ended."""
        for process in [process for process in self.running if process.poll() is not None]:
            self.running.remove(process)
            out, error = process.communicate()
            if process.returncode == -signal.SIGKILL:
                self.killed += 1
                continue
            self.ended.append((process.returncode, error))
            if process.returncode == 0:
                compiled, loaded = map(int, out.split())
                self.compiled += compiled
                self.loaded += loaded

    def run(self, rounds: int, disturb: bool) -> None:
        for _ in range(rounds):
            self.fill_up()
            time.sleep(self.rng.uniform(0.01, 0.3))
            if self.rng.random() < 0.15:
                os.kill(self.rng.choice(self.running).pid, signal.SIGKILL)
            if disturb:
                self.disturb()
            self.gather()
        while self.running:
            time.sleep(0.01)
            self.gather()

    def disturb(self) -> None:
        """Do what happens to folders: remove it, put clocks wrong, damage a file."""
        what = self.rng.random()
        files = list((self.folder / "kernels").glob("*" + SUFFIX))
        if what < 0.02:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif files and what < 0.1:
            changed = self.rng.choice(files)
            try:
                os.utime(changed, (self.rng.uniform(0, 4e9),) * 2)
                if what < 0.06:
                    self.damaged.add(changed.name)
                    os.truncate(changed, self.rng.randrange(3000))
            except FileNotFoundError:
                pass


def test_many_processes_on_one_folder(tmp_path: Path) -> None:
    # TRACEJIT_STRESS=400 starts and kills processes in 400 rounds, more of them at once, and disturbs the folder.
    rounds = int(os.environ.get("TRACEJIT_STRESS", "0"))
    folder = tmp_path / "cache"
    crowd = Crowd(folder, 8 if rounds else 3, seed=1)
    crowd.run(rounds or 15, disturb=bool(rounds))
    assert [end for end in crowd.ended if end[0] != 0] == []
    kept = KernelStore(str(folder), LIMIT_BYTES)
    for file in kept.entries():
        if file.name not in crowd.damaged:
            decode((folder / "kernels" / file.name).read_bytes(), file.name.removesuffix(SUFFIX))
    assert crowd.compiled > 0
    assert len(kept.entries()) <= 8
    print(
        f"ended {len(crowd.ended)}, killed {crowd.killed}, compiled {crowd.compiled}, loaded {crowd.loaded}"
    )
