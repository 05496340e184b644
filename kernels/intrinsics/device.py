# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a device's threads that emitted kernels call: numbers of threads, and exchanges between them.

thread(), threads()      the number of this thread among all of the launch, and how many there are
group(), groups()        the same for its group of 32 threads, which take each step together
lane()                   the number of this thread in its group
together()               waits for the other threads of the group; what they wrote can be read then
block(), blocks()        the number of this thread's block, and how many there are
thread_of_block(), threads_of_block()
                         the number of this thread in its block, and how many there are
barrier()                waits for the other threads of the block; what they wrote can be read then
shared_f32(number, size) memory of `size` elements that the threads of a block share; other numbers are other memory
item_f32(v, number)      a lane of a vector
fma_f32(x, y, z)         x y + z rounded once, also of vectors
registers(count)         limits the registers of a thread of this kernel, so that more threads run side by side
across_f32(x, step)      the x of the thread of this group whose number differs in the bit `step`
index(n)                 an integer as one of 32 bits, in which indices are computed
quotient(n, m)           n // m and n % m of indices that are not negative
remainder(n, m)
index64(n), quotient64(n, m), remainder64(n, m)
                         the same in 64 bits, for what is too large for 32
four(x, at)              the elements of x from `at` on, which lie at a multiple of 16 bytes
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from .pointers import DTYPES, TypedPointer, annotate
from .vectors import Vector, widened

_I32 = ir.IntType(32)
_SHIFT = 5  # a group has 2**5 threads
_ALL = -1  # the threads of a group that exchange
_SHARED = 3  # the address space of memory that the threads of a block share
_SHARED_SCOPE = 120  # and the next ones: beyond the operands that kernels write
_SHARED_ALIGNMENT = 16  # bytes
_FOUR, _ALIGNMENT = 4, 16


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    """Append the call of a function of the device."""
    module = builder.module
    kind = ir.FunctionType(result, [value.type for value in values])
    function = module.globals.get(name) or ir.Function(module, kind, name)
    return builder.call(function, values)


def _register(builder: ir.IRBuilder, name: str) -> ir.Value:
    return _call(builder, f"llvm.nvvm.read.ptx.sreg.{name}", _I32)


def _thread(builder: ir.IRBuilder) -> ir.Value:
    first = builder.mul(_register(builder, "ctaid.x"), _register(builder, "ntid.x"))
    return builder.add(first, _register(builder, "tid.x"))


def _threads(builder: ir.IRBuilder) -> ir.Value:
    return builder.mul(_register(builder, "nctaid.x"), _register(builder, "ntid.x"))


def _shifted(number: Callable[[ir.IRBuilder], ir.Value]) -> Callable[[ir.IRBuilder], ir.Value]:
    return lambda builder: builder.lshr(number(builder), ir.Constant(_I32, _SHIFT))


def _lane(builder: ir.IRBuilder) -> ir.Value:
    return builder.and_(_register(builder, "tid.x"), ir.Constant(_I32, (1 << _SHIFT) - 1))


def _place(emit: Callable[[ir.IRBuilder], ir.Value]) -> Any:
    """Return a function without arguments whose result is an index."""

    @intrinsic
    def place(typing_context: Any) -> Any:
        return signature(types.int32), lambda context, builder, sig, args: emit(builder)

    return place


