# SPDX-License-Identifier: BSD-3-Clause
"""The executor: walks the table of a program. Compiled once for a process."""

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

SIGNATURE = types.void(*[types.CPointer(types.intp)] * 2, types.intp, types.CPointer(types.intp), types.intp,
                       types.CPointer(types.intp), types.intp)  # fmt: skip
"""run(arguments, rows, row_count, patches, patch_count, bases, data_offset)"""


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


@intrinsic  # type: ignore[untyped-decorator]
def _word_at(typing_context: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

    return signature(types.intp, types.intp), codegen


def run(
    arguments: Any, rows: Any, row_count: int, patches: Any, patch_count: int, bases: Any, data_offset: int
) -> None:
    """Fill in the addresses of this call's inputs and outputs, then launch every row.

    A row is (kernel address, place of its arguments). A patch is (place, index into bases, bytes to add).
    A base is the address of a NumPy array object, whose data pointer lies `data_offset` bytes into it, or,
    if `data_offset` is negative, the address of the data.
    """
    for i in range(patch_count):
        base = bases[patches[3 * i + 1]]
        if data_offset >= 0:
            base = _word_at(base + data_offset)
        arguments[patches[3 * i]] = base + patches[3 * i + 2]
    for i in range(row_count):
        _call(rows[2 * i], _advance(arguments, rows[2 * i + 1]))


def compile_callback(callback_signature: Any, function: Any) -> Any:
    """Return a function compiled as a C callback, whose code stands alone."""
    return numba.cfunc(callback_signature, nopython=True, error_model="numpy")(function)


def compile_executor() -> Any:
    """Return the executor as a compiled C callback."""
    return compile_callback(SIGNATURE, run)
