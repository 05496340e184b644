# SPDX-License-Identifier: BSD-3-Clause
"""Names in emitted source: suffixes of dtypes, literals, and the names of kernels."""

import hashlib
from typing import Any

import numpy as np

from tracejit.program import Kernel

INDENT = "    "
NAME = "KERNEL"  # stands for the kernel's name in the text that is hashed
SUFFIXES = {
    np.dtype(name): suffix
    for name, suffix in {
        "float32": "f32", "float64": "f64", "bool": "b1",
        "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
        "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    }.items()
}  # fmt: skip
DTYPES = {suffix: dtype for dtype, suffix in SUFFIXES.items()}

_LITERALS = (0.0, 1.0, -1.0, 0.5)


def literal(number: Any, dtype: np.dtype) -> str | None:
    """Return a number as source text, or None if it should be an argument of the kernel.

    Only the few numbers that adjoints are full of are written out, for the reader and for LLVM. Any other number, such
    as 1 over the batch size, would need a kernel for each value.
    """
    value = np.asarray(number).item()
    if dtype.kind == "b":
        return str(bool(value))
    if value not in _LITERALS or (value == 0 and np.signbit(value)):
        return None
    return f"{SUFFIXES[dtype]}({value!r})"


def named(text: str, stem: str) -> Kernel:
    """Return a kernel from text in which NAME stands for its name."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = f"{stem}_{digest}"
    return Kernel(name, text.replace(NAME, name))
