# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for NVIDIA's library cuBLASLt: it computes products with NumPy from what its descriptors say.

Its functions take what ctypes would hand to the real ones, and refuse, with the statuses of the real ones, what they
refuse: matrices whose columns overlap, sizes that do not fit, addresses that are less aligned than was said, and
questions for an algorithm while a stream is captured. A product writes into all of its workspace, so that another one
that has its numbers there would be seen. It is put on a stream of the stand-in for the driver.
"""

# ruff: noqa: N802, N815 - the names are those of the library

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_driver import FakeLibrary
from fake_streams import number_of

from tracejit.config import settings
from tracejit.runtime.cuda.cublas import OTHERS, PROTOTYPES
from tracejit.runtime.cuda.driver import driver

_INVALID, _INTERNAL, _UNSUPPORTED = 7, 14, 15
_NAMES = {1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 13: "EXECUTION_FAILED",
          14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED"}  # fmt: skip
_DTYPES = {0: np.dtype(np.float32), 1: np.dtype(np.float64)}
_COMPUTE = {0: 68, 1: 70}


class Asked(NamedTuple):
    """A product that was put on a stream: the transposes, and (rows, columns, leading, batch, apart) of A, B and D."""

    transposes: tuple[int, int]
    layouts: tuple[tuple[int, ...], ...]
    adds: bool
    alignments: tuple[int, ...]
    addresses: tuple[int, ...]
    workspace: tuple[int, int]


class FakeCublas:
    """The functions of the library.

    Attributes:
        calls: names of the functions that were called, in order.
        faults: statuses by the name of a function; it returns the status instead of doing its work.
        asked: the products that were put on streams.
        version, workspace_bytes: of the library, and what each product needs.
        suggestion_state: the status that a suggestion has.
    """

    def __init__(self, on: FakeLibrary) -> None:
        self._on = on
        self.calls: list[str] = []
        self.faults: dict[str, int] = {}
        self.asked: list[Asked] = []
        self.version, self.workspace_bytes = 120903, 512
        self.suggestion_state = 0
        self._objects: dict[int, dict[Any, Any]] = {}
        self._last = 0x100

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] | None = vars(type(self)).get(f"_{name}")
        if method is None:
            raise AttributeError(name)

        def called(*arguments: Any) -> Any:
            if name in OTHERS:
                return method(self, *arguments)
            assert len(arguments) == len(PROTOTYPES[name]), name
            self.calls.append(name)
            return self.faults.get(name) or method(self, *arguments) or 0

        return called

    @property
    def left(self) -> int:
        """The number of descriptors that were not destroyed."""
        return len(self._objects)

    def _cublasLtGetVersion(self) -> int:
        return self.version

    def _cublasLtGetStatusName(self, status: int) -> bytes:
        return f"CUBLAS_STATUS_{_NAMES.get(status, status)}".encode()

    def _new(self, out: Any, **content: Any) -> None:
        self._last += 16
        out._obj.value = self._last
        self._objects[self._last] = content

    def _cublasLtCreate(self, out: Any) -> None:
        out._obj.value = 1

    def _cublasLtMatmulDescCreate(self, out: Any, compute: int, scale: int) -> None:
        self._new(out, compute=compute, scale=scale)

    def _cublasLtMatrixLayoutCreate(
        self, out: Any, dtype: int, rows: int, columns: int, leading: int
    ) -> int | None:
        if leading < rows:
            return _INVALID
        self._new(out, dtype=dtype, sizes=(rows, columns, leading))
        return None

    def _cublasLtMatmulPreferenceCreate(self, out: Any) -> None:
        self._new(out)

    def _set(self, handle: Any, attribute: int, value: Any, size: int) -> None:
        raw = bytes(value._obj)
        assert len(raw) == size
        self._objects[number_of(handle)][attribute] = int.from_bytes(raw, "little", signed=True)

    _cublasLtMatmulDescSetAttribute = _cublasLtMatrixLayoutSetAttribute = _set
    _cublasLtMatmulPreferenceSetAttribute = _set

    def _destroy(self, handle: Any) -> None:
        del self._objects[number_of(handle)]

    _cublasLtMatmulDescDestroy = _cublasLtMatrixLayoutDestroy = _cublasLtMatmulPreferenceDestroy = _destroy

    def _cublasLtMatmulAlgoGetHeuristic(
        self, handle: Any, description: Any, a: Any, b: Any, c: Any, d: Any, preference: Any, count: int,
        found: Any, number: Any,
    ) -> int | None:  # fmt: skip
        assert handle.value == 1 and count == 1 and c is d
        if self._on.captured:
            return _INTERNAL  # as version 13.3
        wanted = self._objects[number_of(preference)]
        if self.workspace_bytes > wanted[1]:
            number._obj.value = 0
            return _UNSUPPORTED
        number._obj.value = 1
        found._obj.state = self.suggestion_state
        found._obj.workspace_bytes = self.workspace_bytes
        found._obj.algorithm.data[:4] = [wanted[key] for key in (5, 6, 7, 8)]
        return None

    def _cublasLtMatmul(
        self, handle: Any, description: Any, alpha: Any, a: int, of_a: Any, b: int, of_b: Any, beta: Any, c: int,
        of_c: Any, d: int, of_d: Any, algorithm: Any, workspace: int, workspace_bytes: int, stream: int,
    ) -> int | None:  # fmt: skip
        what = self._objects[number_of(description)]
        kind = what["scale"]
        assert what["compute"] == _COMPUTE[kind] and c == d and of_c is of_d and handle.value == 1
        layouts = [self._objects[number_of(of)] for of in (of_a, of_b, of_d)]
        assert {layout["dtype"] for layout in layouts} == {kind}
        shapes = [(*layout["sizes"], layout.get(5, 1), layout.get(6, 0)) for layout in layouts]
        transposes = what.get(3, 0), what.get(4, 0)
        (m, k), (k2, n) = (
            shape[1::-1] if transposed else shape[:2]
            for shape, transposed in zip(shapes, transposes, strict=False)
        )
        if (m, n) != shapes[2][:2] or k != k2 or len({shape[3] for shape in shapes}) != 1:
            return _INVALID
        alignments = tuple(algorithm._obj.data[:4])
        if any(address % alignment for address, alignment in zip((a, b, c, d), alignments, strict=True)):
            return _INVALID
        if workspace_bytes < self.workspace_bytes or workspace % 256:
            return _INVALID
        factor, kept = alpha._obj.value, beta._obj.value
        self.asked.append(
            Asked(
                transposes,
                tuple(shapes),
                bool(kept),
                alignments[:3],
                (a, b, d),
                (workspace, workspace_bytes),
            )
        )
        dtype, memory = _DTYPES[kind], self._on.memory

        def run() -> None:
            if self.workspace_bytes:
                places = np.uint64(workspace) + np.arange(self.workspace_bytes, dtype=np.uint64)
                memory.store(places, np.full(self.workspace_bytes, 0xEE, np.uint8))
            left, right = (
                self._matrices(address, shape, dtype, transposed)
                for address, shape, transposed in zip((a, b), shapes, transposes, strict=False)
            )
            result = dtype.type(factor) * np.matmul(left, right)
            if kept:
                result = result + dtype.type(kept) * self._matrices(d, shapes[2], dtype, 0)
            memory.store(_addresses(d, shapes[2], dtype).reshape(-1), result.reshape(-1))

        self._on.put(stream, run, "cublasLtMatmul")
        return None

    def _matrices(self, address: int, shape: tuple[int, ...], dtype: np.dtype, transposed: int) -> np.ndarray:
        places = _addresses(address, shape, dtype)
        found = self._on.memory.load(places.reshape(-1), dtype).reshape(places.shape)
        return found.transpose(0, 2, 1) if transposed else found


def _addresses(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the addresses of the elements of matrices by columns: batch, rows, columns."""
    rows, columns, leading, batch, apart = shape
    number, row, column = np.ogrid[:batch, :rows, :columns]
    result: np.ndarray = (address + dtype.itemsize * (number * apart + row + column * leading)).astype(
        np.uint64
    )
    return result


@contextmanager
def fake_cublas(on: FakeLibrary, least: int | None = 1) -> Iterator[FakeCublas]:
    """Use a fake library on a fake device while the block runs, for products of at least so many multiplications."""
    library = FakeCublas(on)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracejit.runtime.cuda.cublas.load", lambda newest: library)
        patch.setattr(settings, "cublas_from", least)
        driver()
        yield library
