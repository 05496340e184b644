# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by cuBLASLt, through stand-ins for the driver and for the library."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, agree, run_case
from device_products import drawn
from fake_cublas import FakeCublas, fake_cublas
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from on_device import program_of
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.config import settings
from tracejit.errors import DeviceError
from tracejit.program import Program
from tracejit.runtime.cuda import cublas_products
from tracejit.runtime.cuda.arrays import uploaded
from tracejit.runtime.cuda.driver import driver
from tracejit.runtime.cuda.executable import DeviceExecutable
from tracejit.runtime.cuda.graph import GraphPlan
from tracejit.runtime.cuda.steps import nodes_of, steps_of

F32 = np.float32
pytestmark = NEEDS_LLVM_22


@pytest.fixture(name="library")
def fixture_library(fake: FakeLibrary) -> Iterator[FakeCublas]:
    with fake_cublas(fake) as library:
        yield library


def products_of(program: Program) -> list[Any]:
    return [row.product for row in program.rows if row.product is not None]


def run(function: Callable[..., tuple[Any, ...]], arrays: list[np.ndarray]) -> Program:
    """Run a program on the device, and compare its results."""
    program, want = program_of(function, arrays)
    executable = DeviceExecutable(program)
    inputs = [uploaded(driver(), array) for array in arrays]
    for _ in range(3):
        agree([array.host() for array in executable(inputs)], want)
    return program


@pytest.mark.parametrize("seed", range(60))
def test_generated_products(seed: int, library: FakeCublas) -> None:
    function, arrays = drawn(seed)
    program = run(function, arrays)
    computed = products_of(program)
    assert bool(library.asked) == bool(computed)
    assert all(sum(ask.transposes) == product.x.transposed + product.y.transposed
               for ask, product in zip(library.asked, computed, strict=False))  # fmt: skip


def test_generated_products_are_of_every_kind() -> None:
    """The cases above have transposes of both sides, batches, shared factors and sums; all are for the library."""
    kinds: Counter[str] = Counter()
    for seed in range(60):
        found = products_of(program_of(*drawn(seed))[0])
        kinds["none"] += not found
        for product in found:
            kinds[f"{int(product.x.transposed)}{int(product.y.transposed)}"] += 1
            kinds["batch"] += product.batch > 1
            kinds["shared"] += product.batch > 1 and 0 in (product.x.batch, product.y.batch)
            kinds["adds"] += product.adds
            kinds[product.dtype] += 1
    assert not kinds.pop("none")
    wanted = {"00", "01", "10", "11", "batch", "shared", "adds", "float32", "float64"}
    assert wanted == {kind for kind, count in kinds.items() if count}, kinds


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions(case: Case, library: FakeCublas) -> None:
    run_case(case)


def test_all_of_a_step_is_one_graph_and_one_launch(fake: FakeLibrary, library: FakeCublas) -> None:
    def step(w: Any, v: Any, x: Any) -> tuple[Any, ...]:
        loss = (tj.tanh(tj.tanh(x @ w) @ v) ** 2).mean()
        return loss, *tj.dlgradient(loss, w, v)

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in ((3, 7), (7, 5), (4, 3))]
    program, want = program_of(step, arrays)
    executable = DeviceExecutable(program)
    inputs = [uploaded(driver(), array) for array in arrays]
    executable(inputs)
    assert executable.prepared.compiled and not any(
        "product" in name for name in executable.prepared.compiled
    )
    library.calls.clear()
    fake.launched.clear()
    fake.calls.clear()
    agree([array.host() for array in executable(inputs)], want)
    assert Counter(fake.calls)["cuGraphLaunch"] == 1
    assert fake.launched.count("cublasLtMatmul") == len(products_of(program)) == 5
    assert "cublasLtMatmulAlgoGetHeuristic" not in library.calls  # that is asked for once


def plan_of(program: Program) -> GraphPlan:
    (plan,), _ = steps_of(program)
    assert isinstance(plan, GraphPlan)
    return plan


