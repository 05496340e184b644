# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products of all sizes and layouts, by our kernels and by BLAS, as Python and compiled."""

import ctypes
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from effort import sweep

from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.codegen.templates import gemm
from tracejit.compile.registry import registry
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph
from tracejit.ops.op import Layout
from tracejit.passes import cost
from tracejit.passes.loops import multiplier
from tracejit.pipeline import build
from tracejit.program import Kernel, Program
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.python import PythonExecutable

RNG = np.random.default_rng(0)
EDGES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 40, 64, 65)
# A sample of all triples of edges, in which each edge occurs in each place.
SIZES = sorted({
    (m, n, k)
    for start, step in ((0, 1), (5, 7), (11, 3))
    for i in range(len(EDGES))
    for m, n, k in [(EDGES[i], EDGES[(start + step * i) % 19], EDGES[(3 * start + 5 * i + 2) % 19])]
})  # fmt: skip


def layout_of(array: np.ndarray) -> Layout:
    return Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def program_of(x: np.ndarray, y: np.ndarray) -> Program:
    """Return the program of x @ y, for arrays of these layouts."""
    graph = Graph()
    b = Builder(graph)
    graph.outputs = [b.matmul(*[b.input(Aval(a.shape, None, a.dtype)) for a in (x, y)])]
    return build(graph, [layout_of(x), layout_of(y)])


