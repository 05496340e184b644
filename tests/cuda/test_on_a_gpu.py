# SPDX-License-Identifier: BSD-3-Clause
"""The runtime on a GPU; skipped, with the reason, where there is none.

docs/cuda.md says how to run all of it on a machine with a GPU. The same cases run through a stand-in for the driver in
tests/compiled/device.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, agree, check_class, run_case
from device_ops import OTHER_DTYPES, check_op
from op_cases import ON_DEVICES

import tracejit as tj
from tracejit.errors import BoundsError, DeviceMemoryError
from tracejit.ops import Op
from tracejit.ops.op import Sample
from tracejit.runtime.cuda.driver import driver, stream


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", *OTHER_DTYPES])
@pytest.mark.parametrize(
    ("op", "sample"), [pytest.param(*case, id=f"{case[0].name}-{i}") for i, case in enumerate(ON_DEVICES)]
)
def test_ops(op: Op, sample: Sample, dtype: str) -> None:
    check_op(op, sample, dtype)


@pytest.mark.parametrize("dtype", [None, "float16"], ids=["own", "float16"])
@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions(case: Case, dtype: str | None) -> None:
    run_case(case if dtype is None else case._replace(dtype=dtype), calls=6)


@pytest.mark.parametrize("shape", [(1,), (31,), (1 << 20,), (1000, 1003), (3, 100_000)])
def test_sizes_of_every_kind(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return tj.tanh(x) * x, x.sum(axis=-1), tj.softmax(x, axis=-1)

    run_case(Case("sizes", function, (shape,)))


@pytest.mark.parametrize("shape", [(70_000, 64), (9000, 1000), (5000, 1030), (300, 3000), (8, 100_001)])
def test_gradients_of_large_arrays(shape: tuple[int, ...]) -> None:
    """Groups take several rows each, and copies of sums are many."""

    def function(x: Any, scale: Any) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        y = scale * centred / tj.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
        loss = (tj.softmax(y, axis=1) * y).mean()
        return loss, *tj.dlgradient(loss, x, scale)

    run_case(Case("large", function, (shape, shape[1:])))


@pytest.mark.parametrize("sizes", [(2100, 700, 2100), (1000, 1000, 1000), (130, 3000, 70), (1, 5000, 3)])
def test_large_products(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes

    def function(x: Any, y: Any) -> Any:
        return x @ y / k, (x.T @ (x @ y)) / (m * k)

    run_case(Case("products", function, ((m, k), (k, n))))


def test_many_replays_in_a_row() -> None:
    """Nothing waits between them, so outputs and the arena are used again while the device works."""
    step = tj.dlaccelerate(lambda x, y: (tj.tanh(x @ y) + x, (x * y).sum(axis=0)))
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((96, 96)).astype(np.float32) / 10 for _ in range(2))
    here, there = (tj.dlarray(x), tj.dlarray(y)), tj.gpu((x, y))
    for _ in range(200):
        here = (step.function(*here)[0] / 2, here[1])
        there = (step(*there)[0] / 2, there[1])
    agree([np.asarray(there[0])], [here[0]], scale=1e-3)


def test_guards_writes_and_bounds() -> None:
    branch = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x)
    for sign in (1, 1, -1, -1, 1, -1):
        expected = 2.0 if sign > 0 else 1.0
        assert branch(tj.gpu(np.full(3, sign, np.float32))).tolist() == [expected] * 3

    def written(x: Any, i: Any) -> Any:
        x += x[i]
        return x.sum()

    function = tj.dlaccelerate(written)
    x, want = tj.gpu(np.arange(3.0)), np.arange(3.0)
    for _ in range(5):
        function(x, tj.gpu(np.array([2, 1, 0])))
        want += want[[2, 1, 0]]
    assert x.tolist() == want.tolist()
    with pytest.raises(BoundsError):
        function(x, tj.gpu(np.array([0, 1, 7])))
    assert x.tolist() == want.tolist()


@pytest.mark.parametrize("place", [tj.gpu, np.copy], ids=["gpu", "host"])
def test_a_class_whose_arrays_lie_on_the_device(place: Callable[[np.ndarray], Any]) -> None:
    check_class(place)


def test_an_array_larger_than_the_memory() -> None:
    free, total = driver().memory()
    with pytest.raises(DeviceMemoryError):
        driver().allocate(2 * total)
    assert tj.gpu(np.ones(3)).tolist() == [1.0] * 3
    assert free <= total


@pytest.mark.parametrize("library", ["torch", "cupy", "jax", "numba.cuda"])
def test_arrays_of_other_libraries(library: str) -> None:
    module: Any = pytest.importorskip(library)
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    try:
        if library == "torch":
            other = module.as_tensor(data, device="cuda")
        elif library == "jax":
            other = module.device_put(data, module.devices("gpu")[0])
        else:
            other = module.to_device(data) if library == "numba.cuda" else module.asarray(data)
    except Exception as error:  # built without CUDA
        driver().synchronize()  # which is no reason to skip where the device is lost
        pytest.skip(f"{library} makes no array on the GPU here: {error}")
    x = tj.dlarray(other)
    assert x.device == "cuda:0" and (x + 1).tolist() == (data + 1).tolist()
    function = tj.dlaccelerate(lambda x: x * 2)
    for _ in range(3):
        assert function(other).tolist() == (data * 2).tolist()
    if library == "torch":
        assert module.as_tensor(function(other), device="cuda").cpu().numpy().tolist() == (data * 2).tolist()
        assert module.from_dlpack(function(other)).cpu().numpy().tolist() == (data * 2).tolist()


_SLEEP = (
    'extern "C" __global__ void sleep() { for (long long end = clock64() + (1LL << 28); clock64() < end;); }'
)


def _late_of_torch(torch: Any) -> Any:
    torch.cuda._sleep(1 << 28)
    return torch.full((1000,), 7.0, device="cuda")


def _late_of_cupy(cupy: Any) -> Any:
    cupy.RawKernel(_SLEEP, "sleep")((1,), (1,), ())
    return cupy.full(1000, 7.0, "float32")


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_an_array_that_another_stream_still_makes(library: str) -> None:
    """A long kernel stands before it on a stream of the other library, which neither our stream nor the host knows."""
    module: Any = pytest.importorskip(library)
    if not module.cuda.is_available():
        pytest.skip(f"{library} finds no GPU")
    double = tj.dlaccelerate(lambda x: x * 2)
    side = module.cuda.Stream() if library == "torch" else module.cuda.Stream(non_blocking=True)
    for _ in range(4):
        with module.cuda.stream(side) if library == "torch" else side:
            late = _late_of_torch(module) if library == "torch" else _late_of_cupy(module)
            assert (tj.dlarray(late) + 1).tolist() == [8.0] * 1000
            late = _late_of_torch(module) if library == "torch" else _late_of_cupy(module)
            assert double(late).tolist() == [14.0] * 1000


def test_a_capsule_that_names_no_stream() -> None:
    """The default stream, on which PyTorch reads it, waits for ours."""
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    step = tj.dlaccelerate(lambda x: tj.tanh(x @ x) / 50)
    side = torch.cuda.Stream()
    x = tj.gpu(np.eye(2000, dtype=np.float32))
    with stream(side):
        for _ in range(20):
            y = step(x)
        there = torch.utils.dlpack.from_dlpack(y.__dlpack__())
        found = there.cpu().numpy()
    np.testing.assert_array_equal(found, np.asarray(y))
