# SPDX-License-Identifier: BSD-3-Clause
"""Compiled code on disk serves the next process, which neither compiles nor imports Numba."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from half import half, key_of_half, run_half

from tracejit import config
from tracejit.codegen.names import NAME, named
from tracejit.compile import key, numba_target, objects
from tracejit.compile.registry import KernelRegistry
from tracejit.describe import inventory
from tracejit.describe.program import describe
from tracejit.errors import CodegenError
from tracejit.ir import Graph
from tracejit.pipeline import stages
from tracejit.program import Row
from tracejit.store.kernels import KernelStore, store

NEEDLESS = (
    "numba", "scipy", "logging", "signal",
    "tracejit.cache", "tracejit.testing",
    *[f"tracejit.passes.graph.{name}" for name in ("complex_parts", "half_bits", "stacked_products")],
    *[f"tracejit.passes.loops.{name}" for name in ("bodies", "convolve", "inputs", "spread", "windows")],
    "tracejit.ops.convolution", "tracejit.ops.ufunc_loops", "tracejit.runtime.host", "tracejit.runtime.ufunc_loops",
    "tracejit.call.device_path", "tracejit.traces.device_arrays", "tracejit.traces.device_replay",
    "tracejit.traces.record_on_device", "tracejit.codegen.device", "tracejit.runtime.cuda",
)  # fmt: skip
"""Modules that a step of a small network needs none of when its kernels are on disk."""
STEP = """
import json, sys
import numpy as np
import tracejit as tj

rng = np.random.default_rng(0)
params = {
    "w1": tj.dlarray(rng.standard_normal((64, 128)).astype(np.float32)), "b1": tj.dlarray(np.zeros(128, np.float32)),
    "w2": tj.dlarray(rng.standard_normal((128, 10)).astype(np.float32)), "b2": tj.dlarray(np.zeros(10, np.float32)),
}
x, t = tj.dlarray(rng.standard_normal((128, 64)).astype(np.float32)), tj.dlarray(np.eye(10, dtype=np.float32)[:8])

zeros = {name: array * 0 for name, array in params.items()}

@tj.dlaccelerate
def step(params, x, t, velocity):
    hidden = tj.relu(x @ params["w1"] + params["b1"])
    z = (hidden @ params["w2"] + params["b2"])[:8]
    loss = -(t * (z - tj.log(tj.exp(z - z.max()).sum(axis=1, keepdims=True)))).sum()
    gradients = tj.dlgradient(loss, params)
    return loss, tj.sgdmupdate(params, gradients, velocity)

for _ in range(3):
    loss, (updated, velocity) = step(params, x, t, zeros)
from tracejit.compile.registry import registry
print(json.dumps({
    "hits": step.stats.hits, "compiled": registry.compiled, "loaded": registry.loaded,
    "imported": [name for name in sys.argv[1:] if name in sys.modules],
    "result": [repr(np.asarray(array).sum().item()) for array in (loss, updated["w1"], velocity["b2"])],
}))
"""


def run(code: str, folder: Path, **variables: str) -> Any:
    environment = os.environ | {"TRACEJIT_CACHE_DIR": str(folder), "TRACEJIT_THREADS": "2"} | variables
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *NEEDLESS],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_second_process_compiles_nothing_and_does_not_import_numba(tmp_path: Path) -> None:
    cold = run(STEP, tmp_path / "cache")
    assert cold["hits"] == 1
    assert (cold["compiled"] > 3, cold["loaded"]) == (True, 0)
    assert "numba" in cold["imported"]
    warm = run(STEP, tmp_path / "cache")
    assert warm["hits"] == 1
    assert (warm["compiled"], warm["loaded"]) == (0, cold["compiled"])
    assert warm["imported"] == []
    assert all(importlib.util.find_spec(name) for name in NEEDLESS)
    assert warm["result"] == cold["result"]  # the same code
    assert len(os.listdir(tmp_path / "cache" / "kernels")) == cold["compiled"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelStore:
    """A store of this test's own."""
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    found = store()
    assert found is not None
    return found


def counts(table: KernelRegistry) -> tuple[int, int]:
    return table.compiled, table.loaded


def test_a_kernel_is_compiled_once_for_all_processes(kept: KernelStore) -> None:
    first, second = KernelRegistry(), KernelRegistry()  # as in two processes
    assert run_half(first.address(half())) == 1.5
    assert run_half(first.address(half())) == 1.5
    assert counts(first) == (1, 0)
    assert first.compile_ns > 0
    assert run_half(second.address(half())) == 1.5
    assert counts(second) == (0, 1)
    assert second.compile_ns == 0
    assert len(first) == len(second) == 1
    entry = kept.load(key_of_half())
    assert entry is not None
    assert (entry.symbol, entry.source) == (half().name, half().text)
    assert dict(entry.key.parts)["numba"] == __import__("numba").__version__
    assert 0 < entry.compile_ns <= first.compile_ns


def test_a_different_text_is_a_different_kernel(kept: KernelStore) -> None:
    table = KernelRegistry()
    table.address(half())
    table.address(half("changed"))
    assert counts(table) == (2, 0)


