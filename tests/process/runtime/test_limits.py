# SPDX-License-Identifier: BSD-3-Clause
"""Processes under limits, without a home, without standard streams: results are right, nothing hangs or crashes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")

START = """
import os, resource, sys, threading, warnings
import numpy as np
import tracejit as tj

def steps():
    @tj.dlaccelerate
    def step(x, w):
        y = np.tanh(x @ w)
        return (y**2).mean(), tj.dlgradient((y**2).mean(), w)

    x, w = np.linspace(-1, 1, 1 << 16).reshape(-1, 64), np.linspace(-1, 1, 64 * 8).reshape(64, 8)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(4):
            value, slope = step(x, w)
        expected = tj.dlfeval(step.function, x, w)
    np.testing.assert_allclose(value, expected[0], rtol=1e-10)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-9, atol=1e-12)
    return step, [warning.category.__name__ for warning in found]
"""
REPORT = """
step, found = steps()
print(step.stats.hits, *found)
"""


def run(code: str, cache: Path | None, timeout_s: float = 120, **environment: str) -> str:
    """Return what a process prints that raised and complained of nothing."""
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment}
    settings.pop("TRACEJIT_CACHE_DIR", None)
    if cache is not None:
        settings["TRACEJIT_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        env=settings, capture_output=True, text=True, check=False, timeout=timeout_s,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


LIMIT = """
def limit(mib):
    np.ones((256, 256)) @ np.ones((256, 256))  # OpenBLAS ends a process in which its buffers find no room
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (mib << 20),) * 2)
"""


CONVOLUTION = """
def convolution():
    @tj.dlaccelerate
    def layer(x, w):
        return tj.relu(tj.dlconv(x, w, padding="same", data_format="BCSS"))

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 16, 9, 9)), rng.standard_normal((16, 16, 3, 3))
    x, w = x.astype(np.float32), w.astype(np.float32)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(4):
            y = layer(x, w)
    np.testing.assert_allclose(y, tj.dlfeval(layer.function, x, w), rtol=0, atol=1e-4)
    print(layer.stats.hits, *[warning.category.__name__ for warning in found])
    return lambda: layer(x, w)
"""


@pytest.mark.parametrize(
    "limit", ["threading.stack_size(1 << 20)", "resource.setrlimit(resource.RLIMIT_STACK, (1 << 20,) * 2)"]
)
def test_stacks_without_room_for_the_scratch_memory_of_a_kernel(limit: str, tmp_path: Path) -> None:
    assert run(f"{CONVOLUTION}{limit}\nconvolution()", tmp_path / "cache") == "0 NotAcceleratedWarning"


def test_a_kernel_on_a_stack_without_room_ends_the_process(tmp_path: Path) -> None:
    """The kernel was compiled before. It writes nothing beyond the page that guards the stack."""
    code = (
        f"{CONVOLUTION}resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\ncall = convolution()\n"
        "threading.stack_size(1 << 18)\nthread = threading.Thread(target=call)\nthread.start()\nthread.join()"
    )
    with pytest.raises(AssertionError, match=str(-signal.SIGSEGV)):
        run(code, tmp_path / "cache")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the kernels of the step."""
    folder = tmp_path_factory.mktemp("filled") / "cache"
    assert run(REPORT, folder) == "2"
    return folder


@pytest.mark.parametrize("mib", [8, 250, 340, 400])
def test_little_address_space_is_left_before_the_first_kernel(mib: int, tmp_path: Path) -> None:
    """Some of these amounts let LLVM be loaded, and would end the process a little later."""
    assert run(f"{LIMIT}limit({mib})\n{REPORT}", tmp_path / "cache") in ("2", "0 NotAcceleratedWarning")


def test_little_address_space_is_left_after_the_first_kernel(tmp_path: Path) -> None:
    code = f"{LIMIT}tj.dlaccelerate(np.tanh, confirm=0)(np.ones(3))\nlimit(8)\n{REPORT}"
    assert run(code, tmp_path / "cache") == "0 NotAcceleratedWarning"


def test_little_address_space_for_an_exported_folder(tmp_path: Path) -> None:
    code = f"""
tj.export(tj.dlaccelerate(np.tanh), {str(tmp_path / "f.tj")!r}, args=(np.ones(3),))
limit(8)
try:
    tj.load({str(tmp_path / "f.tj")!r})
except tj.ExportError as error:
    print(error)
"""
    found = run(LIMIT + code, tmp_path / "cache")
    assert "load: nothing can be compiled or loaded: " in found and "address space" in found


def test_address_space_for_kernels_on_disk_is_enough(filled: Path) -> None:
    assert run(f"{LIMIT}limit(350)\n{REPORT}\nassert 'numba' not in sys.modules", filled) == "2"


def test_address_space_that_is_limited_but_enough(tmp_path: Path) -> None:
    assert run(f"{LIMIT}limit(2000)\n{REPORT}", tmp_path / "cache") == "2"


@pytest.mark.parametrize("threads", ["1", "3"])
def test_no_more_processes(threads: str) -> None:
    """The system counts threads as processes."""
    code = """
if os.geteuid() == 0:  # who has no such limit: somebody else, without capabilities, who may read the same files
    import ctypes
    os.setresuid(65534, 0, 0)
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    threading.Thread(target=int).start()
except RuntimeError:
    step, found = steps()
    assert step.stats.compiled, step.stats
    print(step.stats.hits, *found)
"""
    assert run(code, None, TRACEJIT_CACHE="off", TRACEJIT_THREADS=threads) == "2 TraceJitWarning"


@pytest.mark.parametrize("threads", ["1", "3"])
def test_one_cpu(threads: str, filled: Path) -> None:
    code = f"os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})\n{REPORT}"
    assert run(code, filled, TRACEJIT_THREADS=threads) == "2"


@pytest.mark.parametrize("home", ["/dev/null/home", "/proc", "read-only"])
def test_a_home_that_cannot_be_written(home: str, tmp_path: Path) -> None:
    if home == "read-only":
        home = str(tmp_path / "home")
        (tmp_path / "home").mkdir(mode=0o500)
        if os.geteuid() == 0:  # who may write to it: a file in the place of the folder
            (tmp_path / "home" / ".cache").write_text("")
    others = dict.fromkeys(("XDG_CACHE_HOME", "LOCALAPPDATA"), "")
    assert run(REPORT, None, HOME=home, **others) == "2 CacheWarning"


def test_no_home_at_all(tmp_path: Path) -> None:
    """The folder of the user in the system's list of users takes its place."""
    code = "import pwd\npwd.getpwuid = lambda number: {}[number]\n" if os.geteuid() == 0 else ""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")
    }
    environment |= {"TRACEJIT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code + START + REPORT],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams(closed: tuple[int, ...], filled: Path, tmp_path: Path) -> None:
    """Files that are opened later take the numbers of the streams; nothing is written into them by mistake."""
    answer = tmp_path / "answer"
    code = (
        START
        + f"step, found = steps()\nprint('lost')\nopen({str(answer)!r}, 'w').write(str(step.stats.hits))\n"
    )
    streams = " ".join(f"{number}>&-" for number in closed)
    for cache in (filled, tmp_path / "cache") if len(closed) > 1 else (filled,):
        answer.unlink(missing_ok=True)
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" -c "$1" {streams}', sys.executable, code],
            env={**os.environ, "TRACEJIT_CACHE_DIR": str(cache), "TRACEJIT_LOG": "info"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode, answer.read_text()) == (0, "2")
    entries = [path for path in cache.rglob("*") if path.is_file()]
    assert entries and all(b"lost" not in path.read_bytes() for path in entries)