def by_python(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return PythonExecutable(program_of(x, y))([x, y])[0]


def by_numba(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return CpuExecutable(program_of(x, y), [layout_of(x), layout_of(y)])([x, y])[0]


def kernels(program: Program) -> list[str]:
    return [row.kernel.name.partition("_")[0] for row in program.rows if row.part == 0]


def matrices(shape: Sequence[int], dtype: str, lie: str) -> np.ndarray:
    """Return random matrices that lie by rows, by columns, in wider rows, or apart."""
    *batch, rows, columns = shape
    if lie == "rows":
        whole = np.empty(shape, dtype)
    elif lie == "columns":
        whole = np.empty((*batch, columns, rows), dtype).swapaxes(-1, -2)
    elif lie == "wide":
        whole = np.full((*batch, rows, columns + 5), np.nan, dtype)[..., 2 : columns + 2]
    elif lie == "wide columns":
        whole = np.full((*batch, columns, rows + 5), np.nan, dtype)[..., 2 : rows + 2].swapaxes(-1, -2)
    else:
        whole = np.full((*batch, 2 * rows, 3 * columns), np.nan, dtype)[..., ::2, ::-3]
    whole[...] = RNG.uniform(-1, 1, shape)
    return whole


LIES = ("rows", "columns", "wide", "wide columns", "apart")


def check(run: Callable[..., np.ndarray], x: np.ndarray, y: np.ndarray) -> None:
    """Check a product against float64: the error of each element is at most k roundings of its largest sum."""
    result = run(x, y)
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    expected = np.matmul(x.astype(wide), y.astype(wide))
    bound = np.matmul(np.abs(x).astype(wide), np.abs(y).astype(wide))
    assert result.dtype == x.dtype
    assert result.shape == expected.shape
    assert np.all(np.abs(result - expected) <= (x.shape[-1] + 1) * np.finfo(x.dtype).eps * bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_around_the_edges_of_tiles(dtype: str) -> None:
    assert len(SIZES) > 50
    for m, n, k in SIZES:
        check(by_numba, matrices((m, k), dtype, "rows"), matrices((k, n), dtype, "rows"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_sizes_around_the_edges_of_tiles_without_numba(
    dtype: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    for m, n, k in SIZES[:: 1 if width == 64 else 3]:
        k = min(k, 9)  # the edges are those of m and n
        check(by_python, matrices((m, k), dtype, "rows"), matrices((k, n), dtype, "columns"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [16, 32])
def test_vectors_narrower_than_those_of_the_machine(
    dtype: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    for m, n, k in ((1, 40, 3), (5, 1, 4), (7, 3, 9), (13, 7, 2), (17, 33, 11)):
        check(by_numba, matrices((m, k), dtype, "rows"), matrices((k, n), dtype, "columns"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("blas", [False, True])
def test_operands_of_any_layout(dtype: str, blas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplier, "BLAS_FROM", 1 if blas else 10**12)
    for x_lies, y_lies in itertools.product(LIES, LIES):
        for m, n, k in ((9, 34, 5), (1, 20, 6), (3, 1, 7), (18, 4, 17), (2, 3, 1)):
            x, y = matrices((m, k), dtype, x_lies), matrices((k, n), dtype, y_lies)
            assert (kernels(program_of(x, y))[-1] == "gemm") is blas
            check(by_numba, x, y)


BATCHES = (
    ((3,), (3,)), ((3,), (1,)), ((1,), (4,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)),
    ((0,), (1,)), ((2, 3), ()),
)  # fmt: skip


@pytest.mark.parametrize("run", [by_python, by_numba])
@pytest.mark.parametrize("blas", [False, True])
def test_batches(run: Callable[..., np.ndarray], blas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplier, "BLAS_FROM", 1 if blas else 10**12)
    for (left, right), lies in itertools.product(BATCHES, ("rows", "columns", "wide", "apart")):
        for m, n, k in ((3, 5, 2), (1, 5, 4), (5, 1, 3)):
            check(run, matrices((*left, m, k), "float64", lies), matrices((*right, k, n), "float64", lies))
    same = np.broadcast_to(matrices((4, 5), "float64", "rows"), (3, 4, 5))
    check(run, same, same.swapaxes(1, 2))


def test_rows_of_a_batch_are_rows_of_one_matrix() -> None:
    x, y = matrices((7, 3, 5), "float32", "rows"), matrices((5, 4), "float32", "rows")
    (row,) = program_of(x, y).rows
    assert row.arguments[:4] == (1, 21, 4, 5)


def test_one_column_by_columns_is_a_row() -> None:
    x, y = matrices((40, 6), "float32", "columns"), matrices((6, 1), "float32", "rows")
    (row,) = program_of(x, y).rows
    assert row.kernel.name.startswith("matmul_") and row.arguments[:2] == (40, 6)
    check(by_numba, x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("run", [by_python, by_numba])
def test_one_row_is_a_sum_of_rows(run: Callable[..., np.ndarray], dtype: str) -> None:
    names = set()
    for n, k in ((9, 2), (16, 3), (33, 17), (70, 40), (100, 2)):
        for lies in ("rows", "wide"):
            x, y = matrices((1, k), dtype, lies), matrices((k, n), dtype, lies)
            names |= {row.kernel.name for row in program_of(x, y).rows}
            check(run, x, y)
    assert len(names) == 1
    for n, k in ((8, 3), (40, 1)):
        assert kernels(program_of(matrices((1, k), dtype, "rows"), matrices((k, n), dtype, "rows"))) == [
            "product"
        ]


def twice(x: np.ndarray, y: np.ndarray, without_numba: bool) -> np.ndarray:
    """Return x @ y + x @ y, where the second product is added to the first."""
    arrays = [x, y, x, y]
    graph = Graph()
    b = Builder(graph)
    first, second, third, fourth = (b.input(Aval(a.shape, None, a.dtype)) for a in arrays)
    graph.outputs = [b.add(b.matmul(first, second), b.matmul(third, fourth))]
    layouts = [layout_of(a) for a in arrays]
    program = build(graph, layouts)
    assert {row.note for row in program.rows} - {"copy", "transpose"} == {"matmul", "matmul_add"}
    executable = PythonExecutable(program) if without_numba else CpuExecutable(program, layouts)
    return executable(arrays)[0]


@pytest.mark.parametrize("without_numba", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("blas", [False, True])
def test_products_are_added(
    without_numba: bool, dtype: str, blas: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplier, "BLAS_FROM", 1 if blas else 10**12)
    sizes = [size for size in SIZES if 0 not in size]
    shapes = [((m, k), (k, n)) for m, n, k in (sizes[::4] if without_numba else sizes)]
    shapes += [((3, 9, 4), (3, 4, 35)), ((2, 3, 9, 4), (2, 3, 4, 5))]
    for left, right in shapes:
        x, y = matrices(left, dtype, "rows"), matrices(right, dtype, "rows")
        once = (by_python if without_numba else by_numba)(x, y)
        np.testing.assert_array_equal(twice(x, y, without_numba), 2 * once)


@pytest.mark.parametrize("run", [by_python, by_numba])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinity_stay_in_their_row_and_column(run: Callable[..., np.ndarray], dtype: str) -> None:
    for m, n, k in ((11, 37, 4), (11, 5, 4), (11, 20, 4), (2, 70, 4)):
        for bad in (np.nan, np.inf):
            x, y = np.ones((m, k), dtype), np.ones((k, n), dtype)
            x[m - 1, 2] = bad
            result = run(x, y)
            assert np.all(result[: m - 1] == k)
            np.testing.assert_array_equal(result[m - 1], np.full(n, bad))
            x[m - 1, 2] = 1
            y[1, n - 1] = bad
            result = run(x, y)
            assert np.all(result[:, : n - 1] == k)
            np.testing.assert_array_equal(result[:, n - 1], np.full(m, bad))
            y[1, n - 1] = np.inf
            x[0, 1] = 0
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(run(x, y), x @ y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_the_result_is_written(dtype: str) -> None:
    for m, n, k in ((9, 3, 2), (3, 20, 2), (17, 33, 2), (1, 65, 2), (1, 1, 1)):
        x, y = matrices((m, k), dtype, "rows"), matrices((k, n), dtype, "rows")
        place = np.full(m * n + 200, 7, dtype)
        out = place[100 : 100 + m * n]
        launch(gemm.product(x.dtype, m, n), (1, m, n, k, k, 1, 0, n, 0, n, 0, 0), x, y, out)
        np.testing.assert_allclose(out.reshape(m, n), x @ y, rtol=1e-5, atol=1e-5)
        assert np.all(place[:100] == 7)
        assert np.all(place[100 + m * n :] == 7)
        place[...] = 7
        launch(gemm.transpose(x.dtype), (1, m, n, n, 0), x @ y, out)
        np.testing.assert_array_equal(out.reshape(n, m), (x @ y).T)
        assert np.all(place[:100] == 7)
        assert np.all(place[100 + m * n :] == 7)


def launch(kernel: Kernel, numbers: Sequence[int], *arrays: np.ndarray) -> None:
    """Run a compiled kernel on arrays."""
    arguments = np.array([*numbers, *[array.ctypes.data for array in arrays]], np.intp)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(registry.address(kernel))(arguments.ctypes.data)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply by the kernels for narrow results wherever they can."""
    for name in ("COLUMNS_DEPTH", "COLUMNS_WIDE_DEPTH", "DOTS_DEPTH"):
        monkeypatch.setattr(multiplier, name, 0)
    for name in ("COLUMNS_BYTES", "DOTS_BYTES", "DOTS_TURNING_BYTES"):
        monkeypatch.setattr(multiplier, name, multiplier.NARROW_BYTES)


# (m, n, k): edges of tiles of 16 rows (float32) or 8, by one vector or two, and of vectors along k.
NARROW_SIZES = (
    (16, 1, 1), (17, 1, 16), (33, 2, 17), (64, 3, 40), (31, 4, 15), (100, 5, 9), (16, 6, 33), (47, 7, 2), (48, 8, 3),
    (65, 9, 16), (24, 10, 31), (32, 12, 5), (63, 13, 8), (30, 15, 2), (128, 16, 7), (33, 8, 0),
)  # fmt: skip


def narrow_products(dtype: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return factors with a narrow product, and the kernel that should multiply them."""
    cases = []
    for m, n, k in NARROW_SIZES:
        if n * np.dtype(dtype).itemsize <= multiplier.NARROW_BYTES:
            for x_lies, y_lies in itertools.product(LIES[:4], LIES):
                if "columns" in x_lies or y_lies != "apart":
                    x, y = matrices((m, k), dtype, x_lies), matrices((k, n), dtype, y_lies)
                    cases.append(("columns" if "columns" in x_lies else "dots", x, y))
    return cases


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_narrow_results(dtype: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    factors = narrow_products(dtype)
    # Each size, in one layout after the other.
    step = sweep({16: 25, 32: 25, 64: 9}, {16: 5, 32: 5, 64: 1}, sample={16: 25, 32: 25, 64: 25})[width]
    for who, x, y in factors[::step]:
        if 1 not in x.shape and y.shape[1] > 1 and y.shape[0] > 1:
            assert kernels(program_of(x, y)) == [who]
        check(by_numba, x, y)
        x[...], y[...] = np.rint(8 * x), np.rint(8 * y)  # exact in any order
        np.testing.assert_array_equal(twice(x, y, without_numba=False), 2 * by_numba(x, y))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_narrow_results_without_numba(dtype: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    for _, x, y in narrow_products(dtype)[:: sweep(25, 4)]:
        check(by_python, x, y)
        x[...], y[...] = np.rint(8 * x), np.rint(8 * y)  # exact in any order
        np.testing.assert_array_equal(twice(x, y, without_numba=True), 2 * by_python(x, y))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("run", [by_python, by_numba])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_results_with_nan_and_infinity(run: Callable[..., np.ndarray], dtype: str) -> None:
    for lies in ("rows", "columns"):
        for m, n, k in ((19, 5, 18), (35, 3, 9)):
            x, y = matrices((m, k), dtype, lies), matrices((k, n), dtype, lies)
            x[...], y[...] = 1, 1
            x[m - 1, 2], y[1, n - 1] = np.nan, np.inf
            result = run(x, y)
            assert np.all(result[: m - 1, : n - 1] == k)
            np.testing.assert_array_equal(result[m - 1], np.full(n, np.nan))
            np.testing.assert_array_equal(result[: m - 1, n - 1], np.full(m - 1, np.inf))


@pytest.mark.usefixtures("narrow")
def test_narrow_results_of_batches() -> None:
    for left, right in BATCHES:
        for x_lies, y_lies in itertools.product(("rows", "columns"), ("rows", "columns", "apart")):
            x, y = matrices((*left, 18, 5), "float32", x_lies), matrices((*right, 5, 3), "float32", y_lies)
            check(by_numba, x, y)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_narrow_results(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for lies, who in (("rows", "dots"), ("columns", "columns")):
        x, y = matrices((100, 40), dtype, lies), matrices((40, 5), dtype, "rows")
        monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 1e18)
        whole = by_numba(x, y)
        monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 0)
        monkeypatch.setattr(cost, "PART_NS", 1e-9)
        rows = program_of(x, y).rows
        assert [row.kernel.name.partition("_")[0] for row in rows] == [who] * 3
        np.testing.assert_array_equal(by_numba(x, y), whole)
        check(by_numba, x, y)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_kernels_write_only_the_result(dtype: str) -> None:
    for m, n, k in ((17, 3, 9), (33, 5, 2), (9, 1, 20), (64, 8, 1)):
        x, y = matrices((m, k), dtype, "rows"), matrices((k, n), dtype, "rows")
        xt = np.ascontiguousarray(x.T)
        place = np.full(m * n + 200, 7, dtype)
        out = place[100 : 100 + m * n]
        for kernel, left, strides in (
            (gemm.columns(x.dtype, m, n, near=True), xt, (1, m, 0)),
            (gemm.columns(x.dtype, m, n, near=False), xt, (1, m, 0)),
            (gemm.dots(x.dtype, n), x, (k, 1, 0)),
        ):
            out[...] = 0
            launch(kernel, (1, m, n, k, *strides, n, 1, 0, n, 0, 0), left, y, out)
            np.testing.assert_allclose(out.reshape(m, n), x @ y, rtol=1e-5, atol=1e-5)
            assert np.all(place[:100] == 7)
            assert np.all(place[100 + m * n :] == 7)


def test_the_choice_of_kernels_for_narrow_results() -> None:
    def chosen(m: int, n: int, k: int, x: str = "rows", y: str = "rows", dtype: str = "float32") -> list[str]:
        return kernels(program_of(matrices((m, k), dtype, x), matrices((k, n), dtype, y)))

    assert chosen(128, 10, 128, "columns") == ["columns"]
    assert chosen(128, 14, 128, "columns") == ["columns"]
    assert chosen(128, 16, 128, "columns") == ["product"]
    assert chosen(128, 16, 128, "columns", "columns") == ["columns"]
    assert chosen(20, 10, 128, "columns") == ["product"]  # 12 of 32 lanes would be idle
    assert chosen(20, 8, 128, "columns") == ["columns"]
    assert chosen(8, 8, 128, "columns") == ["product"]
    assert chosen(128, 10, 16, "columns") == ["product"]
    assert chosen(128, 8, 16, "columns") == ["columns"]
    assert chosen(128, 12, 8, "columns", "columns") == ["transpose", "product"]
    assert chosen(128, 10, 128) == ["product"]
    assert chosen(128, 2, 128) == ["dots"]
    assert chosen(128, 2, 2000) == ["product"]
    assert chosen(128, 2, 2000, "rows", "columns") == ["dots"]
    assert chosen(128, 1, 2000) == ["dots"]
    assert chosen(128, 4, 32) == ["product"]
    assert chosen(128, 4, 48) == ["dots"]
    assert chosen(8, 5, 128) == ["product"]
    assert chosen(128, 7, 128) == ["product"]
    assert chosen(128, 7, 128, "rows", "columns") == ["dots"]
    assert chosen(128, 7, 128, "columns", dtype="float64") == ["columns"]
    assert chosen(128, 3, 128, dtype="float64") == ["dots"]
    assert chosen(128, 4, 128, dtype="float64") == ["product"]


def test_few_kernels_serve_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: 64)
    sizes = [(m, n, k) for m in (5, 6, 9, 30) for n in range(1, 70, 3) for k in (0, 1, 5)]
    before = {
        kernel.name for m, n, k in sizes for kernel in program_of(np.ones((m, k)), np.ones((k, n))).kernels
    }
    assert len(before) == 3  # one vector, two, and more
    few = {program_of(np.ones((m, 3)), np.ones((3, 99))).kernels[0].name for m in (2, 3, 4)}
    assert len(few) == 1
    turned = {
        kernel.name
        for m, n, k in sizes
        for kernel in program_of(np.ones((m, k)), matrices((k, n), "float64", "columns")).kernels
    }
    assert len(turned - before) == 1


def test_other_sizes_compile_nothing() -> None:
    def run(m: int, n: int, k: int) -> None:
        check(by_numba, matrices((m, k), "float32", "rows"), matrices((k, n), "float32", "columns"))

    for n in (7, 19, 45):
        run(20, n, 3)
    run(32, 64, 32)  # by panels
    count = len(registry)
    for m, n, k in ((8, 3, 300), (129, 16, 4), (20, 31, 7), (30, 32, 2), (64, 200, 11)):
        run(m, n, k)
    assert len(registry) == count


def test_the_choice_of_kernels() -> None:
    def chosen(m: int, n: int, k: int, lies: str = "rows") -> list[str]:
        x, y = np.empty((m, k), np.float32), np.empty((n, k), np.float32)
        return kernels(program_of(x, y.reshape(k, n) if lies == "rows" else y.T))

    assert chosen(128, 128, 64) == ["product"]
    assert set(chosen(128, 512, 784)) == {"panels"}
    assert set(chosen(1024, 1024, 1024)) == {"gemm"}
    assert set(chosen(100_000, 10, 64)) == {"product"}
    assert set(chosen(32, 256, 256)) == {"product"}
    assert set(chosen(32, 512, 512)) == {"panels"}
    assert chosen(64, 128, 128) == ["panels"]
    by_columns = program_of(np.empty((128, 64), np.float32).T, np.empty((128, 128), np.float32))
    assert kernels(by_columns) == ["product"]
    assert chosen(128, 64, 64, "columns") == ["panels"]
    assert chosen(16, 64, 64, "columns") == ["transpose", "product"]
    assert set(chosen(128, 128, 128, "columns")) == {"panels"}
    assert chosen(3, 128, 128, "columns") == ["gemm"]  # transposing y takes longer than the product
    assert chosen(4, 128, 128, "columns") == ["panels"]
    assert chosen(4, 20, 20, "columns") == ["transpose", "product"]
    assert chosen(4, 64, 64, "columns") == ["gemm"]
    assert chosen(8, 64, 64, "columns") == ["transpose", "product"]
    assert chosen(4, 128, 128) == ["product"]


@pytest.fixture
def by_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply by panels wherever a row of the result is as wide as a tile."""
    for name in (
        "PANELS_BYTES",
        "PANELS_ROWS",
        "FAR_ROWS",
        "TURNING_PANELS_ROWS",
        "TURNING_BYTES",
        "TURNING_ROWS",
    ):
        monkeypatch.setattr(multiplier, name, 0)


PANELS_SIZES = (
    (1, 32, 1), (3, 33, 7), (9, 40, 17), (8, 64, 16), (70, 65, 129), (255, 70, 255), (256, 32, 256), (257, 45, 257),
    (600, 33, 3), (5, 130, 600),
)  # fmt: skip


@pytest.mark.usefixtures("by_panels")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_panels_of_all_sizes_and_layouts(dtype: str) -> None:
    for number, (m, n, k) in enumerate(PANELS_SIZES):
        for x_lies, y_lies in (
            list(itertools.product(LIES, LIES))[:: sweep(7, 1)]
            if number % 2
            else zip(LIES, LIES, strict=True)
        ):
            x, y = matrices((m, k), dtype, x_lies), matrices((k, n), dtype, y_lies)
            # One row times factors by columns is the product of their rows and a column.
            one = m == 1 and y.strides[0] == y.itemsize < y.strides[1]
            assert kernels(program_of(x, y))[-1] == ("product" if one else "panels")
            check(by_numba, x, y)
        x, y = matrices((m, k), dtype, "columns"), matrices((k, n), dtype, "columns")
        x[...], y[...] = np.rint(8 * x), np.rint(8 * y)  # exact in any order
        np.testing.assert_array_equal(twice(x, y, without_numba=False), 2 * by_numba(x, y))


@pytest.mark.usefixtures("by_panels")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_panels_without_numba(dtype: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    monkeypatch.setattr(gemm, "_PANEL_BYTES", 2 * width)  # two tiles that are transposed
    monkeypatch.setattr(gemm, "_BLOCK_TILES", 1)
    lanes = width // np.dtype(dtype).itemsize
    for m, k in ((1, 1), (9, lanes), (13, 2 * lanes + 1), (16, 3 * lanes + 1)):
        for lies in ("rows", "columns", "apart"):
            n = 128 // np.dtype(dtype).itemsize + 3
            x, y = matrices((m, k), dtype, lies), matrices((k, n), dtype, lies)
            assert kernels(program_of(x, y))[-1] == "panels"
            check(by_python, x, y)
            x[...], y[...] = np.rint(8 * x), np.rint(8 * y)  # exact in any order
            np.testing.assert_array_equal(twice(x, y, without_numba=True), 2 * by_python(x, y))


@pytest.mark.usefixtures("by_panels")
def test_panels_of_batches() -> None:
    for left, right in BATCHES:
        for lies in ("rows", "columns", "apart"):
            check(
                by_numba, matrices((*left, 9, 5), "float32", lies), matrices((*right, 5, 40), "float32", lies)
            )


@pytest.mark.usefixtures("by_panels")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_panels(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = 128 // np.dtype(dtype).itemsize

    def parts_of(m: int, n: int, lies: str = "rows") -> list[tuple[int, int]]:
        x, y = matrices((m, 4), dtype, lies), matrices((4, n), dtype, "rows")
        monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 1e18)
        whole = by_numba(x, y)
        monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 0)
        monkeypatch.setattr(cost, "PART_NS", 1e-9)
        np.testing.assert_array_equal(by_numba(x, y), whole)
        check(by_numba, x, y)
        return [row.arguments[1:3] for row in program_of(x, y).rows]

    assert parts_of(63, wide + 1) == [(63, wide + 1)]
    assert parts_of(64, 2 * wide) == [(64, wide), (64, wide)]
    assert parts_of(256, 3 * wide) == [(64, 3 * wide)] * 4
    assert parts_of(64, 8 * wide, "columns") == [(64, 4 * wide)] * 2  # each part copies blocks of x
    assert parts_of(128, 7 * wide, "columns") == [(64, 7 * wide)] * 2


def test_a_shared_right_factor_is_transposed_once() -> None:
    graph = Graph()
    b = Builder(graph)
    x, y, w = (b.input(Aval((32, 128), None, np.dtype(np.float32))) for _ in range(3))
    turned = b.transpose(b.input(Aval((128, 128), None, np.dtype(np.float32))), axes=(1, 0))
    graph.outputs = [b.matmul(v, turned) for v in (x, y, w)]
    assert list(dict.fromkeys(kernels(build(graph)))) == ["transpose", "product"]
    graph.outputs = [b.matmul(x, turned)]
    assert set(kernels(build(graph))) == {"panels"}


def test_a_factor_is_transposed_once() -> None:
    graph = Graph()
    b = Builder(graph)
    x, y, w = (b.input(Aval(shape, None, np.dtype(np.float32))) for shape in ((20, 6), (30, 6), (5, 6)))
    turned = b.transpose(w, axes=(1, 0))
    graph.outputs = [b.matmul(x, turned), b.matmul(y, turned)]
    assert kernels(build(graph)) == ["transpose", "product", "product"]


def test_the_python_backend_checks_the_bounds_of_vectors() -> None:
    x, y = np.ones((9, 3), np.float32), np.ones((3, 40), np.float32)
    executable = PythonExecutable(program_of(x, y))
    with pytest.raises(CodegenError, match="emitted code accesses element"):
        executable([x, np.ones((2, 40), np.float32)])
    with pytest.raises(CodegenError, match="emitted code accesses element"):
        executable([x, np.ones((3, 39), np.float32)])


@pytest.mark.parametrize(
    ("baseline", "found", "width"),
    [
        (["X86_V2"], ["X86_V3", "X86_V4"], 64),
        (["SSE", "SSE2"], ["AVX2", "FMA3", "AVX512F", "AVX512_SKX"], 64),
        (["SSE"], ["AVX2", "FMA3"], 32),
        (["X86_V2", "X86_V3"], [], 32),
        (["SSE"], ["AVX", "FMA3"], 16),
        (["NEON", "ASIMD"], [], 16),
    ],
)
def test_width_of_vectors(
    baseline: list[str], found: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = {"SIMD Extensions": {"baseline": baseline, "found": found}}
    monkeypatch.setattr(np, "show_config", lambda mode: features)
    assert target.of_this_machine.__wrapped__() == width


@pytest.mark.parametrize(
    "configuration", [{"SIMD Extensions": {"baseline": ["SSE2"], "not found": ["AVX2"]}}, {}]
)
def test_width_of_vectors_where_numpy_found_nothing_else(
    configuration: dict[str, dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "show_config", lambda mode: configuration)
    assert target.of_this_machine.__wrapped__() == 16
