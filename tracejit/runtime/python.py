# SPDX-License-Identifier: BSD-3-Clause
"""The Python back end: runs the emitted module as it is, without Numba, as the reference of the tests.

Pointers are objects that check bounds; the functions that emitted source calls are NumPy's.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tracejit.aval import bits_dtype
from tracejit.codegen.emit import COMMIT, module_source
from tracejit.codegen.expressions import OF_HALVES
from tracejit.codegen.names import DTYPES
from tracejit.errors import CodegenError
from tracejit.kernels.loops import functions as loop_functions
from tracejit.kernels.winograd import TRANSFORMS
from tracejit.ops import OPS
from tracejit.ops.fourier_ufuncs import FOURIER_UFUNCS
from tracejit.ops.matrix_ufuncs import MATRIX_UFUNCS, PRODUCTS
from tracejit.ops.op import Scalar
from tracejit.program import HostCall, Program
from tracejit.record.guards import GuardFailed
from tracejit.runtime import ufunc_loops
from tracejit.runtime.host import fits
from tracejit.util.text import printable

# A template that is one call: the function is the op's reference. In longer templates it is that of another op.
_FUNCTION = re.compile(r"(\w+)_\{T\}\(\{0\}(?:, \{1\})?\)")
_LANES = (2, 4, 8, 16, 32, 64, 128)
_TILE_ROWS = range(1, 17)


class CheckedPointer:
    """A typed pointer into an array; an access outside of the array is an error.

    There are millions of accesses in some tests, so each looks at its bounds itself, and leaves the error to `_at`.
    """

    __slots__ = ("_elements", "_size", "_start")

    def __init__(self, elements: np.ndarray, start: int) -> None:
        self._elements = elements
        self._start = start
        self._size = elements.size

    def _at(self, index: Any) -> int:
        at = self._start + int(index)
        if not 0 <= at < self._size:
            raise CodegenError(f"emitted code accesses element {at} of an array with {self._size} elements")
        return at

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._elements.dtype

    def span(self, index: Any, length: int) -> np.ndarray:
        """Return a view of `length` adjacent elements."""
        at = self._start + int(index)
        if not (0 <= at < self._size and 0 <= at + length - 1 < self._size):
            self._at(index)
            self._at(index + length - 1)
        return self._elements[at : at + length]

    def __getitem__(self, index: Any) -> Any:
        at = self._start + int(index)
        return self._elements[at if 0 <= at < self._size else self._at(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._start + int(index)
        self._elements[at if 0 <= at < self._size else self._at(index)] = value


class PythonExecutable:
    """Runs a program by calling the functions of its emitted module."""

    def __init__(self, program: Program, title: str = "tracejit program") -> None:
        self.program = program
        self._namespace = dict(namespace())
        hosts = {kernel.name: kernel.host for kernel in program.kernels if kernel.host is not None}
        self._namespace["call_python"] = lambda name, args: _call_python(hosts[name], args)
        name = f"<tracejit {printable(title)}>"
        exec(compile(module_source(program, title), name, "exec"), self._namespace)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for."""
        program = self.program
        outputs = list(program.new_outputs())
        fault = np.zeros((), np.int64)
        memory = {f"input[{i}]": array for i, array in enumerate(inputs)}
        memory.update({f"output[{i}]": array for i, array in enumerate([*outputs, fault])})
        memory.update({f"constant[{i}]": array for i, array in enumerate(program.constants)})
        memory["arena"] = _unset(
            program.arena_bytes, np.dtype(np.uint8)
        )  # not zeros, which would hide a missing store

        def locate(name: str, offset_bytes: int, dtype: str) -> CheckedPointer:
            return _locate(memory[name], offset_bytes, np.dtype(dtype))

        with np.errstate(all="ignore"):
            self._namespace["forward"](locate)
        program.check(fault, outputs)
        if program.commits:
            with np.errstate(all="ignore"):
                self._namespace[COMMIT](locate)
        return outputs


def _call_python(call: HostCall, pointers: Sequence[CheckedPointer]) -> None:
    """Call a function with copies of the arrays that pointers lead to, and store its results.

    Raises:
        GuardFailed: if they have other sizes than the program was built for.
    """
    sizes = [*call.inputs, *call.outputs]
    views = [
        pointer.span(0, aval.size).reshape(aval.shape) if aval.size else np.empty(aval.shape, aval.dtype)
        for pointer, aval in zip(pointers, sizes, strict=True)
    ]
    copies = [view.copy() for view in views[: len(call.inputs)]]
    for copy in copies:
        copy.flags.writeable = False
    results = call(copies)
    if not fits(results, call.outputs):
        raise GuardFailed
    for view, result in zip(
        views[len(copies) :], results if type(results) is tuple else (results,), strict=True
    ):
        view[...] = result


