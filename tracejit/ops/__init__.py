# SPDX-License-Identifier: BSD-3-Clause
"""The ops: one record each, a file per family, collected here by name.

In: sizes, formats and dtypes of operands. Out: those of results; a reference in NumPy, an adjoint, and what to emit.
May import: aval.py and below. Records neither build graphs nor emit source themselves: they are handed a builder.
"""

from tracejit.ops import complex, elementwise, indexing, linear, movement, random, reduce
from tracejit.ops.op import Kind, Layout, Op, Table

OPS = Table(
    [elementwise.OPS, complex.OPS, movement.OPS, indexing.OPS, reduce.OPS, linear.OPS, random.OPS],
    late=(
        "attention",
        "recurrent",
        "convolution",
        "pooling",
        "embedding",
        "resampling",
        "bits",
        "half_bits",
        "order",
        "sliding",
        "ctc",
        "linalg",
        "spectral",
        "numpy_products",
        "fourier",
        "fourier_ufuncs",
        "special",
        "fractions",
        "sparse",
    ),
)

_LOOPS = ("scan", "cond", "while")  # passes/graph has their records

__all__ = ["OPS", "Kind", "Layout", "Op", "name_apart"]


def name_apart(name: str) -> str:
    """Return a name for the op of a user's function: passes know ops by name, and no op of the table has it.

    >>> name_apart("distance"), name_apart("matmul")
    ('distance', 'matmul_')
    """
    return f"{name}_" if name in OPS or name in _LOOPS else name
