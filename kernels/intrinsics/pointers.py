# SPDX-License-Identifier: BSD-3-Clause
"""The memory of emitted kernels: typed pointers, scratch memory, and numbers passed as integers.

Note [aliasing]
LLVM vectorises a loop only if stores cannot change what is loaded. The memory planner guarantees that all written
operands of a kernel are disjoint from each other and from all operands that are read. If a kernel overwrites elements
one by one, it also reads them through the written operand. Metadata says so: all read operands share one number, each
written operand has its own, and accesses of different numbers are disjoint. That replaces run-time overlap checks,
which LLVM gives up on beyond a few pointers. The metadata spells a number bit by bit: each bit is a domain of two
scopes, 0 and 1; an access is in the scopes of its bits, and noalias with the scopes of the opposite bits. Different
numbers differ in some bit, and LLVM takes two accesses as disjoint if they are in any domain. So a number takes 8
scopes; with a scope for each number, it would take a list of all others.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

DTYPES = {
    "f32": types.float32, "f64": types.float64, "b1": types.boolean,
    "i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64,
    "u8": types.uint8, "u16": types.uint16, "u32": types.uint32, "u64": types.uint64,
}  # fmt: skip

_SCOPE_BITS = 8
_WRITE_SCOPES = 128
_READ_SCOPE = _WRITE_SCOPES  # the number that all reads share
WIDEST = '"prefer-vector-width"="512"'
"""An attribute of functions; without it LLVM uses 256 bits on CPUs with registers of 512."""
NARROW = '"prefer-vector-width"="256"'
"""The attribute of functions whose vectors have 32 bytes."""
PROBED = '"probe-stack"="inline-asm"'
"""An attribute of functions: they touch each page of their scratch memory. Without it, a kernel on a thread whose stack
is too small would write to whatever lies beyond the page that guards the stack. It takes 3 ns for each page."""
_PROBED_BYTES = 1 << 19  # of scratch memory, from which on it is probed; most stacks have room for less


class TypedPointer(types.Type):  # type: ignore[misc]
    """A pointer to elements of a dtype, in an alias scope."""

    def __init__(self, dtype: types.Type, scope: int) -> None:
        self.dtype = dtype
        self.scope = scope
        super().__init__(f"Pointer({dtype}, {scope})")


@register_model(TypedPointer)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: TypedPointer) -> None:
        super().__init__(manager, kind, manager.lookup(kind.dtype).get_data_type().as_pointer())


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        pointer, index = args
        if isinstance(pointer, TypedPointer) and isinstance(index, types.Integer):
            return signature(pointer.dtype, pointer, types.intp)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        pointer, index, _ = args
        if isinstance(pointer, TypedPointer) and isinstance(index, types.Integer):
            return signature(types.none, pointer, types.intp, pointer.dtype)
        return None


def annotate(module: Any, instruction: Any, scope: int) -> None:
    """Mark an access as in `scope` and disjoint from all other scopes (Note [aliasing])."""
    metadata = module.__dict__.setdefault("tracejit_scopes", {})
    if scope not in metadata:
        own, others = [], []
        for bit in range(_SCOPE_BITS):
            domain = module.add_metadata([f"bit {bit}"])
            pair = [module.add_metadata([f"is {value}", domain]) for value in (0, 1)]
            value = scope >> bit & 1
            own.append(pair[value])
            others.append(pair[1 - value])
        metadata[scope] = module.add_metadata(own), module.add_metadata(others)
    inside, outside = metadata[scope]
    instruction.set_metadata("alias.scope", inside)
    instruction.set_metadata("noalias", outside)


def _place(builder: Any, pointer: Any, index: Any) -> Any:
    """Return the address of an element.

    In a row whose elements lie apart, such as start + i * 2, the start comes first: if the row's own places are in the
    array, LLVM knows that none of them wraps around, and reads whole vectors of neighbours instead of single elements.
    """
    if getattr(index, "opname", "") == "add":
        start, moved = index.operands
        if getattr(moved, "opname", "") == "mul" and isinstance(moved.operands[1], ir.Constant):
            pointer, index = builder.gep(pointer, [start], inbounds=True), moved
    return builder.gep(pointer, [index], inbounds=True)


@lower_builtin(operator.getitem, TypedPointer, types.intp)
def _load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    # What leaves an array is not read: so LLVM need not fear that a place beyond the largest address is one in front,
    # and makes vectors of every second number.
    loaded = builder.load(_place(builder, *args))
    annotate(builder.module, loaded, kind.scope)
    return context.data_model_manager[kind.dtype].from_data(builder, loaded)


@lower_builtin(operator.setitem, TypedPointer, types.intp, types.Any)
def _store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    value = context.data_model_manager[kind.dtype].as_data(builder, args[2])
    annotate(builder.module, builder.store(value, _place(builder, *args[:2])), kind.scope)
    return context.get_dummy_value()


def _to_pointer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    set.add(builder.function.attributes, WIDEST)  # llvmlite knows fewer attributes than LLVM
    return builder.inttoptr(args[0], context.get_value_type(sig.return_type))


def _reader(dtype: types.Type) -> Any:
    @intrinsic
    def read(typing_context: Any, address: Any) -> Any:
        return signature(TypedPointer(dtype, _READ_SCOPE), types.intp), _to_pointer

    return read


def _writer(dtype: types.Type) -> Any:
    @intrinsic(prefer_literal=True)
    def write(typing_context: Any, address: Any, scope: Any) -> Any:
        if not isinstance(scope, types.IntegerLiteral):
            return None
        number = scope.literal_value % _WRITE_SCOPES
        return signature(TypedPointer(dtype, number), types.intp, scope), _to_pointer

    return write


def _scratch(dtype: types.Type) -> Any:
    """Return a function that allocates `count` elements for as long as the kernel runs."""

    @intrinsic(prefer_literal=True)
    def scratch(typing_context: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            return None

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = ir.ArrayType(context.get_data_type(dtype), count.literal_value)
            if count.literal_value * getattr(dtype, "bitwidth", 8) > 8 * _PROBED_BYTES:
                set.add(builder.function.attributes, PROBED)
            # Not by cgutils.alloca_once, which fills the memory with zeros, one by one.
            with builder.goto_entry_block():
                slot = builder.alloca(kind)
            slot.align = 64
            return builder.bitcast(slot, context.get_value_type(sig.return_type))

        # In the scope of read operands: a variable may point to an operand or to a copy of it.
        return signature(TypedPointer(dtype, _READ_SCOPE), count), codegen

    return scratch


def _number(dtype: types.Type) -> Any:
    """Return a function that reads a number of a dtype from the low bits of an integer."""

    @intrinsic
    def number(typing_context: Any, bits: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = context.get_data_type(dtype)
            width = 64 if dtype == types.float64 else 32 if dtype == types.float32 else kind.width
            low = args[0] if width == 64 else builder.trunc(args[0], ir.IntType(width))
            if isinstance(dtype, types.Float):
                return builder.bitcast(low, kind)
            return context.data_model_manager[dtype].from_data(builder, low)

        return signature(dtype, types.intp), codegen

    return number


@intrinsic
def _vectors_of_32_bytes(typing_context: Any) -> Any:
    """Have LLVM make vectors of 32 bytes; a call stands behind those that take pointers."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        set.discard(builder.function.attributes, WIDEST)
        set.add(builder.function.attributes, NARROW)
        return context.get_dummy_value()

    return signature(types.none), codegen


def _functions() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {"vectors_of_32_bytes": _vectors_of_32_bytes}
    for suffix, dtype in DTYPES.items():
        table[f"read_{suffix}"] = _reader(dtype)
        table[f"write_{suffix}"] = _writer(dtype)
        table[f"number_{suffix}"] = _number(dtype)
        table[f"scratch_{suffix}"] = _scratch(dtype)
    return table


FUNCTIONS = _functions()
