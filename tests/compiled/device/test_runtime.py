# SPDX-License-Identifier: BSD-3-Clause
"""The runtime of GPUs, through a stand-in for NVIDIA's driver that runs kernels by the emulator of PTX."""

import gc
import pickle
import time
import warnings
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, address, agree, foreign, run_case
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from on_device import program_of

import tracejit as tj
from tracejit.errors import BoundsError, CodegenError, DeviceError, DeviceMemoryError
from tracejit.runtime.cuda import graph
from tracejit.runtime.cuda.arrays import ArrayKind, DeviceArray, uploaded
from tracejit.runtime.cuda.driver import Driver, driver, replaced
from tracejit.runtime.cuda.executable import DeviceExecutable
from tracejit.runtime.cuda.steps import steps_of

F32 = np.float32
pytestmark = NEEDS_LLVM_22


def step(w: Any, b: Any, x: Any) -> tuple[Any, ...]:
    y = tj.tanh(x @ w + b)
    loss = (y * y).mean()
    gw, gb = tj.dlgradient(loss, w, b)
    return loss, w - 0.1 * gw, b - 0.1 * gb


def arrays_of_step() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(F32) for shape in ((3, 7), (7,), (5, 3))]


# Programs.


def test_a_program_is_a_graph() -> None:
    program, _ = program_of(lambda x: ((x * 2.0).sum(axis=1) + x[:, 0],), [np.ones((4, 70), F32)])
    (plan,), commits = steps_of(program)
    assert commits == () and isinstance(plan, graph.GraphPlan)
    assert [(node.kernel, node.grid) for node in plan.nodes] == [(r.kernel, r.grid) for r in program.rows]
    assert plan.dependencies == tuple([row.needs for row in program.rows])
    for node, row in zip(plan.nodes, program.rows, strict=True):
        assert len(node.words) == len(row.arguments)
        moving = {patch.slot: patch for patch in node.patches}
        for slot, argument in enumerate(row.arguments):
            if isinstance(argument, int):
                assert node.words[slot] == argument and slot not in moving
        assert {patch.kind for patch in node.patches} <= {"input", "output", "arena", "constant"}


def test_a_replay_is_one_launch_and_changes_only_moved_addresses(fake: FakeLibrary) -> None:
    arrays = arrays_of_step()
    program, want = program_of(step, arrays)
    executable = DeviceExecutable(program)
    inputs = [uploaded(driver(), array) for array in arrays]
    kept = [executable(inputs) for _ in range(2)]
    fake.calls.clear()
    outputs = executable(inputs)
    counts = Counter(fake.calls)
    assert counts["cuGraphLaunch"] == 1
    assert counts["cuMemAllocAsync"] == len(outputs)
    assert not {"cuStreamSynchronize", "cuModuleLoadDataEx", "cuGraphInstantiateWithFlags"} & counts.keys()
    writing = {
        number for number, row in enumerate(program.rows)
        if any(isinstance(a, graph.Pointer) and a.place.kind == "output" for a in row.arguments)
    }  # fmt: skip
    assert counts["cuGraphExecKernelNodeSetParams_v2"] <= len(writing)
    for found in (*kept, outputs):
        agree([array.host() for array in found], want)


def test_nothing_is_there_before_somebody_waits(fake: FakeLibrary) -> None:
    """The stand-in does the work of a stream when it is waited for, so that a missing wait would be seen."""
    x = tj.gpu(np.ones(3, F32))
    y = tj.exp(x)
    assert fake.waiting > 0
    assert y.tolist() == pytest.approx([np.e] * 3, rel=1e-6)
    assert not fake.waiting


def test_page_locked_memory_may_be_written_at_once(fake: FakeLibrary) -> None:
    """The driver reads it when the copy runs, and other memory of the host before it returns."""
    data = np.ones(3, F32)
    fake.pinned[data.ctypes.data] = data
    x = tj.gpu(data)
    scaled = tj.dlaccelerate(lambda x: x * 2, target="cuda")
    results = []
    for number in range(4):
        data[:] = number
        results.append(scaled(data))
    data[:] = 9
    assert x.tolist() == [1.0] * 3
    assert [result.tolist() for result in results] == [[2.0 * number] * 3 for number in range(4)]


