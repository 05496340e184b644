# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by BLAS routines whose addresses are arguments of the kernel."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic


def _call(dtype: types.Type) -> Any:
    """Return gemm in Fortran's calling convention: every argument by reference, matrices by columns."""

    @intrinsic
    def call(
        typing_context: Any, routine: Any, a_trans: Any, b_trans: Any, m: Any, n: Any, k: Any,
        a: Any, a_leading: Any, b: Any, b_leading: Any, c: Any, c_leading: Any, add: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            routine, a_trans, b_trans, m, n, k, a, a_leading, b, b_leading, c, c_leading, add = args
            real, c_int, char = context.get_value_type(dtype), ir.IntType(32), ir.IntType(8)

            def reference(value: Any, kind: Any) -> Any:
                slot = cgutils.alloca_once(builder, kind)
                builder.store(value, slot)
                return slot

            def letter(transposed: Any) -> Any:
                is_transposed = builder.icmp_signed("!=", transposed, ir.Constant(transposed.type, 0))
                return reference(builder.select(is_transposed, char(ord("T")), char(ord("N"))), char)

            def integer(value: Any) -> Any:
                return reference(builder.trunc(value, c_int), c_int)

            def pointer(address: Any) -> Any:
                return builder.inttoptr(address, real.as_pointer())

            one, kept = reference(real(1.0), real), reference(builder.uitofp(add, real), real)
            arguments = [
                letter(a_trans), letter(b_trans), integer(m), integer(n), integer(k), one,
                pointer(a), integer(a_leading), pointer(b), integer(b_leading), kept,
                pointer(c), integer(c_leading),
            ]  # fmt: skip
            kind = ir.FunctionType(ir.VoidType(), [x.type for x in arguments])
            builder.call(builder.inttoptr(routine, kind.as_pointer()), arguments)
            return context.get_dummy_value()

        return signature(types.none, *[types.intp] * 13), codegen

    return call


def _gemm(dtype: types.Type, itemsize: int) -> Any:
    call = _call(dtype)

    def gemm(
        routine: int, batch: int, m: int, n: int, k: int,
        x_transposed: int, x_leading: int, x_batch: int, y_transposed: int, y_leading: int, y_batch: int,
        add: int, x: int, y: int, out: int,
    ) -> None:  # fmt: skip
        # A matrix by rows here is its transpose by columns in Fortran: out' = y' x'.
        for i in range(batch):
            call(
                routine, y_transposed, x_transposed, n, m, k,
                y + i * y_batch * itemsize, y_leading, x + i * x_batch * itemsize, x_leading,
                out + i * m * n * itemsize, max(n, 1), add,
            )  # fmt: skip

    return gemm


FUNCTIONS = {"gemm_f32": _gemm(types.float32, 4), "gemm_f64": _gemm(types.float64, 8)}
"""(routine, batch, m, n, k, x_transposed, x_leading, x_batch, y_transposed, y_leading, y_batch, add, x, y, out), where
x, y and out are addresses; otherwise as gemm in kernels/loops/gemm.py."""