def test_products_that_share_a_workspace_follow_each_other() -> None:
    arrays = [np.ones((4, 4), F32)] * 2
    program, _ = program_of(lambda x, y: (x @ y, y @ x, tj.exp(x)), arrays)
    plan = plan_of(program)
    numbers = [number for number, node in enumerate(plan.nodes) if node.product is not None]
    first, second = numbers
    assert first in plan.dependencies[second]
    assert first not in program.rows[second].needs  # otherwise they would run at the same time
    without = program._replace(rows=[row._replace(product=None) for row in program.rows])
    assert plan_of(without).dependencies == tuple([row.needs for row in program.rows])


def test_the_workspace_lies_behind_the_arena(fake: FakeLibrary, library: FakeCublas) -> None:
    x = np.ones((4, 4), F32)
    program = run(lambda x: (tj.tanh(x @ x) @ x,), [x])
    assert program.arena_bytes
    (workspace,) = {ask.workspace for ask in library.asked}
    inside = [ask.addresses for ask in library.asked]
    for address in {address for addresses in inside for address in addresses}:
        assert not address - 64 < workspace[0] < address + 64
    assert workspace[1] == library.workspace_bytes


def test_small_products_stay_with_own_kernels(fake: FakeLibrary) -> None:
    with fake_cublas(fake, 4 * 5 * 6) as library:
        rng = np.random.default_rng(0)
        x, y, z = (rng.standard_normal(shape).astype(F32) for shape in ((4, 5), (5, 6), (5, 5)))
        run(lambda x, y, z: (x @ y, x @ z), [x, y, z])
        assert {ask.layouts[2][:2] for ask in library.asked} == {(6, 4)}
        assert any("product" in name for name in fake.launched)


def test_off_by_default(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(newest: int) -> Any:
        raise AssertionError("the library is looked for")

    monkeypatch.setattr("tracejit.runtime.cuda.cublas.load", refuse)
    assert settings.cublas_from is None
    run(lambda x: (x @ x,), [np.ones((4, 4), F32)])


def test_the_source_says_who_computes(library: FakeCublas, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = program_of(lambda x: (tj.exp(x @ x),), [np.ones((9, 9), F32)])
    assert program.threads == ["cuBLASLt", "1 x 128 threads, after 1"]
    monkeypatch.setattr(settings, "cublas_from", None)
    assert program.threads[0].endswith("threads")


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x[:, ::2] @ y[::2],),
        lambda x, y: (x[:, ::-1] @ y,),
        lambda x, y: (np.broadcast_to(x[0], x.shape) @ y,),
    ],
    ids=["steps", "backwards", "one row again and again"],
)
def test_factors_that_blas_cannot_read(function: Any, library: FakeCublas) -> None:
    rng = np.random.default_rng(0)
    program = run(function, [rng.standard_normal((6, 6)).astype(F32) for _ in range(2)])
    assert not products_of(program) and not library.asked
    assert program.threads[0].endswith("threads")


def test_products_in_loops_stay_with_own_kernels(library: FakeCublas) -> None:
    def function(w: Any, h: Any, xs: Any) -> Any:
        return tj.dlscan(lambda h, x: (tj.tanh(h @ w + x),) * 2, h, xs)

    run_case(Case("scan", function, ((8, 8), (4, 8), (3, 4, 8))))
    assert not library.asked


def test_addresses_that_change(fake: FakeLibrary, library: FakeCublas) -> None:
    """A product at another address is another graph; a function at another address is an update."""
    x = np.arange(16, dtype=F32).reshape(4, 4)
    program, _ = program_of(lambda x: (x @ x + 1,), [x])
    executable = DeviceExecutable(program)
    kept = []
    for number in range(12):
        array = uploaded(driver(), x + number)
        kept.append((array, executable([array])))
    for number, (_, (found,)) in enumerate(kept):
        np.testing.assert_array_equal(found.host(), (x + number) @ (x + number) + 1)


def test_alignments_are_those_of_every_call(library: FakeCublas) -> None:
    x = np.ones((8, 8), F32)
    run(lambda x, y: (x[1:, 1:] @ y,), [x, np.ones((7, 3), F32)])
    (asked, *_) = library.asked
    assert asked.alignments == (32, 4, 256)  # of A, which is y, of B, and of D