@pytest.mark.parametrize(
    "part", ["tracejit", "numba", "llvmlite", "numpy", "python", "system", "cpu", "cpu features"]
)
def test_a_kernel_with_a_different_key_is_not_used(
    part: str, kept: KernelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    KernelRegistry().address(half())
    parts = key._environment()
    assert part in dict(parts)
    changed = tuple((name, "another" if name == part else value) for name, value in parts)
    monkeypatch.setattr(key, "_environment", lambda: changed)
    table = KernelRegistry()
    table.address(half())
    assert counts(table) == (1, 0)


def test_the_hash_of_our_sources_changes_with_any_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key._own_sources()
    read = Path.read_bytes
    for changed in ("scalar.py", "executor.py", "numba_target.py", "machine_words.py"):
        monkeypatch.setattr(
            Path, "read_bytes", lambda path, changed=changed: read(path) + b" " * (path.name == changed)
        )
        assert key._own_sources() != before
    monkeypatch.setattr(Path, "read_bytes", read)
    assert key._own_sources() == before


def test_the_version_of_numba_is_known_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.delitem(sys.modules, "numba")
    assert key._numba_version() == numba.__version__
    monkeypatch.setattr(key, "_VERSION", re.compile("said elsewhere (.*)"))
    assert key._numba_version() == numba.__version__


def test_code_that_needs_a_missing_symbol_is_compiled_again(kept: KernelStore) -> None:
    KernelRegistry().address(half())
    entry = kept.load(key_of_half())
    assert entry is not None
    kept.save(entry._replace(needs=("no_such_function",)))
    table = KernelRegistry()
    assert run_half(table.address(half())) == 1.5
    assert counts(table) == (1, 0)
    assert counts(KernelRegistry()) == (0, 0)


def test_bytes_that_are_not_object_code_are_compiled_again(kept: KernelStore) -> None:
    KernelRegistry().address(half())
    entry = kept.load(key_of_half())
    assert entry is not None
    for code in (b"", b"not object code, though it names " + half().name.encode()):
        kept.save(entry._replace(code=code))
        table = KernelRegistry()
        assert run_half(table.address(half())) == 1.5
        assert counts(table) == (1, 0)


def test_why_object_code_cannot_be_loaded() -> None:
    with pytest.raises(
        CodegenError, match=r"^object code of f cannot be loaded: there is no nowhere_1, nowhere_2$"
    ):
        objects.load("f", b"\x7fELF f", ["nowhere_1", "memset", "nowhere_2"])
    for code in (b"", b"f", b"\x7fELF g"):
        with pytest.raises(CodegenError, match=r"there is no function of that name in it$"):
            objects.load("f", code)


def test_several_kernels_are_compiled_by_two_threads(kept: KernelStore) -> None:
    table = KernelRegistry()
    kernels = [half(f"number {i}") for i in range(4)]
    interval = sys.getswitchinterval()
    table.prepare(kernels)
    assert sys.getswitchinterval() == interval
    assert counts(table) == (4, 0)
    assert [run_half(table.address(kernel)) for kernel in kernels] == [1.5] * 4
    assert len(kept.entries()) == 4


def test_errors_of_either_thread_reach_the_caller(kept: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = named(f"def {NAME}(args):\n    no_such_name(args)\n", "wrong")
    table = KernelRegistry()
    with pytest.raises(CodegenError, match=r"the emitted kernel wrong_[0-9a-f]+ could not be compiled"):
        table.prepare([half("before"), wrong, half("after")])
    assert len(table) == 0

    def fail(lowered: object) -> None:
        raise CodegenError("no memory")

    monkeypatch.setattr(numba_target.LlvmFunction, "object_code", fail)
    with pytest.raises(CodegenError, match="no memory"):
        table.prepare([half("one"), half("two")])
    monkeypatch.undo()
    assert run_half(table.address(half("one"))) == 1.5


def test_without_a_cache_kernels_are_compiled_in_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config.settings, "cache", "off")
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    for _ in range(2):
        table = KernelRegistry()
        assert run_half(table.address(half())) == 1.5
        assert counts(table) == (1, 0)
    assert not (tmp_path / "cache").exists()


def test_without_source_files_nothing_is_kept(kept: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path) -> bytes:
        raise FileNotFoundError(path)

    key._environment.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", missing)
        assert key.key_of("kernel", "text") is None
        table = KernelRegistry()
        assert run_half(table.address(half())) == 1.5
        assert counts(table) == (1, 0)
        made = stages(Graph())
        program = made.program._replace(rows=[Row(half(), (1,), "mul", ())])
        found = inventory.described(program, describe(made), "f")
        assert found["kernels"] == [{"name": half().name, "entry": "", "lines": []}]
    assert kept.entries() == []


def test_blas_without_the_rest_of_scipy_linalg(tmp_path: Path) -> None:
    code = (
        "import json, sys; from tracejit.runtime import table; address = table._symbol_address('dgemm'); "
        "light = 'scipy.linalg' not in sys.modules; import scipy.linalg.cython_blas as full; "
        "import scipy.linalg.blas; table._symbol_address.cache_clear(); "
        "print(json.dumps([light, address == table._symbol_address('dgemm'), address > 0]))"
    )
    assert run(code, tmp_path / "cache") == [True, True, True]
