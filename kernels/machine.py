# SPDX-License-Identifier: BSD-3-Clause
"""What the executor and its threads need below the language: addresses, atomic words, locks, the control register."""

import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from .state import HAS_CONTROL_REGISTER, HAS_THREADS


@intrinsic  # type: ignore[untyped-decorator]
def call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call the kernel at `address` with a pointer to its arguments."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64).as_pointer()])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return signature(types.none, types.intp, arguments), codegen


@intrinsic  # type: ignore[untyped-decorator]
def call_parts(typing_context: Any, address: Any, pool: Any, rows: Any, arguments: Any) -> Any:
    """Call threads.run_parts, which is at `address`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64).as_pointer()] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return signature(types.none, types.intp, pool, rows, arguments), codegen


@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing_context: Any, pointer: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], ir.IntType(64))

    return signature(types.intp, pointer), codegen


@intrinsic  # type: ignore[untyped-decorator]
def advance(typing_context: Any, pointer: Any, count: Any) -> Any:
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


word_at = _reader(64)
half_at = _reader(32)


@intrinsic  # type: ignore[untyped-decorator]
def pointer(typing_context: Any, address: Any) -> Any:
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


read_control = _control("llvm.x86.sse.stmxcsr", sets=False)
set_control = _control("llvm.x86.sse.ldmxcsr", sets=True)


def _atomic(result: Any, operation: Any, operands: int) -> Any:
    """Return a function of a pointer, a place and `operands` words that is one atomic operation on the word there."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = operation(builder, builder.gep(args[0], [args[1]]), *args[2:])
        return context.get_dummy_value() if result is types.none else found

    if operands == 0:

        @intrinsic  # type: ignore[untyped-decorator]
        def atomic(typing_context: Any, pointer: Any, at: Any) -> Any:
            return signature(result, pointer, types.intp), lower

    elif operands == 1:

        @intrinsic  # type: ignore[untyped-decorator]
        def atomic(typing_context: Any, pointer: Any, at: Any, value: Any) -> Any:
            return signature(result, pointer, types.intp, types.intp), lower

    else:

        @intrinsic  # type: ignore[untyped-decorator]
        def atomic(typing_context: Any, pointer: Any, at: Any, expected: Any, value: Any) -> Any:
            return signature(result, pointer, types.intp, types.intp, types.intp), lower

    return atomic


load_word = _atomic(types.intp, lambda b, place: b.load_atomic(place, "seq_cst", 8), 0)
store_word = _atomic(types.none, lambda b, place, value: b.store_atomic(value, place, "seq_cst", 8), 1)
add_word = _atomic(types.intp, lambda b, place, value: b.atomic_rmw("add", place, value, "seq_cst"), 1)
exchange_word = _atomic(
    types.boolean,
    lambda b, place, expected, value: b.extract_value(
        b.cmpxchg(place, expected, value, "seq_cst", "seq_cst"), 1
    ),
    2,
)
"""exchange_word(pointer, at, expected, value): store `value` if the word is `expected`; give whether it was."""


def _system(name: str, operands: int) -> Any:
    """Return a function that calls a routine of the system with addresses; without threads it does nothing."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if HAS_THREADS:
            address = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.IntType(32), [address] * operands)
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [builder.bitcast(part, address) for part in args])
        return context.get_dummy_value()

    if operands == 0:

        @intrinsic  # type: ignore[untyped-decorator]
        def system(typing_context: Any) -> Any:
            return signature(types.none), lower

    elif operands == 1:

        @intrinsic  # type: ignore[untyped-decorator]
        def system(typing_context: Any, first: Any) -> Any:
            return signature(types.none, first), lower

    else:

        @intrinsic  # type: ignore[untyped-decorator]
        def system(typing_context: Any, first: Any, second: Any) -> Any:
            return signature(types.none, first, second), lower

    return system


lock = _system("pthread_mutex_lock", 1)
unlock = _system("pthread_mutex_unlock", 1)
wait_for = _system("pthread_cond_wait", 2)
wake_all = _system("pthread_cond_broadcast", 1)
give_way = _system("sched_yield", 0)


_MONOTONIC = 6 if sys.platform == "darwin" else 1


@intrinsic  # type: ignore[untyped-decorator]
def now_ns(typing_context: Any) -> Any:
    """Return a time in nanoseconds, from the clock that only goes forward."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word, clock = ir.IntType(64), ir.IntType(32)
        if not HAS_THREADS:
            return word(0)
        slot = cgutils.alloca_once(builder, ir.ArrayType(word, 2))  # seconds, nanoseconds
        kind = ir.FunctionType(clock, [clock, slot.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [clock(_MONOTONIC), slot])
        seconds, rest = (builder.extract_value(builder.load(slot), i) for i in range(2))
        return builder.add(builder.mul(seconds, word(10**9)), rest)

    return signature(types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def pause(typing_context: Any) -> Any:
    """Let a waiting loop use less of the CPU."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if HAS_CONTROL_REGISTER:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return signature(types.none), codegen
