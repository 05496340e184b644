# SPDX-License-Identifier: BSD-3-Clause
"""The executor: walks the table of a program. Compiled once for a process."""

import platform
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

SIGNATURE = types.intp(types.CPointer(types.intp), types.intp, types.intp)
"""run(state, inputs, outputs) -> status"""

# Where CPython and NumPy keep what the executor reads, in bytes from the start of an object (64-bit builds).
TUPLE_ITEMS = 24
OBJECT_TYPE = 8
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 40, 56, 64
CONTIGUOUS_AND_ALIGNED = 0x101

# Words of the state.
ARGUMENTS, ROWS, ROW_COUNT, PATCHES, PATCH_COUNT, CHECKS, CHECK_COUNT, ARRAY_TYPE, FLUSH = range(9)
STATE_WORDS = 9

# Bits of the control register of SSE: results that are denormal become 0 (bit 15), so do operands (bit 6).
FLUSH_TO_ZERO = 0x8040
HAS_CONTROL_REGISTER = platform.machine().lower() in ("x86_64", "amd64")


@intrinsic  # type: ignore[untyped-decorator]
def _call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call the kernel at `address` with a pointer to its arguments."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64).as_pointer()])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return signature(types.none, types.intp, arguments), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _advance(typing_context: Any, pointer: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return signature(pointer, pointer, types.intp), codegen


def _reader(width: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def read(typing_context: Any, address: Any) -> Any:
        """Return the integer of `width` bits at an address."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = ir.IntType(width)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            return value if width == 64 else builder.sext(value, ir.IntType(64))

        return signature(types.intp, types.intp), codegen

    return read


_word_at = _reader(64)
_half_at = _reader(32)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(typing_context: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return signature(types.CPointer(types.intp), types.intp), codegen


def _control(name: str, sets: bool) -> Any:
    """Return a function that reads or sets the control register; on other machines it does nothing."""

    @intrinsic  # type: ignore[untyped-decorator]
    def control(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if not HAS_CONTROL_REGISTER:
                return args[0]
            word = ir.IntType(32)
            slot = cgutils.alloca_once(builder, word)
            if sets:
                builder.store(builder.trunc(args[0], word), slot)
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [builder.bitcast(slot, ir.IntType(8).as_pointer())])
            return builder.zext(builder.load(slot), ir.IntType(64))

        return signature(types.intp, types.intp), codegen

    return control


_read_control = _control("llvm.x86.sse.stmxcsr", sets=False)
_set_control = _control("llvm.x86.sse.ldmxcsr", sets=True)


def run(state: Any, inputs: int, outputs: int) -> int:
    """Check the inputs, fill in the addresses of this call's arrays, and launch every row.

    `inputs` and `outputs` are the addresses of tuples of NumPy arrays, which the caller keeps alive. The state
    is a list of words: the addresses of four tables and their lengths, the address of NumPy's array type, and whether
    denormal numbers count as 0 while the program runs. A check describes an
    input: (address of the dtype, axes, whether it has to be contiguous, sizes..., strides in bytes...). A patch is
    (place among the arguments, 0 for an input and 1 for an output, its number, bytes to add). A row is
    (kernel address, place of its arguments).

    Returns 0, or the number of the first input, counted from 1, that is not as its check says; nothing has run then.
    """
    checks = _pointer(state[CHECKS])
    at = 0
    for i in range(state[CHECK_COUNT]):
        array = _word_at(inputs + TUPLE_ITEMS + 8 * i)
        ndim = checks[at + 1]
        if (
            _word_at(array + OBJECT_TYPE) != state[ARRAY_TYPE]
            or _word_at(array + ARRAY_DTYPE) != checks[at]
            or _half_at(array + ARRAY_NDIM) != ndim
        ):
            return i + 1
        shape = _word_at(array + ARRAY_SHAPE)
        for axis in range(ndim):
            if _word_at(shape + 8 * axis) != checks[at + 3 + axis]:
                return i + 1
        if checks[at + 2] != 0:
            if _half_at(array + ARRAY_FLAGS) & CONTIGUOUS_AND_ALIGNED != CONTIGUOUS_AND_ALIGNED:
                return i + 1
        else:
            strides = _word_at(array + ARRAY_STRIDES)
            for axis in range(ndim):
                if _word_at(strides + 8 * axis) != checks[at + 3 + ndim + axis]:
                    return i + 1
        at += 3 + 2 * ndim
    arguments = _pointer(state[ARGUMENTS])
    patches = _pointer(state[PATCHES])
    for i in range(state[PATCH_COUNT]):
        arrays = outputs if patches[4 * i + 1] != 0 else inputs
        array = _word_at(arrays + TUPLE_ITEMS + 8 * patches[4 * i + 2])
        arguments[patches[4 * i]] = _word_at(array + ARRAY_DATA) + patches[4 * i + 3]
    rows = _pointer(state[ROWS])
    control = _read_control(0)
    if state[FLUSH] != 0:
        _set_control(control | FLUSH_TO_ZERO)
    for i in range(state[ROW_COUNT]):
        _call(rows[2 * i], _advance(arguments, rows[2 * i + 1]))
    if state[FLUSH] != 0:
        _set_control(control)
    return 0


def compile_callback(callback_signature: Any, function: Any) -> Any:
    """Return a function compiled as a C callback, whose code stands alone."""
    return numba.cfunc(callback_signature, nopython=True, error_model="numpy")(function)


def compile_executor() -> Any:
    """Return the executor as a compiled C callback."""
    return compile_callback(SIGNATURE, run)
