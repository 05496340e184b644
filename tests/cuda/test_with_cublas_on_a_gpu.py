# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by cuBLASLt, which no GPU has run yet; skipped, with the reason, without GPU or library.

The name of the file puts it behind the others: a library that does not fit the driver may take the device.
"""

from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, agree, run_case
from device_products import drawn

import tracejit as tj
from tracejit.config import settings
from tracejit.errors import DeviceError
from tracejit.runtime.cuda.cublas import cublas_of, load
from tracejit.runtime.cuda.driver import driver


@pytest.fixture(autouse=True)
def fixture_cublas(fixture_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    on = driver()
    try:
        load(on.version // 1000)
    except DeviceError as error:
        pytest.skip(str(error))
    cublas_of(on)
    monkeypatch.setattr(settings, "cublas_from", 1)


@pytest.mark.parametrize("seed", range(60))
def test_generated_products(seed: int) -> None:
    function, arrays = drawn(seed)
    accelerated = tj.dlaccelerate(function)
    want = function(*arrays)
    for _ in range(5):
        agree([np.asarray(found) for found in accelerated(*tj.gpu(arrays))], want)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions(case: Case) -> None:
    run_case(case, calls=6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(2100, 700, 2100), (1024, 1024, 1024), (1000, 1001, 999), (130, 30_000, 70), (1, 5000, 3)]
)
def test_large_products(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes

    def function(x: Any, y: Any) -> Any:
        return x @ y / k, (x.T @ (x @ y)) / (m * k)

    run_case(Case("products", function, ((m, k), (k, n)), dtype))


@pytest.mark.parametrize("shapes", [((16, 200, 300), (16, 300, 100)), ((16, 200, 300), (300, 100)),
                                    ((200, 300), (16, 300, 100))])  # fmt: skip
def test_batches(shapes: tuple[tuple[int, ...], ...]) -> None:
    run_case(Case("batches", lambda x, y: (x @ y / 300, tj.tanh(x) @ y / 300), shapes))


def test_float32_is_not_rounded_to_fewer_digits() -> None:
    """Of a number of 2 ** -12 beside 1, TF32 would keep nothing."""
    x, y = np.full((512, 512), 1 + 2.0**-12, np.float32), np.eye(512, dtype=np.float32)
    function = tj.dlaccelerate(lambda x, y: x @ y)
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(function(*tj.gpu((x, y)))), x)


def test_two_runs_are_equal_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    shapes = (700, 900), (900, 800)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = []
    for _ in range(3):
        function = tj.dlaccelerate(lambda x, y: tj.tanh(x @ y / 30) @ y.T)
        found += [np.asarray(function(*tj.gpu(arrays))).tobytes() for _ in range(6)][2:]
    assert len(set(found)) == 1


def test_many_replays_in_a_row_share_a_workspace() -> None:
    """Nothing waits between them; products that do not need each other would run at the same time otherwise."""
    step = tj.dlaccelerate(lambda x, y: (tj.tanh(x @ y), tj.tanh(y @ x), tj.tanh(x @ x.T)))
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((512, 512)).astype(np.float32) / 20 for _ in range(2))
    here, there = (tj.dlarray(x), tj.dlarray(y)), tj.gpu((x, y))
    for _ in range(100):
        a, b, c = step.function(*here)
        here = a / 2 + c / 10, b / 2 + x
        d, e, f = step(*there)
        there = d / 2 + f / 10, e / 2 + tj.gpu(x)
    agree([np.asarray(part) for part in there], here, scale=1e-3)


def test_results_that_are_kept_lie_at_new_addresses() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 300)).astype(np.float32)
    function = tj.dlaccelerate(lambda x, factor: (x * factor) @ x)
    kept = [function(tj.gpu(x), tj.gpu(np.full((), number, np.float32))) for number in range(30)]
    for number, found in enumerate(kept):
        agree([np.asarray(found)], [(x * np.float32(number)) @ x])
