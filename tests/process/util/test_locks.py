# SPDX-License-Identifier: BSD-3-Clause
"""Processes that fork while other threads compile and load: no child hangs, each computes or raises our error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from effort import sweep

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

START = """
import gc, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")  # Python's own, of forks in processes with threads
import numpy as np
import tracejit as tj
from tracejit.util import locks

def new(n):
    # Kernels differ by the functions in them.
    chosen = [(np.sin, np.cos, np.arctan, np.tanh)[n // 4**k % 4] for k in range(6)]

    def f(x):
        y = x * 1.0
        for function in chosen:
            y = function(y)
        return (y * x).sum(), y

    return tj.dlaccelerate(f, confirm=0)

def is_right(f, x):
    expected = tj.dlfeval(f.function, x)
    return all(np.allclose(a, b, rtol=1e-9) for _ in range(3) for a, b in zip(f(x), expected))

def status_of(work):
    child = os.fork()
    if child == 0:
        signal.alarm(200)  # ends a child that hangs
        status = 9
        try:
            right = work() and gc.isenabled() and sys.getswitchinterval() == 0.005
            status = 0 if right else 8
        except tj.CodegenError as error:
            status = 5 if "nothing can be compiled or loaded in this process" in str(error) else 7
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

STRESS = """
forks = int(sys.argv[1])
x = np.linspace(0, 1, 5)
known = new(0)
assert is_right(known, x)
folder = os.path.join(os.environ["TRACEJIT_CACHE_DIR"], "exported.tj")
tj.export(known, folder, args=(x,))
expected = known(x)
ended = threading.Event()
failures, done = [], {"compiled": 0, "loaded": 0}

def compiles(n):
    while not ended.is_set() and not failures:
        n += 1
        f = new(n)
        if not is_right(f, np.linspace(0, 1, 4 + n % 3)):
            failures.append(n)
        done["compiled"] += f.stats.compiled

def loads():
    return all(np.allclose(a, b, rtol=1e-9) for a, b in zip(tj.load(folder)(x), expected))

def loads_again():
    while not ended.is_set() and not failures:
        if not loads():
            failures.append("load")
        done["loaded"] += 1

threads = [
    threading.Thread(target=compiles, args=(1000,), daemon=True),
    threading.Thread(target=compiles, args=(2000,), daemon=True),
    threading.Thread(target=loads_again, daemon=True),
]
for thread in threads:
    thread.start()
while not (done["compiled"] and done["loaded"]) and not failures:
    time.sleep(0.01)
work = lambda n: is_right(known, x) and loads() and is_right(new(n), x)
statuses = [status_of(lambda: work(n)) for n in range(500, 500 + forks)]
ended.set()
for thread in threads:
    thread.join()
found = {status: statuses.count(status) for status in statuses}
assert set(found) <= {0, 5} and found.get(0, 0) >= forks // 2 and not failures, (found, failures)
if "-v" in sys.argv:
    print(found, done)
"""

HELD = """
locks.WAIT_S = 0.05
x = np.linspace(0, 1, 5)
known = new(0)
assert is_right(known, x)
held, ended = threading.Event(), threading.Event()

def hold():
    with locks.compiling:
        held.set()
        ended.wait()

thread = threading.Thread(target=hold, daemon=True)
thread.start()
held.wait()
assert status_of(lambda: is_right(known, x)) == 0  # needs no compiler
assert status_of(lambda: is_right(new(4), x)) == 5
ended.set()
thread.join()
assert status_of(lambda: is_right(new(4), x)) == 0
"""

RECORDING = """
# While another thread exchanges functions of NumPy for a recording, and while it records.
from tracejit.record import patches, subscripts

zeros, getitem = np.zeros, np.ndarray.__getitem__

def is_as_ever():
    return np.zeros is zeros and np.ndarray.__getitem__ is getitem and is_right(known, x) and is_right(new(4), x)

def slow(x):
    held.set()
    ended.wait()
    return x

def exchanging():
    with patches._lock, subscripts._METHODS._lock:
        held.set()
        ended.wait()

x = np.linspace(0, 1, 5)
known = new(0)
assert is_right(known, x)
for work in (exchanging, lambda: tj.dlaccelerate(slow)(x), lambda: tj.dlfeval(slow, x)):
    held, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    held.wait()
    assert status_of(is_as_ever) == 0
    ended.set()
    thread.join()
    assert is_as_ever()
"""

IMPORTING = """
# While another thread imports Numba for itself, and is in the middle.
import types
half = types.ModuleType("numba.half")
half.__spec__ = types.SimpleNamespace(_initializing=True)
sys.modules["numba.half"] = half
assert status_of(lambda: is_right(new(4), np.ones(3))) == 5
del sys.modules["numba.half"]
assert status_of(lambda: is_right(new(4), np.ones(3))) == 0
"""

FIRST_IMPORT = """
# While another thread imports Numba for the first time, and with it modules that register hooks of forks.
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numba" and locks.compiling._is_owned():
            begun.set()
            time.sleep(0.3)

begun = threading.Event()
sys.meta_path.insert(0, Finder())
assert not {"numba", "logging"} & set(sys.modules)
thread = threading.Thread(target=lambda: is_right(new(4), np.ones(3)))
thread.start()
begun.wait()
assert status_of(lambda: is_right(new(5), np.ones(3))) == 0
thread.join()
"""

NESTED = """
# A signal handler that forks while a fork waits for another thread: all locks are given back.
def ring(*_):
    assert status_of(lambda: True) == 0

def hold():
    with locks.compiling:
        held.set()
        time.sleep(0.5)

signal.signal(signal.SIGUSR1, ring)
held = threading.Event()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
assert status_of(lambda: True) == 0
thread.join()
free = []
thread = threading.Thread(target=lambda: free.append(locks.compiling.acquire(timeout=5)))
thread.start()
thread.join()
assert free == [True]
"""

HANDLER = """
# A signal handler that forks while the main thread waits for its compilation.
children = []

def ring(*_):
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        return
    children.append(child)

signal.signal(signal.SIGUSR1, ring)
main = os.getpid()
slow = new(4)
timer = threading.Timer(0.1, os.kill, (main, signal.SIGUSR1))
timer.start()
status = 0
try:
    assert is_right(slow, np.ones(7))
    time.sleep(0.3)
except tj.CodegenError as error:
    status = 6 if "a signal handler forked this process while it was compiling" in str(error) else 7
if os.getpid() != main:
    os._exit(status)
assert status == 0
assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) in (0, 6)
"""


def run(code: str, folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "TRACEJIT_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", START + code, *arguments], env=environment, capture_output=True, text=True,
        check=False, timeout=300 + sweep(0, 500),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_forks_while_three_threads_compile_and_load(tmp_path):
    run(STRESS, tmp_path, str(sweep(6, 200)))


def test_a_fork_does_not_wait_for_ever(tmp_path):
    run(HELD, tmp_path)


def test_a_fork_while_another_thread_records(tmp_path):
    run(RECORDING, tmp_path)


def test_a_compiler_that_is_half_imported(tmp_path):
    run(IMPORTING, tmp_path)


def test_a_fork_during_the_first_import_of_the_compiler(tmp_path):
    run(FIRST_IMPORT, tmp_path)


def test_a_signal_handler_that_forks_during_a_fork(tmp_path):
    run(NESTED, tmp_path)


def test_a_signal_handler_that_forks(tmp_path):
    run(HANDLER, tmp_path)
