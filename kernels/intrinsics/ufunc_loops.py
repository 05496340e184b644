# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the inner loop of a ufunc, the C function that NumPy runs for operands of some dtypes."""

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


def _emit(builder: ir.IRBuilder, count: int, args: Any) -> None:
    """Emit loop(addresses, &elements, steps, data), with addresses moved on to the first element."""
    routine, start, stop = args[:3]
    steps, arrays = args[3 : 3 + count], args[3 + count :]
    byte = _BYTE.as_pointer()
    pair = builder.inttoptr(routine, byte.as_pointer())
    words = ir.ArrayType(_WORD, count)
    addresses = cgutils.alloca_once(builder, ir.ArrayType(byte, count))
    extents = cgutils.alloca_once(builder, _WORD)
    strides = cgutils.alloca_once(builder, words)
    zero = ir.Constant(ir.IntType(32), 0)
    for i, (step, array) in enumerate(zip(steps, arrays, strict=True)):
        place = [zero, ir.Constant(ir.IntType(32), i)]
        first = builder.gep(builder.bitcast(array, byte), [builder.mul(start, step)])
        builder.store(first, builder.gep(addresses, place))
        builder.store(step, builder.gep(strides, place))
    builder.store(builder.sub(stop, start), extents)
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), _WORD.as_pointer(), _WORD.as_pointer(), byte])
    loop = builder.bitcast(builder.load(pair), kind.as_pointer())
    data = builder.load(builder.gep(pair, [ir.Constant(ir.IntType(32), 1)]))
    first_address = builder.gep(addresses, [zero, zero])
    control = _keep_denormals(builder)
    builder.call(loop, [first_address, extents, builder.gep(strides, [zero, zero]), data])
    _set_control(builder, control)


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


def _define(count: int) -> Any:
    """Return ufunc_loop_{count}(routine, start, stop, *steps, *arrays)."""

    def typed(context: Any, *arguments: Any) -> Any:
        words, arrays = arguments[: 3 + count], arguments[3 + count :]
        if not all(isinstance(array, TypedPointer) for array in arrays):
            return None

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            _emit(builder, count, args)
            return context.get_dummy_value()

        return signature(types.none, *[types.intp] * len(words), *arrays), code

    # Numba reads the names of parameters.
    names = [f"word{i}" for i in range(3 + count)] + [f"array{i}" for i in range(count)]
    source = f"lambda context, {', '.join(names)}: typed(context, {', '.join(names)})"
    function: Callable[..., Any] = eval(source, {"typed": typed})
    function.__name__ = function.__qualname__ = f"ufunc_loop_{count}"
    return intrinsic(function)


FUNCTIONS = {f"ufunc_loop_{count}": _define(count) for count in range(2, MOST + 1)}
"""(routine, start, stop, *steps, *arrays): the elements from start to stop.

`routine` is the address of two words, the loop and its data. Steps are in bytes, 0 where one element serves all."""
