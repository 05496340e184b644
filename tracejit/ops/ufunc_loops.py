# SPDX-License-Identifier: BSD-3-Clause
"""Ops whose kernel is the inner loop of a ufunc of SciPy, called by its address from the program.

Those of numpy.linalg are in matrix_ufuncs.py. Some of SciPy's functions have vector code of their own instead
(kernels/intrinsics/special.py).

SciPy's ufuncs are looked up, and SciPy is imported, when the first of their ops is used.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval, broadcast_shapes
from tracejit.errors import ArgumentError, DTypeError
from tracejit.ops.batch import aligned
from tracejit.ops.elementwise import format_of
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample, Scalar, Vjp

PREFIX = "special."
_MODULES = ("scipy.special", "scipy.special._ufuncs", "scipy.special._special_ufuncs")

Loop = tuple[tuple[np.dtype, ...], tuple[np.dtype, ...]]


@cache
def ufunc_of(name: str) -> np.ufunc:
    """Return SciPy's ufunc of a name.

    Raises:
        ArgumentError: if the SciPy that is installed has none.
    """
    for module in _MODULES:
        try:
            ufunc = getattr(importlib.import_module(module), name, None)
        except ImportError:  # of a private module, which another version of SciPy may lack
            continue
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            return ufunc
    raise ArgumentError(
        f"scipy.special.{name}: the SciPy that is installed has no such function; install another version."
    )


@lru_cache(maxsize=4096)
def loop_for(name: str, dtypes: tuple[Any, ...]) -> Loop:
    """Return the dtypes of operands and of results for which SciPy computes a function of operands.

    Args:
        name: the function.
        dtypes: those of the operands; `int` and `float` for Python numbers.

    Raises:
        DTypeError: if the function is not defined for them.
    """
    ufunc = ufunc_of(name)
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
    except TypeError:
        resolved = ()
    if not resolved or any(dtype.kind not in "fiu" for dtype in resolved[ufunc.nin :]):
        names = ", ".join(str(getattr(dtype, "__name__", dtype)) for dtype in dtypes)
        raise DTypeError(
            f"special.{name}: not defined for {names}; cast the operands first (x.astype(np.float64))."
        )
    return tuple(resolved[: ufunc.nin]), tuple(resolved[ufunc.nin :])


def routine_name(name: str, loop: Loop) -> str:
    """Return the name of a loop in programs: ``scipy.special.jv/dd->d``."""
    operands, results = ("".join(dtype.char for dtype in part) for part in loop)
    return f"scipy.special.{name}/{operands}->{results}"


def loop_op(
    name: str, count: int, results: int, doc: str, vjp: Vjp | None, samples: tuple[Sample, ...],
    domain: tuple[float, float], ns: float | None, cost: int | None = None,
) -> Op:  # fmt: skip
    """Return the record of one of SciPy's functions.

    Args:
        name: the function, without its package.
        count: the number of operands.
        results: the number of results.
        doc: the function in a line.
        vjp: its adjoint.
        samples: for the generated tests.
        domain: where it is defined and smooth, for the tests.
        ns: about how long an element takes; None: only the caller's thread computes it.
        cost: that of the function's own vector code, which replaces the loop; None: there is none.
    """

    @lru_cache(maxsize=256)
    def infer(*avals: Aval) -> Aval | tuple[Aval, ...]:
        shape, format = broadcast_shapes(PREFIX + name, avals), format_of(avals)
        dtypes = loop_for(name, tuple([aval.dtype for aval in avals]))[1]
        outputs = tuple([Aval(shape, format, dtype) for dtype in dtypes])
        return outputs[0] if results == 1 else outputs

    def numbers(out: Any, *avals: Aval) -> Sequence[int]:
        outs = (out,) if results == 1 else out
        elements = prod(outs[0].shape)
        steps = [aval.dtype.itemsize if prod(aval.shape) == elements else 0 for aval in avals]
        return (0, elements, *steps, *[aval.dtype.itemsize for aval in outs])

    def routine(*avals: Aval) -> str:
        return routine_name(name, loop_for(name, tuple([aval.dtype for aval in avals])))

    def promote(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
        return loop_for(name, dtypes)[0]

    if cost is not None:
        operands = ", ".join(f"{{{i}}}" for i in range(count))
        return Op(
            name=PREFIX + name, doc=doc, kind=Kind.ELEMENTWISE, infer=infer, numpy=_reference(name), vjp=vjp,
            emit=Scalar(f"special_{name}_{{T}}({operands})", cost), samples=samples, promote=promote,
            domain=domain, analytic=False,
        )  # fmt: skip
    return Op(
        name=PREFIX + name,
        doc=doc,
        kind=Kind.KERNEL,
        infer=infer,
        numpy=_reference(name),
        vjp=vjp,
        emit=KernelCall(
            f"ufunc_loop_{count + results}",
            numbers,
            cut=None if ns is None else RangeCut(lambda numbers: numbers[1] * ns, lambda numbers: numbers[1]),
            routine=routine,
            is_aligned=True,
        ),
        samples=samples,
        promote=promote,
        batch=aligned,
        domain=domain,
        analytic=False,
    )


def _reference(name: str) -> Callable[..., Any]:
    def reference(*arrays: np.ndarray) -> Any:
        return ufunc_of(name)(*arrays)

    return reference