def test_memory_that_the_device_reads_itself_may_be_written_at_once(fake: FakeLibrary) -> None:
    """No driver copies it to a place of its own before it returns, as drivers do for other devices."""
    fake.attributes[88] = 1
    with replaced(Driver(fake)):
        data = np.ones(3, F32)
        x, y = tj.gpu(data), tj.gpu(np.zeros((3, 2), F32)[:, 0])
        y._data.write(data)
        data[:] = 9
        assert x.tolist() == y.tolist() == [1.0] * 3


def test_memory_is_not_freed_while_the_process_ends(fake: FakeLibrary) -> None:
    """The names of modules are None by then, and the driver frees the memory of a process that ends."""
    from tracejit.runtime.cuda.arrays import DeviceMemory

    memory = DeviceMemory(driver(), 1000)  # of a size that is not kept for later
    driver().free(memory.address, memory.size, memory.belongs[0], _ends=lambda: True)
    assert "cuMemFreeAsync" not in fake.calls
    del memory
    assert "cuMemFreeAsync" in fake.calls


def test_memory_is_freed(fake: FakeLibrary) -> None:
    def run() -> None:
        function = tj.dlaccelerate(step)
        for _ in range(4):
            function(*tj.gpu(arrays_of_step()))

    run()
    gc.collect()
    assert fake.leaks == 0


# Accelerated functions.


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions(case: Case, fake: FakeLibrary) -> None:
    run_case(case)
    assert fake.launched


def test_the_same_function_runs_where_its_arrays_are(fake: FakeLibrary) -> None:
    function, arrays = tj.dlaccelerate(step), arrays_of_step()
    want = tj.dlfeval(step, *map(tj.dlarray, arrays))
    for _ in range(3):
        for here in (True, False):
            result = function(*(arrays if here else tj.gpu(tuple(arrays))))
            assert {array.device for array in result} == {"cpu" if here else "cuda:0"}
            agree([np.asarray(array) for array in result], want)
    assert function.hit_rate == pytest.approx(100 / 3)
    assert "3x7 float32 on cuda:0" in str(function.explain())


def test_the_target_takes_arrays_of_the_host(fake: FakeLibrary) -> None:
    function, arrays = tj.dlaccelerate(step, target="cuda"), arrays_of_step()
    want = tj.dlfeval(step, *map(tj.dlarray, arrays))
    for _ in range(4):
        result = function(*arrays)
        assert {array.device for array in result} == {"cuda:0"}
        agree([np.asarray(array) for array in result], want)
    assert function.hit_rate == 50.0


@pytest.mark.parametrize("target", ["auto", "cuda"])
def test_writes_reach_the_callers_arrays(target: str, fake: FakeLibrary) -> None:
    def count(x: Any, y: Any) -> Any:
        x += y
        x[0] = x[1] * 2
        return x.sum()

    function = tj.dlaccelerate(count, target=target)
    x: Any = np.arange(5, dtype=F32)
    want = x.copy()
    if target == "auto":
        x = tj.gpu(x)
    for number in range(5):
        y = np.full(5, number, F32)
        total = function(x, y if target == "cuda" else tj.gpu(y))
        assert total.item() == count(want, y)
        assert np.asarray(x).tolist() == want.tolist()
    assert function.hit_rate == 60.0


def test_vectors_are_read_where_they_are_written(fake: FakeLibrary) -> None:
    """By the pointer and the strides of what is written: of rows in registers, and of elements of two axes."""

    def halve(x: Any, y: Any) -> Any:
        x *= 0.5
        return (x * y).sum(axis=0)

    def scale(x: Any, y: Any) -> Any:
        x *= y[0]
        return y

    rng = np.random.default_rng(0)
    for program in (halve, scale):
        function, want = tj.dlaccelerate(program), rng.standard_normal((3, 32)).astype(F32)
        x, y = tj.gpu(want.copy()), rng.standard_normal((3, 32)).astype(F32)
        for _ in range(3):
            agree([np.asarray(function(x, tj.gpu(y))), np.asarray(x)], [program(want, y), want])


