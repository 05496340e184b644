# SPDX-License-Identifier: BSD-3-Clause
"""The addresses of the inner loops of NumPy's and SciPy's ufuncs, and the loops as functions of arrays.

Note [loops of ufuncs]
A ufunc is a table of C functions: for each combination of dtypes it has a loop over elements, and a pointer that is
passed to the loop. NumPy's C interface declares the table (PyUFuncObject in ufuncobject.h), so its layout does not
change. A program is given the address of two words: the loop, and its pointer. The fields read here are first compared
with what the ufunc says of itself in Python.
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import complex_dtype
from tracejit.errors import CodegenError
from tracejit.ops.fourier_ufuncs import fourier_ufunc
from tracejit.ops.matrix_ufuncs import PRODUCTS, matrix_ufunc
from tracejit.ops.ufunc_loops import ufunc_of

MOST = 8  # operands and results of a ufunc
NAME = re.compile(r"(numpy|numpy\.linalg|numpy\.fft|scipy\.special)\.(\w+)/([a-zA-Z?]+->[a-zA-Z?]+)")


class Head(ctypes.Structure):
    """The fields of PyUFuncObject after those of every Python object."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.c_void_p),
    )


_FINDERS: dict[str, Callable[[str], Any]] = {
    "numpy": lambda name: getattr(np, name, None),
    "numpy.linalg": matrix_ufunc,
    "numpy.fft": fourier_ufunc,
    "scipy.special": ufunc_of,
}


def _parts(name: str) -> tuple[np.ufunc, str]:
    """Return the ufunc, and the dtypes of the loop, that a name is of."""
    found = NAME.fullmatch(name)
    if found is None:
        raise CodegenError(f"there is no routine named {name!r:.80}")
    ufunc = _FINDERS[found[1]](found[2])
    ufunc = getattr(ufunc, "__wrapped__", ufunc)  # while something is recorded, another object stands for it
    if not isinstance(ufunc, np.ufunc):
        raise CodegenError(f"there is no routine named {name!r:.80}")
    if found[2] in PRODUCTS:
        own = found[3][-1].upper() if found[2].startswith("complex") else found[3][-1]
        return ufunc, f"{own}{own}->{own}"
    return ufunc, found[3]


def head_of(ufunc: np.ufunc) -> Head:
    """Return the table of a ufunc.

    Raises:
        CodegenError: if memory does not say what the ufunc says in Python.
    """
    head = Head.from_address(id(ufunc) + object.__basicsize__)
    counts = (head.nin, head.nout, head.nargs, head.ntypes)
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        raise CodegenError(f"the table of the ufunc {ufunc.__name__} has an unknown layout")
    numbers = ctypes.string_at(head.types, ufunc.nargs * ufunc.ntypes)
    expected = [np.dtype(char).num for types in ufunc.types for char in types.replace("->", "")]
    if list(numbers) != expected:
        raise CodegenError(f"the table of the ufunc {ufunc.__name__} has an unknown layout")
    return head


@cache
def _pair(name: str) -> Any:
    """Return a loop and its pointer as two words, which stay where they are."""
    ufunc, types = _parts(name)
    if types not in ufunc.types:
        raise CodegenError(f"the ufunc {ufunc.__name__} has no loop {types}")
    head, number = head_of(ufunc), ufunc.types.index(types)
    return (ctypes.c_void_p * 2)(head.functions[number], head.data[number] if head.data else None)


def address(name: str) -> int:
    """Return the address of the two words of a loop, such as ``scipy.special.jv/dd->d``.

    Raises:
        CodegenError: if there is no such loop.
    """
    return ctypes.addressof(_pair(name))


def run(name: str, start: int, stop: int, *steps_and_pointers: Any) -> None:
    """Run a loop on the pointers of the Python back end, as kernels/intrinsics/ufunc_loops.py does on memory."""
    ufunc, _ = _parts(name)
    steps, pointers = steps_and_pointers[: ufunc.nargs], steps_and_pointers[ufunc.nargs :]
    if start >= stop:
        return
    operands = [
        pointer.span(start, stop - start) if step else pointer.span(0, 1)
        for step, pointer in zip(steps[: ufunc.nin], pointers, strict=False)
    ]
    results = ufunc(*operands)
    for pointer, result in zip(pointers[ufunc.nin :], results if ufunc.nout > 1 else (results,), strict=True):
        pointer.span(start, stop - start)[:] = result


