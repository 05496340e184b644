# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the search for a first extremum needs beside those of kernels/intrinsics/lanes.py.

load_by_2_x16(x, at)       x[at + 2 * lane] of all lanes; the memory between them is read too; the distances are 1, 2,
                           minus_1 and minus_2
first_x16(condition)       the first lane in which a condition holds; their number if there is none
largest(v), smallest(v)    of all lanes, none of which is NaN
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from .lanes import LANES, SEVERAL
from .pointers import annotate
from .vectors import Vector, address, call, shuffle_mask

STEPS = {"1": 1, "2": 2, "minus_1": -1, "minus_2": -2}
"""The distances of neighbours, by their names."""


def _load_by(step: int, lanes: int) -> Any:
    @intrinsic
    def load_by(typing_context: Any, pointer: Any, at: Any) -> Any:
        vector = Vector(pointer.dtype, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            apart = abs(step)
            word = args[1].type
            start = args[1] if step > 0 else builder.sub(args[1], word((lanes - 1) * apart))
            # With two apart, the second vector ends with the last element that counts: behind it may be no memory.
            starts = [start] if apart == 1 else [start, builder.add(start, word(lanes - 1))]
            parts = [
                builder.load(address(builder, vector, args[0], at), align=vector.alignment) for at in starts
            ]
            for part in parts:
                annotate(builder.module, part, pointer.scope)
            if step == 1:
                return parts[0]
            order = list(range(lanes))
            if apart == 2:
                order = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
            if step < 0:
                order.reverse()
            return builder.shuffle_vector(parts[0], parts[-1], shuffle_mask(tuple(order)))

        return signature(vector, pointer, types.intp), codegen

    return load_by


def _first(lanes: int) -> Any:
    @intrinsic
    def first(typing_context: Any, condition: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = ir.IntType(lanes)
            place = call(
                builder, f"llvm.cttz.i{lanes}", kind, [builder.bitcast(args[0], kind), ir.IntType(1)(0)]
            )
            word = ir.IntType(64)
            return place if lanes == 64 else (builder.zext if lanes < 64 else builder.trunc)(place, word)

        return signature(types.intp, condition), codegen

    return first


def _furthest(name: str) -> Any:
    @intrinsic
    def furthest(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            function = f"llvm.vector.reduce.{name}.{value.mangled}"
            return call(builder, function, args[0].type.element, args, fastmath=("nnan", "nsz"))

        return signature(value.dtype, value), codegen

    return furthest


FUNCTIONS: dict[str, Any] = {"largest": _furthest("fmax"), "smallest": _furthest("fmin")}
for _lanes in (*LANES, *SEVERAL):
    FUNCTIONS[f"first_x{_lanes}"] = _first(_lanes)
    FUNCTIONS.update({f"load_by_{name}_x{_lanes}": _load_by(step, _lanes) for name, step in STEPS.items()})