def test_an_array_whose_elements_lie_between_others_is_written(fake: FakeLibrary) -> None:
    """Such as a field of records: float32 that are 6 bytes apart, the first of them at an odd place."""
    memory = tj.gpu(np.arange(40, dtype=np.uint8))
    field: Any = {"data": (address(memory) + 3, False), "shape": (5,), "strides": (6,), "typestr": "<f4"}

    def count(x: Any) -> Any:
        x += 1.0
        return x.sum()

    function, want = tj.dlaccelerate(count), np.arange(40, dtype=np.uint8)
    shown = np.ndarray((5,), F32, want, 3, (6,))
    for _ in range(4):
        result = function(foreign(memory, **field))
        assert result.device == "cuda:0" and result.item() == count(shown)
        assert memory.tolist() == want.tolist()


def test_a_guard_is_read_once(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x)
    for sign in (1, 1, -1, -1, 1, -1, 1):
        x = tj.gpu(np.full(3, sign, F32))
        assert function(x).tolist() == ([2.0] * 3 if sign > 0 else [1.0] * 3)
    fake.calls.clear()
    function(tj.gpu(np.full(3, 1, F32)))
    assert Counter(fake.calls)["cuStreamSynchronize"] == 1


def test_an_index_out_of_range_is_found(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x, i: x[i])
    x = tj.gpu(np.arange(4, dtype=F32))
    for _ in range(3):
        assert function(x, tj.gpu(np.array([3, -1]))).tolist() == [3.0, 3.0]
    with pytest.raises(BoundsError, match="out of range in a replay"):
        function(x, tj.gpu(np.array([0, 4])))
    with pytest.raises(BoundsError, match="index 4 is out of range"):
        x[np.array([0, 4])]


def test_a_program_that_does_not_apply_writes_nothing(fake: FakeLibrary) -> None:
    def written(x: Any, i: Any) -> Any:
        x += x[i]
        return x.sum()

    function = tj.dlaccelerate(written)
    x = tj.gpu(np.arange(3, dtype=F32))
    index = tj.gpu(np.array([0, 1, 2]))
    for _ in range(3):
        function(x, index)
    before = x.tolist()
    with pytest.raises(BoundsError):
        function(x, tj.gpu(np.array([0, 1, 7])))
    assert x.tolist() == before


@pytest.mark.parametrize("is_there", [True, False])
def test_captured_arrays(is_there: bool, fake: FakeLibrary) -> None:
    data = np.arange(6, dtype=F32).reshape(3, 2)
    w = tj.gpu(data) if is_there else tj.dlarray(data)
    function = tj.dlaccelerate(lambda x: x @ w)
    for _ in range(4):
        result = function(tj.gpu(np.eye(3, dtype=F32)))
        assert result.device == "cuda:0" and result.tolist() == data.tolist()
    assert function.hit_rate == 50.0


def test_numbers_that_vary(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x, s: x * s)
    for number in range(8):
        assert function(tj.gpu(np.ones(2, F32)), 0.5 + number).tolist() == [0.5 + number] * 2
    assert function.hit_rate == 50.0