@intrinsic
def _together(typing_context: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _call(builder, "llvm.nvvm.bar.warp.sync", ir.VoidType(), ir.Constant(_I32, _ALL))
        return context.get_dummy_value()

    return signature(types.void), code


def _index(kind: types.Integer) -> Any:
    @intrinsic
    def index(typing_context: Any, number: Any) -> Any:
        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            return context.cast(builder, args[0], number, kind)

        return signature(kind, number), code

    return index


def _divided(name: str, kind: types.Integer) -> Any:
    @intrinsic
    def divided(typing_context: Any, number: Any, divisor: Any) -> Any:
        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            return getattr(builder, name)(*args)

        return signature(kind, kind, kind), code

    return divided


def _exchanged(builder: ir.IRBuilder, bits: ir.Value, step: ir.Value) -> ir.Value:
    """Return 32 bits of the thread whose number differs by `step`."""
    last = ir.Constant(_I32, (1 << _SHIFT) - 1)
    return _call(builder, "llvm.nvvm.shfl.sync.bfly.i32", _I32, ir.Constant(_I32, _ALL), bits, step, last)


def _across(dtype: types.Type) -> Any:
    @intrinsic
    def across(typing_context: Any, x: Any, step: Any) -> Any:
        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            value, step = args
            kind = value.type
            wide = kind == ir.DoubleType() or (isinstance(kind, ir.IntType) and kind.width == 64)
            if not wide:
                if isinstance(kind, ir.IntType):
                    bits = builder.zext(value, _I32) if kind.width < 32 else value
                    found = _exchanged(builder, bits, step)
                    return builder.trunc(found, kind) if kind.width < 32 else found
                return builder.bitcast(_exchanged(builder, builder.bitcast(value, _I32), step), kind)
            both = ir.IntType(64)
            bits = value if isinstance(kind, ir.IntType) else builder.bitcast(value, both)
            low = _exchanged(builder, builder.trunc(bits, _I32), step)
            high = _exchanged(builder, builder.trunc(builder.lshr(bits, ir.Constant(both, 32)), _I32), step)
            joined = builder.or_(
                builder.zext(low, both), builder.shl(builder.zext(high, both), ir.Constant(both, 32))
            )
            return joined if isinstance(kind, ir.IntType) else builder.bitcast(joined, kind)

        return signature(dtype, dtype, types.int32), code

    return across


def _fma(dtype: types.Type) -> Any:
    @intrinsic
    def fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        vector = next((kind for kind in (x, y, z) if isinstance(kind, Vector)), None)

        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            if vector is not None:
                pairs = zip(args, sig.args, strict=True)
                args = [widened(context, builder, *pair, vector) for pair in pairs]
                return _call(builder, f"llvm.fma.{vector.mangled}", vector.llvm, *args)
            return builder.fma(*args)

        return (signature(dtype, dtype, dtype, dtype) if vector is None else signature(vector, x, y, z)), code

    return fma


@intrinsic
def _barrier(typing_context: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        _call(builder, "llvm.nvvm.barrier0", ir.VoidType())
        return context.get_dummy_value()

    return signature(types.void), code


@intrinsic(prefer_literal=True)
def _registers(typing_context: Any, count: Any) -> Any:
    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        text = f'"nvvm.maxnreg"="{count.literal_value}"'
        set.add(builder.function.attributes, text)  # llvmlite knows fewer attributes than LLVM
        return context.get_dummy_value()

    return signature(types.void, count), code


def _shared(suffix: str, dtype: types.Type) -> Any:
    @intrinsic(prefer_literal=True)
    def shared(typing_context: Any, number: Any, size: Any) -> Any:
        if not isinstance(number, types.IntegerLiteral) or not isinstance(size, types.IntegerLiteral):
            return None
        pointer = TypedPointer(dtype, _SHARED_SCOPE + number.literal_value)

        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            kind = ir.ArrayType(context.get_data_type(dtype), size.literal_value)
            name = f"shared_{suffix}_{number.literal_value}"
            memory = ir.GlobalVariable(builder.module, kind, name, addrspace=_SHARED)
            memory.initializer, memory.linkage = ir.Constant(kind, ir.Undefined), "internal"
            memory.align = _SHARED_ALIGNMENT
            there = builder.addrspacecast(memory, kind.as_pointer())
            return builder.bitcast(there, context.get_value_type(sig.return_type))

        return signature(pointer, number, size), code

    return shared


def _item(dtype: types.Type) -> Any:
    @intrinsic(prefer_literal=True)
    def item(typing_context: Any, vector: Any, number: Any) -> Any:
        def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            return builder.extract_element(args[0], ir.Constant(_I32, number.literal_value))

        return signature(dtype, vector, number), code

    return item


@intrinsic
def _four(typing_context: Any, pointer: Any, at: Any) -> Any:
    result = types.UniTuple(pointer.dtype, _FOUR)

    def code(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        vector = ir.VectorType(context.get_data_type(pointer.dtype), _FOUR)
        place = builder.bitcast(builder.gep(args[0], [args[1]]), vector.as_pointer())
        loaded = builder.load(place, align=_ALIGNMENT)
        annotate(builder.module, loaded, pointer.scope)
        elements = [builder.extract_element(loaded, ir.Constant(_I32, number)) for number in range(_FOUR)]
        return context.make_tuple(builder, result, elements)

    return signature(result, pointer, types.intp), code


FUNCTIONS: dict[str, Any] = {
    "thread": _place(_thread), "threads": _place(_threads), "lane": _place(_lane),
    "group": _place(_shifted(_thread)), "groups": _place(_shifted(_threads)),
    "block": _place(lambda builder: _register(builder, "ctaid.x")),
    "blocks": _place(lambda builder: _register(builder, "nctaid.x")),
    "thread_of_block": _place(lambda builder: _register(builder, "tid.x")),
    "threads_of_block": _place(lambda builder: _register(builder, "ntid.x")),
    "together": _together, "barrier": _barrier, "registers": _registers, "four": _four,
    "index": _index(types.int32), "index64": _index(types.int64),
    "quotient": _divided("udiv", types.int32), "quotient64": _divided("udiv", types.int64),
    "remainder": _divided("urem", types.int32), "remainder64": _divided("urem", types.int64),
    "fma_f32": _fma(types.float32), "fma_f64": _fma(types.float64),
    **{f"across_{suffix}": _across(dtype) for suffix, dtype in DTYPES.items()},
    **{f"shared_{suffix}": _shared(suffix, dtype) for suffix, dtype in DTYPES.items()},
    "item_f32": _item(types.float32), "item_f64": _item(types.float64),
}  # fmt: skip
