# SPDX-License-Identifier: BSD-3-Clause
"""Object code for other systems, written here: its symbols and relocations are what LLVM's loader there resolves."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import other_systems
import pytest
from object_files import relocations
from other_systems import SYSTEMS, System

from tracejit.compile.machine_words import FUNCTIONS
from tracejit.compile.symbols import SymbolTable, symbols
from tracejit.errors import CodegenError

IN_C = {"fmod", "fmodf", "sin", "sinf", "trunc", "memset", "memcpy", "bzero", "__bzero", "memset_pattern16"}
OF_WINDOWS = {"__chkstk"}
THREADS_OF_POSIX = {
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_broadcast", "sched_yield",
    "clock_gettime",
}  # fmt: skip
THREADS_OF_WINDOWS = {
    "AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "SleepConditionVariableSRW", "WakeAllConditionVariable",
    "SwitchToThread", "QueryPerformanceCounter", "QueryPerformanceFrequency",
}  # fmt: skip


class ObjectCode(NamedTuple):
    """The object code of a kernel or a function: its symbol, what the compiler knows it to need, and its content."""

    symbol: str
    needs: set[str]
    code: bytes

    def table(self, system: System) -> SymbolTable:
        return symbols(self.code, system.platform, system.machine)


@pytest.fixture(scope="module", params=SYSTEMS, ids=lambda system: system.triple)
def written(request, tmp_path_factory) -> tuple[System, dict[str, ObjectCode]]:
    system, folder = request.param, tmp_path_factory.mktemp("code")
    command = [sys.executable, other_systems.__file__, str(folder), system.triple]
    subprocess.run(command, check=True, timeout=120)
    needs = json.loads(Path(folder, system.triple, "needs.json").read_text())
    return system, {
        name: ObjectCode(symbol, set(needed), Path(folder, system.triple, f"{name}.o").read_bytes())
        for name, (symbol, needed) in needs.items()
    }


def test_kernels(written):
    system, found = written
    needed = set()
    for name in found.keys() - FUNCTIONS.keys():
        table = found[name].table(system)
        assert found[name].symbol in table.functions
        assert found[name].needs <= table.missing
        needed |= table.missing
    assert "fmodf" in needed
    assert ("__chkstk" in needed) == (system.platform == "win32")
    assert needed <= IN_C | OF_WINDOWS


def test_functions_of_the_executor(written):
    system, found = written
    needed = set()
    for name in FUNCTIONS:
        table = found[name].table(system)
        assert table == (frozenset({found[name].symbol}), found[name].needs)
        needed |= table.missing
    assert needed == (THREADS_OF_WINDOWS if system.platform == "win32" else THREADS_OF_POSIX)


def test_relocations(written):
    system, found = written
    kinds = set().union(*(relocations(code.code) for code in found.values()))
    assert kinds
    assert kinds <= system.relocations


def test_other_systems_refuse_it(written):
    system, found = written
    for other in SYSTEMS:
        if other != system:
            with pytest.raises(CodegenError, match="not an object file that can be loaded here"):
                found["run"].table(other)