def _locate(array: np.ndarray, offset_bytes: int, dtype: np.dtype) -> CheckedPointer:
    """Return a pointer at `offset_bytes` from the first element of `array`."""
    if array.dtype.kind == "c" and dtype.kind == "f":  # the parts of complex numbers
        whole = _locate(array, 0, array.dtype)
        start = 2 * whole._start + offset_bytes // dtype.itemsize
        return CheckedPointer(whole._elements.view(dtype), start)
    if array.dtype != dtype == bits_dtype(array.dtype):
        array = array.view(dtype)  # the bits of the numbers
    if array.dtype != dtype:  # the arena, whose bytes hold all dtypes
        return CheckedPointer(array.view(dtype), offset_bytes // dtype.itemsize)
    if array.size == 0:
        return CheckedPointer(np.empty(0, dtype), 0)
    if array.ndim == 0:
        return CheckedPointer(array.reshape(1), 0)
    low, high = np.lib.array_utils.byte_bounds(array)
    start = (array.__array_interface__["data"][0] - low + offset_bytes) // dtype.itemsize
    lowest = array[tuple([slice(-1, None) if s < 0 else slice(0, 1) for s in array.strides])]
    flat = np.lib.stride_tricks.as_strided(lowest, ((high - low) // dtype.itemsize,), (dtype.itemsize,))
    return CheckedPointer(flat, start)


@cache
def namespace() -> dict[str, Any]:
    """Return the names that emitted source may use, implemented by NumPy and plain Python."""
    names: dict[str, Any] = {"symbol": lambda name: name, "vectors_of_32_bytes": lambda: None}
    for suffix, dtype in DTYPES.items():
        names[suffix] = _conversion(dtype)
        names[f"number_{suffix}"] = names[f"read_{suffix}"] = lambda argument: argument
        names[f"write_{suffix}"] = lambda argument, scope: argument
        names[f"scratch_{suffix}"] = lambda count, dtype=dtype: CheckedPointer(_unset(count, dtype), 0)
        names[f"fold_sum_{suffix}"] = lambda accumulator, element: accumulator + element
        names[f"fold_max_{suffix}"] = np.maximum
        names[f"fold_min_{suffix}"] = np.minimum
        for op in OPS.values():
            if isinstance(op.emit, Scalar):
                function = _FUNCTION.fullmatch(op.emit.template)
                if function is not None:
                    names[f"{function[1]}_{suffix}"] = op.numpy
        if dtype.kind == "i":
            names[f"pow_{suffix}"] = _power
    names |= {f"fast_{name}_f32": OPS[name].numpy for name in OF_HALVES}
    names.update(loop_functions())
    names.update(_lanes())
    for count in range(2, ufunc_loops.MOST + 1):
        names[f"ufunc_loop_{count}"] = ufunc_loops.run
    names |= {f"matrix_loop_{name}": ufunc_loops.run_matrices for name in MATRIX_UFUNCS}
    names |= {f"matrix_loop_{name}": ufunc_loops.run_products for name in PRODUCTS}
    names |= {f"fourier_loop_{name}": ufunc_loops.run_lines for name in FOURIER_UFUNCS}
    for suffix in ("f32", "f64"):
        names[f"gemm_{suffix}"] = names["gemm"]
        names[f"divisor_scale_{suffix}"] = np.ones_like
        names[f"divided_{suffix}"] = lambda over, divisor, inverse: over / divisor
        for lanes in _LANES:
            names |= {
                f"{name}_{suffix}x{lanes}": function for name, function in _vectors(suffix, lanes).items()
            }
    for count in _TILE_ROWS:
        names[f"rows_{count}"] = lambda i, m, count=count: [min(i + r, m - 1) for r in range(count)]
        names[f"listed_{count}"] = lambda table, i, m, count=count: [
            int(table[min(i + r, m - 1)]) for r in range(count)
        ]
    return names


def _vectors(suffix: str, lanes: int) -> dict[str, Callable[..., Any]]:
    """Return the functions of tracejit.kernels.intrinsics.tiles on arrays of `lanes` numbers."""
    dtype = DTYPES[suffix]

    def padded(numbers: np.ndarray, rest: float) -> np.ndarray:
        vector = np.full(lanes, rest, dtype)
        vector[: len(numbers)] = numbers
        return vector

    def turn(tile: list[np.ndarray]) -> list[np.ndarray]:
        return [padded(row, np.nan) for row in np.stack(tile).T]  # the rest is undefined

    return {
        "zero": lambda rows: [np.zeros(lanes, dtype) for _ in rows],
        "filled": lambda rows, vector: [vector.copy() for _ in rows],
        "add_outer": lambda tile, x, at, rows, stride, vector: [
            x[at + row * stride] * vector + before for row, before in zip(rows, tile, strict=True)
        ],
        "add_tiles": lambda tile, other: [a + b for a, b in zip(tile, other, strict=True)],
        "transpose": lambda tile: list(np.stack(tile).T),
        "turn": turn,
        "sum_lanes": lambda tile: [padded(np.array([vector.sum() for vector in tile]), 0)],
        **{
            name: lambda tile, matrix=matrix: list(np.array(matrix, dtype) @ np.stack(tile))
            for name, matrix in TRANSFORMS.items()
        },
        **_vector_memory(dtype, lanes),
    }


def _vector_memory(dtype: np.dtype, lanes: int) -> dict[str, Callable[..., Any]]:
    """Return those of _vectors() that access memory."""

    def load_first(x: CheckedPointer, at: int, width: int) -> np.ndarray:
        vector = np.zeros(lanes, dtype)
        if width:  # otherwise there may be no memory
            vector[:width] = x.span(at, width)
        return vector

    def store(out: CheckedPointer, at: int, vector: np.ndarray) -> None:
        out.span(at, lanes)[:] = vector

    def load_tile(
        x: CheckedPointer, at: int, rows: list[int], stride: int, first: int, last: int
    ) -> list[np.ndarray]:
        tile = []
        for row in rows:
            vector = np.zeros(lanes, dtype)
            if first < last:  # otherwise there may be no memory
                vector[first:last] = x.span(at + row * stride + first, last - first)
            tile.append(vector)
        return tile

    def store_tile(
        out: CheckedPointer, at: int, rows: list[int], stride: int, tile: list[np.ndarray], first: int, last: int
    ) -> None:  # fmt: skip
        for row, vector in reversed(list(zip(rows, tile, strict=True)) if first < last else []):
            out.span(at + row * stride + first, last - first)[:] = vector[first:last]

    def add_dots(
        tile: list[np.ndarray], x: CheckedPointer, at_x: int, rows: list[int], x_stride: int,
        y: CheckedPointer, at_y: int, columns: list[int], y_stride: int, width: int,
    ) -> list[np.ndarray]:  # fmt: skip
        left = [load_first(x, at_x + row * x_stride, width) for row in rows]
        right = [load_first(y, at_y + column * y_stride, width) for column in columns]
        pairs = [a * b for a in left for b in right]
        return [pair + before for pair, before in zip(pairs, tile, strict=True)]

    return {
        "load": lambda x, at: load_first(x, at, lanes), "store": store, "load_first": load_first,
        "load_tile": load_tile, "store_tile": store_tile, "add_dots": add_dots, **_listed_memory(dtype, lanes),
    }  # fmt: skip


def _listed_memory(dtype: np.dtype, lanes: int) -> dict[str, Callable[..., Any]]:
    """Return those of _vectors() that access the lanes that a table says."""

    def where(table: CheckedPointer, place: int, first: int, last: int, width: int) -> list[int]:
        return [lane for lane in range(width) if first <= table[place + lane] < last]

    def load_where(
        x: CheckedPointer, at: int, rows: list[int], stride: int, table: CheckedPointer, *numbers: int
    ) -> list[np.ndarray]:
        tile = [np.zeros(lanes, dtype) for _ in rows]
        for row, vector in zip(rows, tile, strict=True):
            for lane in where(table, *numbers):
                vector[lane] = x[at + row * stride + lane]
        return tile

    def store_where(
        out: CheckedPointer, at: int, rows: list[int], stride: int, tile: list[np.ndarray], table: CheckedPointer,
        *numbers: int,
    ) -> None:  # fmt: skip
        for row, vector in reversed(list(zip(rows, tile, strict=True))):
            for lane in where(table, *numbers):
                out[at + row * stride + lane] = vector[lane]

    return {"load_where": load_where, "store_where": store_where}


def _lanes() -> dict[str, Callable[..., Any]]:
    """Return the functions of tracejit.kernels.intrinsics.lanes, except folds, on arrays."""
    names: dict[str, Callable[..., Any]] = {
        "where": lambda condition, yes, no: np.asarray(np.where(condition, yes, no))[()],
        "total_sum": lambda vector, count: vector[:count].sum(),
        "total_max": lambda vector, count: vector[:count].max(),
        "total_min": lambda vector, count: vector[:count].min(),
        "largest": lambda vector: vector.max(),
        "smallest": lambda vector: vector.min(),
    }
    for suffix, dtype in DTYPES.items():
        for lanes in _LANES:
            names[f"{suffix}x{lanes}"] = lambda value, dtype=dtype, lanes=lanes: np.full(lanes, value, dtype)
    for lanes in _LANES:
        names |= {f"{name}_x{lanes}": function for name, function in _rows_side_by_side(lanes).items()}
        names |= {f"{name}_x{lanes}": function for name, function in _pairs(lanes).items()}
    return names


def _rows_side_by_side(lanes: int) -> dict[str, Callable[..., Any]]:
    def gather(x: CheckedPointer, at: int, stride: int, count: int) -> np.ndarray:
        first = [x[at + lane * stride] for lane in range(count)]
        vector = _unset(lanes, x.dtype)  # lanes beyond the last row are undefined
        vector[:count] = first
        return vector

    def scatter(out: CheckedPointer, at: int, stride: int, value: Any, count: int) -> None:
        for lane, number in enumerate(np.broadcast_to(value, (lanes,))[:count]):
            out[at + lane * stride] = number

    def store(out: CheckedPointer, at: int, value: Any) -> None:
        out.span(at, lanes)[:] = value

    return {
        "gather": gather,
        "scatter": scatter,
        "load_first": lambda x, at, count: gather(x, at, 1, count),
        "store_first": lambda out, at, value, count: scatter(out, at, 1, value, count),
        "load": lambda x, at: x.span(at, lanes).copy(),
        "store": store,
        "inside": lambda count: np.arange(lanes) < count,
        "count": lambda condition: int(np.count_nonzero(condition)),
        "first": lambda condition: int(np.argmax(condition)) if condition.any() else lanes,
        "load_by_1": lambda x, at: gather(x, at, 1, lanes),
        "load_by_2": lambda x, at: gather(x, at, 2, lanes),
        "load_by_minus_1": lambda x, at: gather(x, at, -1, lanes),
        "load_by_minus_2": lambda x, at: gather(x, at, -2, lanes),
        "packed": lambda value, condition: np.concatenate([value[condition], _unset(lanes, value.dtype)])[
            :lanes
        ],
        "in_order": lambda value: np.sort(value, kind="stable"),  # which loses no sign of a zero
        "keys": _keys,
        "taken": lambda x, at, places, condition: np.array(
            [x[at + place] if holds else 0 for place, holds in zip(places, condition, strict=True)]
        ),
        "places_in_order": lambda value, places: places[np.lexsort((places, value))],
    }


def _keys(vector: np.ndarray) -> np.ndarray:
    """Return the keys of numbers, as kernels/intrinsics/networks.py does, whose lowest bits are their lanes."""
    ranks = np.searchsorted(np.unique(vector), vector)
    return ranks * len(vector) + np.arange(len(vector))


def _pairs(lanes: int) -> dict[str, Callable[..., Any]]:
    """Return the functions of tracejit.kernels.intrinsics.pairs on arrays of `lanes` numbers."""

    def load_between(x: CheckedPointer, at: int, first: int, last: int, rest: Any) -> np.ndarray:
        vector = np.full(lanes, rest, x.dtype)
        for lane in range(max(first, 0), min(last, lanes)):
            vector[lane] = x[at + lane]
        return vector

    def store_between(out: CheckedPointer, at: int, value: Any, first: int, last: int) -> None:
        for lane in range(max(first, 0), min(last, lanes)):
            out[at + lane] = np.broadcast_to(value, (lanes,))[lane]

    return {
        "load_between": load_between,
        "store_between": store_between,
        "fma": lambda v, w, total: v * w + total,
        "even": lambda v, w: np.concatenate([v, w])[::2],
        "odd": lambda v, w: np.concatenate([v, w])[1::2],
        "picked": lambda x, at, places: x.span(at, 2 * lanes)[places % (2 * lanes)],
        "zipped_low": lambda v, w: np.stack([v, w], 1).reshape(-1)[:lanes],
        "zipped_high": lambda v, w: np.stack([v, w], 1).reshape(-1)[lanes:],
    }


def _power(base: Any, exponent: Any) -> Any:
    """Return a power of integers, as compiled code does: where an exponent is negative a guard does not hold."""
    return np.power(base, np.maximum(exponent, 0))


def _unset(count: int, dtype: np.dtype) -> np.ndarray:
    """Return an array of undefined numbers."""
    if dtype.kind == "f":
        return np.full(count, np.nan, dtype)
    return np.full(count * dtype.itemsize, 0xA5, np.uint8).view(dtype)


def _conversion(dtype: np.dtype) -> Callable[[Any], Any]:
    return lambda value: np.asarray(value).astype(dtype)[()]
