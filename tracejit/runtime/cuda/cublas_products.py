# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by cuBLASLt, as nodes of a graph.

Note [products by the library]
The library reads matrices by columns. A result by rows is its own transpose by columns, so the library is asked for
out' = y' x', whose first operand is y and whose second one is x.

The library is asked for an algorithm once for each product, when the program is prepared. The first one counts that it
suggests for a workspace of at most MOST_WORKSPACE bytes and for the alignment that the addresses have in every call. So
the algorithm depends on the program, the library and the GPU, not on addresses or times, and the results of two runs
are equal to the bit. The library is never asked while a stream is captured, because some versions fail then.

float32 is computed as float32: the type of computation is CUBLAS_COMPUTE_32F, which does not round to TF32.

All products of a program share a workspace behind its arena. So each waits for the one before, even if it does not need
the other's result.
"""

import ctypes
import math
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np

from tracejit.kernels.executor.state import WIDEST_ACCESS
from tracejit.program import BlasProduct
from tracejit.runtime.cuda.cublas import NOT_SUPPORTED, Cublas, Suggestion, cublas_of
from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.graph import GraphNode, Patch

MOST_WORKSPACE = 1 << 25
_OWN_ALIGNMENT = 256  # of memory that the driver gives out, and of a workspace
_TYPES = {"float32": (0, 68, c_float), "float64": (1, 70, c_double)}  # CUDA_R_*, CUBLAS_COMPUTE_*, of factors
_TRANSPOSED_A, _TRANSPOSED_B = 3, 4  # attributes of a product
_BATCH, _BATCH_OFFSET = 5, 6  # of the layout of a matrix
_WORKSPACE, _ALIGNMENT_A = 1, 5  # of preferences; those for B, C and D follow the one for A


class BlasLayout(NamedTuple):
    """A matrix by columns: rows, columns, the elements between columns, how many there are, and those between them."""

    rows: int
    columns: int
    leading: int
    batch: int
    apart: int


class BlasCall(NamedTuple):
    """A question to the library: D = op(A) op(B), or D + op(A) op(B), by columns."""

    dtype: str
    transposes: tuple[bool, bool]
    layouts: tuple[BlasLayout, BlasLayout, BlasLayout]  # of A, B and D
    adds: bool
    alignments: tuple[int, int, int]  # in bytes, of A, B and D


def call_of(product: BlasProduct, alignments: Sequence[int]) -> BlasCall:
    """Return what the library is asked for, given the alignments of x, y and out (Note [products by the library])."""
    batch, m, n, k = product.batch, product.m, product.n, product.k
    x, y, out = product.x, product.y, product.out

    def layout(rows: int, columns: int, transposed: bool, leading: int, apart: int) -> BlasLayout:
        return BlasLayout(*((rows, columns) if transposed else (columns, rows)), leading, batch, apart)

    layouts = (
        layout(k, n, y.transposed, y.leading, y.batch),
        layout(m, k, x.transposed, x.leading, x.batch),
        layout(m, n, False, out.leading, out.batch),
    )
    of_x, of_y, of_out = alignments
    transposes = (y.transposed, x.transposed)
    return BlasCall(product.dtype, transposes, layouts, product.adds, (of_y, of_x, of_out))


def alignment_of(patch: Patch) -> int:
    """Return a power of two that divides an address in every call."""
    return math.gcd(WIDEST_ACCESS if patch.kind == "input" else _OWN_ALIGNMENT, patch.offset)


class BlasRoutine:
    """A product as the library computes it: descriptors, and an algorithm.

    Args:
        cublas: the library.
        product: what is computed.
        alignments: of the addresses of x, y and out.

    Attributes:
        workspace_bytes: that it needs.

    Raises:
        DeviceError: if the library cannot compute it.
    """

    def __init__(self, cublas: Cublas, product: BlasProduct, alignments: Sequence[int]) -> None:
        self._cublas, self._product = cublas, product
        self._what = f"a product {product}"
        self._made: list[tuple[str, c_void_p]] = []
        call = call_of(product, alignments)
        number, compute, factor = _TYPES[call.dtype]
        self._one, self._kept = factor(1), factor(1 if call.adds else 0)
        self._description = self._new("cublasLtMatmulDesc", compute, number)
        for attribute, transposed in zip((_TRANSPOSED_A, _TRANSPOSED_B), call.transposes, strict=True):
            self._set("cublasLtMatmulDesc", self._description, attribute, c_int32(transposed))
        self._layouts = [self._layout(number, layout) for layout in call.layouts]
        suggestion = self._suggested(call.alignments)
        self._algorithm, self.workspace_bytes = suggestion.algorithm, int(suggestion.workspace_bytes)

    def _new(self, kind: str, *arguments: int) -> c_void_p:
        handle = c_void_p()
        self._call(f"{kind}Create", byref(handle), *arguments)
        self._made.append((f"{kind}Destroy", handle))
        return handle

    def _set(self, kind: str, handle: c_void_p, attribute: int, value: Any) -> None:
        self._call(f"{kind}SetAttribute", handle, attribute, byref(value), ctypes.sizeof(value))

    def _layout(self, number: int, layout: BlasLayout) -> c_void_p:
        kind = "cublasLtMatrixLayout"
        handle = self._new(kind, number, layout.rows, layout.columns, layout.leading)
        if layout.batch > 1:
            self._set(kind, handle, _BATCH, c_int32(layout.batch))
            self._set(kind, handle, _BATCH_OFFSET, c_int64(layout.apart))
        return handle

    def _suggested(self, alignments: tuple[int, int, int]) -> Suggestion:
        """Return the library's first suggestion."""
        kind = "cublasLtMatmulPreference"
        preference = self._new(kind)
        self._set(kind, preference, _WORKSPACE, c_uint64(MOST_WORKSPACE))
        for number, alignment in enumerate((*alignments, alignments[-1])):
            self._set(kind, preference, _ALIGNMENT_A + number, c_uint32(alignment))
        suggestion, count = Suggestion(), c_int()
        of_a, of_b, of_out = self._layouts
        self._cublas.on.make_current()
        name = "cublasLtMatmulAlgoGetHeuristic"
        self._call(
            name, self._cublas.handle, self._description, of_a, of_b, of_out, of_out, preference, 1,
            byref(suggestion), byref(count),
        )  # fmt: skip
        if not count.value or suggestion.state:
            raise self._cublas.error(name, suggestion.state or NOT_SUPPORTED, self._what)
        return suggestion

    def _call(self, name: str, *arguments: Any) -> None:
        self._cublas.call(name, *arguments, what=self._what)

    def enqueue(self, words: np.ndarray, workspace: int, stream: int) -> None:
        """Put the product on a stream.

        Args:
            words: of the kernel's argument; some of them are the addresses of x, y and out.
            workspace: the address of as many bytes as it needs.
            stream: the address of the stream.

        Raises:
            DeviceError: if the library fails.
        """
        product = self._product
        x, y, out = (int(words[operand.slot]) for operand in (product.x, product.y, product.out))
        of_a, of_b, of_out = self._layouts
        self._call(
            "cublasLtMatmul", self._cublas.handle, self._description, byref(self._one), y, of_a, x, of_b,
            byref(self._kept), out, of_out, out, of_out, byref(self._algorithm), workspace, self.workspace_bytes,
            stream,
        )  # fmt: skip

    def __del__(self) -> None:
        for name, handle in self._made:
            self._cublas.release(name, handle)


class Routines:
    """The products of a program that the library computes.

    Args:
        on: the device.
        nodes: of the program's graphs.

    Attributes:
        workspace_bytes: that they need, one after the other.

    Raises:
        DeviceError: if the library is missing, or cannot compute one of them.
    """

    def __init__(self, on: Driver, nodes: Sequence[GraphNode]) -> None:
        self._known: dict[tuple[BlasProduct, tuple[int, ...]], BlasRoutine] = {}
        for node in nodes:
            if node.product is not None:
                key = node.product, _alignments(node)
                if key not in self._known:
                    self._known[key] = BlasRoutine(cublas_of(on), *key)
        self.workspace_bytes = max([routine.workspace_bytes for routine in self._known.values()], default=0)

    def of(self, node: GraphNode) -> BlasRoutine | None:
        """Return the routine that computes a node, None for a kernel."""
        return None if node.product is None else self._known[node.product, _alignments(node)]


def _alignments(node: GraphNode) -> tuple[int, ...]:
    product = node.product
    assert product is not None
    patches = {patch.slot: patch for patch in node.patches}
    return tuple([alignment_of(patches[operand.slot]) for operand in (product.x, product.y, product.out)])