def run_matrices(name: str, start: int, stop: int, *sizes_and_pointers: Any) -> None:
    """Run a loop over matrices on the pointers of the Python back end, as kernels/intrinsics/ufunc_loops.py does."""
    ufunc, _ = _parts(name)
    pointers = sizes_and_pointers[-ufunc.nargs :]
    axes = [re.findall(r"\w+", part) for part in re.findall(r"\(([^)]*)\)", ufunc.signature or "")]
    sizes = dict(zip(dict.fromkeys(axis for part in axes for axis in part), sizes_and_pointers, strict=False))
    if start >= stop:
        return
    shapes = [(stop - start, *[sizes[axis] for axis in part]) for part in axes]
    views = [
        pointer.span(start * prod(shape[1:]), prod(shape)).reshape(shape) if prod(shape) else np.zeros(shape)
        for pointer, shape in zip(pointers, shapes, strict=True)
    ]
    results = ufunc(*views[: ufunc.nin])
    for view, result in zip(views[ufunc.nin :], results if ufunc.nout > 1 else (results,), strict=True):
        view[...] = result


def run_products(name: str, start: int, stop: int, n: int, k: int, m: int, *steps_and_pointers: Any) -> None:
    """Run matrix products on the pointers of the Python back end, as kernels/intrinsics/ufunc_loops.py does."""
    if start >= stop or not n * m:
        return
    is_complex, is_gram = "complex_" in name, "_gram/" in name
    steps = steps_and_pointers[: 2 if is_gram else 4]
    shapes = [(n, k), (n, m)] if is_gram else [(n, k), (k, m), (n, m)]
    views = []
    for pointer, shape in zip(steps_and_pointers[len(steps) :], shapes, strict=True):
        size = prod(shape) * (2 if is_complex else 1)
        span = pointer.span(start * size, (stop - start) * size) if size else np.zeros(0, pointer.dtype)
        views.append((span.view(complex_dtype(span.dtype)) if is_complex else span, shape))
    *factors, (out, _) = views
    matrices = [
        np.lib.stride_tricks.as_strided(
            view,
            (stop - start, *shape),
            [step * view.itemsize for step in (prod(shape), *steps[2 * i : 2 * i + 2])],
        )
        for i, (view, shape) in enumerate(factors)
    ]
    x, y = (*matrices, matrices[0].swapaxes(1, 2))[:2]
    out.reshape(stop - start, n, m)[...] = np.matmul(x, y)


def run_lines(name: str, start: int, stop: int, *numbers_and_pointers: Any) -> None:
    """Run a loop over lines on the pointers of the Python back end, as kernels/intrinsics/ufunc_loops.py does."""
    ufunc, types = _parts(name)
    bundle, total, lines, n_in, n_out, *places, x, factor, z = numbers_and_pointers
    for number in range(start * bundle, min(stop * bundle, total)):
        group, line = divmod(number, lines)
        operand, result = (
            _line(pointer, np.dtype(char), count, group * far + line * near, step)
            for pointer, char, count, (far, near, step) in (
                (x, types[0], n_in, places[:3]),
                (z, types[-1], n_out, places[3:]),
            )
        )
        ufunc(operand, factor[0], out=result)


def _line(pointer: Any, dtype: np.dtype, count: int, offset: int, step: int) -> np.ndarray:
    """Return the elements of a line that begins `offset` bytes from a pointer to numbers, or to parts of them."""
    size = pointer.dtype.itemsize
    found = pointer.span(offset // size, ((count - 1) * step + dtype.itemsize) // size)
    first = found[: dtype.itemsize // size].view(dtype)
    return np.lib.stride_tricks.as_strided(first, (count,), (step,))