def test_everything_is_freed(fake: FakeLibrary, library: FakeCublas) -> None:
    x = tj.gpu(np.ones((4, 4), F32))
    function = tj.dlaccelerate(lambda x: tj.tanh(x @ x) @ x)
    for _ in range(5):
        function(x)
    assert library.asked and library.left
    del function, x
    gc.collect()
    fake.finish(0)
    assert not library.left
    assert not fake.leaks


@pytest.mark.parametrize("status", [1, 3, 8, 13, 14, 15])
def test_a_product_that_fails_ends_its_capture(status: int, fake: FakeLibrary, library: FakeCublas) -> None:
    program, want = program_of(lambda x: (x @ x,), [np.ones((4, 4), F32)])
    executable = DeviceExecutable(program)
    inputs = [uploaded(driver(), np.ones((4, 4), F32))]
    library.faults["cublasLtMatmul"] = status
    with pytest.raises(DeviceError, match=r"for a product \(4 x 4\) @ \(4 x 4\) of float32 \(cublasLtMatmul"):
        executable(inputs)
    assert Counter(fake.calls)["cuStreamEndCapture"] == Counter(fake.calls)["cuStreamBeginCapture_v2"] == 1
    library.faults.clear()
    agree([array.host() for array in executable(inputs)], want)


@pytest.mark.parametrize(
    "name", ["cuStreamCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphAddChildGraphNode"]
)
def test_a_capture_that_fails(name: str, fake: FakeLibrary, library: FakeCublas) -> None:
    program, want = program_of(lambda x: (x @ x,), [np.ones((4, 4), F32)])
    executable = DeviceExecutable(program)
    inputs = [uploaded(driver(), np.ones((4, 4), F32))]
    before = fake.leaks
    fake.faults[name] = 1
    with pytest.raises(DeviceError, match=rf"the NVIDIA driver failed \({name}: CUDA_ERROR_INVALID_VALUE"):
        executable(inputs)
    fake.faults.clear()
    gc.collect()
    assert fake.leaks == before
    agree([array.host() for array in executable(inputs)], want)


PLANTED = {
    "sides": lambda call: call._replace(layouts=(call.layouts[1], call.layouts[0], call.layouts[2])),
    "transposes": lambda call: call._replace(transposes=call.transposes[::-1]),
    "leading": lambda call: call._replace(
        layouts=(call.layouts[0]._replace(leading=call.layouts[0].leading + 1), *call.layouts[1:])
    ),
    "adds": lambda call: call._replace(adds=not call.adds),
    "alignments": lambda call: call._replace(alignments=(1 << 20,) * 3),
    "batches": lambda call: call._replace(
        layouts=tuple([layout._replace(apart=layout.apart + 1) for layout in call.layouts])
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_seen(name: str, library: FakeCublas, monkeypatch: pytest.MonkeyPatch) -> None:
    right = cublas_products.call_of
    monkeypatch.setattr(cublas_products, "call_of", lambda *args: PLANTED[name](right(*args)))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in ((2, 6, 5), (2, 6, 3))]
    with pytest.raises((AssertionError, DeviceError, PtxError)):
        run(lambda x, y: (x.swapaxes(-1, -2) @ y,), arrays)


def test_workspaces_that_run_side_by_side_are_seen(library: FakeCublas) -> None:
    """The stand-in writes into a workspace, so an array that lies there is wrong."""
    x = np.ones((4, 4), F32)
    program, want = program_of(lambda x: (tj.tanh(x @ x) @ x,), [x])
    executable = DeviceExecutable(program)
    (graph,) = executable._steps
    for number, part in enumerate(graph._parameters):
        if part.routine is not None:
            graph._parameters[number] = part._replace(workspace=executable._arena.address)
    with pytest.raises(AssertionError):
        agree([array.host() for array in executable([uploaded(driver(), x)])], want)


def test_nodes_have_products_as_data() -> None:
    program, _ = program_of(lambda x, y: (x @ y.T,), [np.ones((3, 4), F32), np.ones((5, 4), F32)])
    steps, _ = steps_of(program)
    (node,) = nodes_of(steps)
    product = node.product
    assert product is not None
    call = cublas_products.call_of(product, (4, 8, 16))
    assert call.transposes == (True, False) and call.alignments == (8, 4, 16) and not call.adds
    assert call.layouts == ((4, 5, 4, 1, 0), (4, 3, 4, 1, 0), (5, 3, 5, 1, 15))
