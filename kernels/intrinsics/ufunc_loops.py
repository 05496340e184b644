# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the inner loop of a ufunc, the C function that NumPy runs for operands of some dtypes.

The loops of numpy.linalg run over matrices: after the number of matrices, such a loop gets the sizes of one, and after
the steps from matrix to matrix, the steps within one. Those of numpy.fft run over lines in the same way.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from ..executor.state import CPU, FLUSH_TO_ZERO
from .pointers import TypedPointer

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
MOST = 8  # operands and results of a ufunc
MATRICES = {
    "eigh_lo": ("nn", "n", "nn"),
    "eigvalsh_lo": ("nn", "n"),
    "svd_s": ("mn", "mk", "k", "kn"),
    "svd": ("mn", "k"),
}
"""The axes of one matrix of each operand and result, by ufunc of numpy.linalg."""
PRODUCTS = ("complex_product", "complex_gram", "real_gram")
"""Products by the loop of np.matmul; the elements of complex ones are two real numbers each."""
FOURIER = ("fft", "ifft", "irfft", "rfft_n_even", "rfft_n_odd")
"""The ufuncs of numpy.fft, which take lines, one factor for all, and give lines."""


def _emit(builder: ir.IRBuilder, args: Any, sizes: Any, steps: Any, arrays: Any) -> None:
    """Emit loop(addresses, sizes, steps, data), with addresses moved on to the first element.

    Args:
        builder: where to.
        args: the routine, the first element and the one after the last.
        sizes: of one element, if it is a matrix.
        steps: from element to element, of each array, and then those within an element.
        arrays: pointers to operands and results.
    """
    routine, start, stop = args
    byte = _BYTE.as_pointer()
    pair = builder.inttoptr(routine, byte.as_pointer())
    zero = ir.Constant(ir.IntType(32), 0)

    def listed(kind: Any, values: Any) -> Any:
        slot = cgutils.alloca_once(builder, ir.ArrayType(kind, len(values)))
        for i, value in enumerate(values):
            builder.store(value, builder.gep(slot, [zero, ir.Constant(ir.IntType(32), i)]))
        return builder.gep(slot, [zero, zero])

    moved = [
        builder.gep(builder.bitcast(array, byte), [builder.mul(start, step)])
        for array, step in zip(arrays, steps, strict=False)
    ]
    numbers = listed(byte, moved), listed(_WORD, [builder.sub(stop, start), *sizes]), listed(_WORD, steps)
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), _WORD.as_pointer(), _WORD.as_pointer(), byte])
    loop = builder.bitcast(builder.load(pair), kind.as_pointer())
    data = builder.load(builder.gep(pair, [ir.Constant(ir.IntType(32), 1)]))
    control = _keep_denormals(builder)
    builder.call(loop, [*numbers, data])
    _set_control(builder, control)


def _of_matrices(builder: ir.IRBuilder, axes: tuple[str, ...], args: Any, widths: list[int]) -> None:
    """Emit the call of a loop over matrices that lie one after the other, each row by row."""
    letters = "".join(dict.fromkeys("".join(axes)))
    sizes = dict(zip(letters, args[3:], strict=False))
    outer, inner = [], []
    for part, width in zip(axes, widths, strict=True):
        step = ir.Constant(_WORD, width)
        within = []
        for letter in reversed(part):
            within.append(step)
            step = builder.mul(step, sizes[letter])
        outer.append(step)
        inner += reversed(within)
    _emit(builder, args[:3], [*sizes.values()], [*outer, *inner], args[3 + len(sizes) :])


def _of_products(builder: ir.IRBuilder, is_gram: bool, args: Any, width: int) -> None:
    """Emit the call of the loop over products (n, k) (k, m) of matrices that lie one after the other.

    Args:
        builder: where to.
        is_gram: whether the second factor is the first one transposed: OpenBLAS then computes one half.
        args: the routine, the first matrix and the one after the last, n, k, m, the steps between rows and between
            columns of each factor, in elements, and the arrays.
        width: bytes of an element.
    """
    n, k, m = args[3:6]
    steps, arrays = ([*args[6:8]], [*args[8:]]) if is_gram else ([*args[6:10]], [*args[10:]])
    if is_gram:
        steps += reversed(steps)
        arrays.insert(1, arrays[0])
    one = ir.Constant(_WORD, 1)
    sizes = [builder.mul(*pair) for pair in ((n, k), (k, m), (n, m))]
    inner = [builder.mul(step, ir.Constant(_WORD, width)) for step in (*sizes, *steps, m, one)]
    _emit(builder, args[:3], [n, k, m], inner, arrays)


def _of_lines(builder: ir.IRBuilder, args: Any) -> None:
    """Emit calls of a loop over lines, one for each group of lines that lie at equal distances."""
    routine, start, stop, bundle, total, lines, n_in, n_out, *places, x, factor, z = args
    byte, zero = _BYTE.as_pointer(), ir.Constant(_WORD, 0)
    given, made = places[:3], places[3:]
    one = ir.Constant(_WORD, 1)
    start, stop = builder.mul(start, bundle), builder.mul(stop, bundle)
    stop = builder.select(builder.icmp_signed("<", stop, total), stop, total)
    end = builder.sdiv(builder.sub(builder.add(stop, lines), one), lines)
    with cgutils.for_range(builder, end, builder.sdiv(start, lines)) as loop:
        base = builder.mul(loop.index, lines)
        first, last = builder.sub(start, base), builder.sub(stop, base)
        first = builder.select(builder.icmp_signed(">", first, zero), first, zero)
        last = builder.select(builder.icmp_signed("<", last, lines), last, lines)
        moved = [
            builder.gep(builder.bitcast(array, byte), [builder.mul(loop.index, distances[0])])
            for array, distances in ((x, given), (z, made))
        ]
        steps = [given[1], zero, made[1], given[2], made[2]]
        _emit(builder, (routine, first, last), [n_in, n_out], steps, [moved[0], factor, moved[1]])