def test_check_mode(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(step, check_mode="tolerance")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            function(*tj.gpu(tuple(arrays_of_step())))


def test_what_the_device_has_no_program_for_runs_on_the_host(fake: FakeLibrary) -> None:
    def looped(x: Any) -> Any:
        return tj.dlscan(lambda total, row: (total + row, total), x[0] * 0, x)[0]

    function = tj.dlaccelerate(looped)
    x = np.arange(6, dtype=F32).reshape(3, 2)
    for _ in range(3):
        result = function(tj.gpu(x))
        assert result.device == "cuda:0" and result.tolist() == x.sum(axis=0).tolist()


def test_an_evaluation_around_a_call(fake: FakeLibrary) -> None:
    square = tj.dlaccelerate(lambda x: (x * x).sum())
    gradient = tj.dlfeval(lambda x: tj.dlgradient(square(x), x), tj.gpu(np.array([1.0, 2.0], F32)))
    assert gradient.device == "cuda:0" and gradient.tolist() == [2.0, 4.0]


def test_what_is_shown_of_a_function(fake: FakeLibrary, tmp_path: Any) -> None:
    function = tj.dlaccelerate(step)
    for _ in range(3):
        function(*tj.gpu(tuple(arrays_of_step())))
    source = function.source()
    assert "8 launches of 6 kernels on a GPU; arena" in source and "\ndef product_" in source
    assert "    # 6: matmul, 1 x 128 threads, after 5" in source and "# test_runtime.py:" in source
    assert function.stats.launches == 8
    with pytest.raises(
        tj.ExportError, match="is an array on cuda:0; call the function with arrays of the host"
    ):
        tj.export(function, tmp_path / "exported")


# Arrays.


def test_operations_stay_on_the_device(fake: FakeLibrary) -> None:
    data = np.arange(6, dtype=F32).reshape(2, 3)
    x = tj.gpu(tj.dlarray(data, "BC"))
    for array, want in [
        (x + 1, data + 1), (2 * x, 2 * data), (x.T, data.T), (x[1], data[1]), (x.mean(axis=0), data.mean(axis=0)),
        (tj.stripdims(x) @ tj.stripdims(x).T, data @ data.T), (tj.where(x > 2, x, 0), np.where(data > 2, data, 0)),
        (x.copy(), data),
        (tj.concatenate([x, x]), np.concatenate([data, data])), (x.astype(np.float64), data.astype(np.float64)),
    ]:  # fmt: skip
        assert array.device == "cuda:0" and array.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(array), want, rtol=1e-6)
    assert (x + 1).format == "BC" and tj.gather(x).format == "BC"
    assert tj.gather(x).device == "cpu" and tj.gpu(x)._data is x._data
    assert (
        float(x.sum()) == 15.0
        and bool((x >= 0).all())
        and "2(B) x 3(C)" in repr(x)
        and "[0. 1. 2.]" in repr(x)
    )
    restored = pickle.loads(pickle.dumps(x))
    assert restored.device == "cpu" and restored.tolist() == data.tolist()