def _keep_denormals(builder: ir.IRBuilder) -> Any:
    """Let denormal numbers be numbers, which SciPy's loops rely on; return what the register of the CPU held before."""
    control = _control(builder)
    if control is not None:
        _set_control(builder, builder.and_(control, ir.Constant(control.type, ~FLUSH_TO_ZERO)))
    return control


def _routine(builder: ir.IRBuilder, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [x.type for x in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _control(builder: ir.IRBuilder) -> Any:
    """Return the register that controls arithmetic, None where there is none (as in kernels/executor/machine.py)."""
    if not FLUSH_TO_ZERO:
        return None
    if CPU == "aarch64":
        return _routine(builder, "llvm.aarch64.get.fpcr", _WORD)
    slot = cgutils.alloca_once(builder, ir.IntType(32))
    _routine(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), builder.bitcast(slot, _BYTE.as_pointer()))
    return builder.load(slot)


def _set_control(builder: ir.IRBuilder, control: Any) -> None:
    if control is None:
        return
    if CPU == "aarch64":
        _routine(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), control)
        return
    slot = cgutils.alloca_once(builder, ir.IntType(32))
    builder.store(control, slot)
    _routine(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), builder.bitcast(slot, _BYTE.as_pointer()))


def _define(name: str, words: int, count: int, emit: Callable[..., None]) -> Any:
    """Return name(*words, *arrays).

    Args:
        name: of the function.
        words: how many integers it takes.
        count: how many arrays.
        emit: emits its code from the builder, the arguments, and the bytes of an element of each array.
    """

    def typed(context: Any, *arguments: Any) -> Any:
        arrays = arguments[words:]
        if not all(isinstance(array, TypedPointer) for array in arrays):
            return None

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            widths = [getattr(array.dtype, "bitwidth", 8) // 8 for array in arrays]  # a bool has none
            emit(builder, args, widths)
            return context.get_dummy_value()

        return signature(types.none, *[types.intp] * words, *arrays), code

    # Numba reads the names of parameters.
    names = [f"word{i}" for i in range(words)] + [f"array{i}" for i in range(count)]
    source = f"lambda context, {', '.join(names)}: typed(context, {', '.join(names)})"
    function: Callable[..., Any] = eval(source, {"typed": typed})
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


def _of_elements(count: int) -> Any:
    def emit(builder: ir.IRBuilder, args: Any, widths: list[int]) -> None:
        _emit(builder, args[:3], [], args[3 : 3 + count], args[3 + count :])

    return _define(f"ufunc_loop_{count}", 3 + count, count, emit)


def _over_matrices(name: str, axes: tuple[str, ...]) -> Any:
    def emit(builder: ir.IRBuilder, args: Any, widths: list[int]) -> None:
        _of_matrices(builder, axes, args, widths)

    return _define(f"matrix_loop_{name}", 3 + len({*"".join(axes)}), len(axes), emit)


def _over_products(name: str) -> Any:
    is_gram, elements = name.endswith("gram"), 2 if name.startswith("complex") else 1
    words = 8 if is_gram else 10

    def emit(builder: ir.IRBuilder, args: Any, widths: list[int]) -> None:
        _of_products(builder, is_gram, args, elements * widths[0])

    return _define(f"matrix_loop_{name}", words, 2 if is_gram else 3, emit)


def _over_lines(name: str) -> Any:
    def emit(builder: ir.IRBuilder, args: Any, widths: list[int]) -> None:
        _of_lines(builder, args)

    return _define(f"fourier_loop_{name}", 14, 3, emit)


FUNCTIONS = {
    **{f"ufunc_loop_{count}": _of_elements(count) for count in range(2, MOST + 1)},
    **{f"matrix_loop_{name}": _over_matrices(name, axes) for name, axes in MATRICES.items()},
    **{f"matrix_loop_{name}": _over_products(name) for name in PRODUCTS},
    **{f"fourier_loop_{name}": _over_lines(name) for name in FOURIER},
}
"""ufunc_loop_n(routine, start, stop, *steps, *arrays): the elements from start to stop.

`routine` is the address of two words, the loop and its data. Steps are in bytes, 0 where one element serves all.
matrix_loop_name(routine, start, stop, *sizes, *arrays): the matrices from start to stop, of sizes in the order in which
MATRICES names them; those of PRODUCTS take steps of factors behind the sizes.
fourier_loop_name(routine, start, stop, bundle, total, lines, n_in, n_out, *places, x, factor, z): the bundles of lines
from start to stop, of `total` lines that come in groups of `lines`; n_in and n_out elements of a line are read and
written. `places` are the bytes between groups, lines and elements of x, and then of z."""