def test_threads_that_make_a_kind_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program refuses arrays of another kind than its own, and equal kinds are one object."""

    class Kinds(weakref.WeakValueDictionary[Any, ArrayKind]):
        """As those of Python, where another thread comes in between."""

        def setdefault(self, key: Any, default: Any = None) -> Any:
            found = self.get(key)
            time.sleep(0.005)
            if found is None:
                self[key] = found = default
            return found

    monkeypatch.setattr("tracejit.runtime.cuda.arrays._kinds", Kinds())
    with ThreadPoolExecutor(4) as pool:
        kinds = [*pool.map(lambda _: ArrayKind.of((3, 12345), np.dtype(F32)), range(4))]
    assert len({*map(id, kinds)}) == 1


# Faults.


def test_a_call_without_memory_fails_cleanly(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(step)
    inputs = tj.gpu(tuple(arrays_of_step()))
    for _ in range(3):
        results = function(*inputs)
    want = [array.tolist() for array in results]
    del results
    gc.collect()
    before = len(fake.sizes)
    fake.faults["cuMemAllocAsync"] = 2
    with pytest.raises(DeviceMemoryError, match="not enough memory"):
        function(*inputs)
    assert tj.dlarray([1.0]).sum().item() == 1.0
    fake.faults.clear()
    gc.collect()
    assert len(fake.sizes) == before
    assert [array.tolist() for array in function(*inputs)] == want


@pytest.mark.parametrize("size", [512, 1000])
def test_memory_that_the_driver_does_not_take_back_is_kept(size: int, fake: FakeLibrary) -> None:
    """As while another library captures the default stream: the memory is not lost."""
    on = driver()
    address = on.allocate(size)
    for name in ("cuMemFreeAsync", "cuCtxSetCurrent"):
        fake.faults[name] = 906  # CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        on.free(address, size, on.lane)
        on.trim()
        fake.faults.clear()
        assert len(fake.sizes) == 1
        assert on.allocate(size) == address, "it is given out again"
    fake.faults["cuMemFreeAsync"] = 906
    on.free(address, size, on.lane)
    fake.faults.clear()
    on.trim()
    assert not fake.sizes, "it is given back when the driver takes it"


def test_what_a_failure_leaves_behind_is_freed(fake: FakeLibrary) -> None:
    on = driver()
    fake.faults["cuModuleGetFunction"] = 500
    with pytest.raises(DeviceError, match="cuModuleGetFunction"):
        on.load(b".target sm_80", "absent")
    fake.faults = {"cuEventRecord": 1}
    for work in (lambda: on.wait(7, on=8), lambda: on.time_ms(lambda: None)):
        with pytest.raises(DeviceError, match="cuEventRecord"):
            work()
    assert fake.leaks == 0


@pytest.mark.parametrize("is_of_host", [False, True])
@pytest.mark.parametrize("before", range(4))
def test_a_call_without_memory_for_its_result_writes_nothing(
    before: int, is_of_host: bool, fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it is recorded, on copies, nor in a replay on the device or on the host."""

    def refused(*_: Any, **__: Any) -> Any:
        raise CodegenError("there is none.")

    def count(x: Any) -> Any:
        x += 1
        return x.sum()

    if is_of_host:
        monkeypatch.setattr("tracejit.pipeline.device_stages", refused)
    function, x = tj.dlaccelerate(count), tj.gpu(np.arange(5, dtype=F32))
    for _ in range(before):
        function(x)
    want = x.tolist()
    fake.faults["cuMemAllocAsync"] = 2
    with pytest.raises(DeviceMemoryError):
        function(x)
    assert x.tolist() == want
    fake.faults.clear()
    assert function(x).item() == pytest.approx(sum(x.tolist()))


def test_arrays_larger_than_the_device(fake: FakeLibrary) -> None:
    fake.total = 4096
    with pytest.raises(DeviceMemoryError):
        tj.gpu(np.ones(5000))
    assert fake.leaks == 0


def test_what_outlives_the_names_of_the_module_is_freed(
    fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a process Python may forget the names of a module before the last objects."""
    x = tj.gpu(tj.dlarray(np.ones(5, F32)))
    for module in ("calls", "driver"):
        monkeypatch.setattr(f"tracejit.runtime.cuda.{module}.sys", None)
    raised = []
    monkeypatch.setattr("sys.unraisablehook", raised.append)
    del x
    assert raised == [] and fake.leaks == 0


def test_a_lost_device_is_said_so_from_then_on(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(step)
    inputs = tj.gpu(tuple(arrays_of_step()))
    for _ in range(3):
        function(*inputs)
    fake.faults["cuGraphLaunch"] = 719
    with pytest.raises(DeviceError, match=r"lost to this process \(cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED"):
        function(*inputs)
    fake.faults.clear()
    with pytest.raises(DeviceError, match="lost to this process since an earlier error"):
        function(*inputs)
    host = tj.dlaccelerate(step)
    assert host(*arrays_of_step())[0].device == "cpu"


def test_a_program_takes_arrays_as_it_was_built_for(fake: FakeLibrary) -> None:
    executable = DeviceExecutable(program_of(lambda x: (x + 1,), [np.ones(3, F32)])[0])
    with pytest.raises(CodegenError, match=r"input 0 of a program is float32 \(4,\)"):
        executable([uploaded(driver(), np.ones(4, F32))])


def test_a_device_array_says_what_it_is(fake: FakeLibrary) -> None:
    data: DeviceArray = uploaded(driver(), np.ones((2, 2), F32))
    assert repr(data) == "DeviceArray((2, 2), float32, cuda:0)"
    assert (data.nbytes, data.itemsize, len(data)) == (16, 4, 2)
    assert data[...].base is data and data[0].tolist() == [1.0, 1.0]
