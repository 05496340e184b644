# SPDX-License-Identifier: BSD-3-Clause
"""The parameters of an emitted kernel, read from its text: the arguments that a row has to give.

A kernel takes an array of words. Its text says how it takes each of them: `args[0]` is an integer,
`read_f32(args[1])` and `write_f32(args[2], 0)` are addresses, `number_f32(args[3])` are the bits of a number. A kernel
that calls a routine of BLAS takes all words as they are: the address of the routine, integers, three addresses. A
kernel that runs the loop of a ufunc takes the loop, for elements of the dtypes of its addresses.
"""

import re
from collections.abc import Container, Sequence

import numpy as np

from tracejit.codegen.names import DTYPES
from tracejit.errors import CodegenError
from tracejit.program import Argument, Kernel, Pointer, ScalarArgument, Symbol
from tracejit.util.named_tuples import NamedTuple

_ROUTINES = {"gemm_f32": "sgemm", "gemm_f64": "dgemm"}  # by the function that calls it
_MATRICES = 3  # addresses that the routine takes: two factors and the product
_CALLS = re.compile(rf"\b({'|'.join(_ROUTINES)})\(\s*args\[0\]")
_LOOP = re.compile(r"\b(?:ufunc_loop_\d|matrix_loop_(\w+)|fourier_loop_(\w+))\(\s*args\[0\]")
_OF_MATRICES = "numpy.linalg."  # whose loops take other integers than those over elements
_OF_LINES = "numpy.fft."  # which take complex numbers; kernels know only their parts
_WORD = re.compile(r"\bargs\b(?:\[(\d+)\])?")
_TYPED = re.compile(r"\b(read|write|number)_(\w+)\(args\[(\d+)\]")


class Parameter(NamedTuple):
    """The use that a kernel makes of a word.

    kind        "integer", "read", "write", "number" or "symbol"
    dtype       of the elements at an address, or of a number
    routine     of a symbol
    """

    kind: str = "integer"
    dtype: np.dtype | None = None
    routine: str = ""

    def __str__(self) -> str:
        if self.kind == "symbol":
            return f"the routine {self.routine}"
        if self.kind in ("read", "write"):
            return f"an address of {self.dtype} to {self.kind}"
        return f"a number of {self.dtype}" if self.kind == "number" else "an integer"

    def takes(self, argument: Argument, written: Container[int]) -> bool:
        """Return whether an argument is of this kind; `written` are the inputs that may be written."""
        if self.kind in ("read", "write"):
            if not isinstance(argument, Pointer) or argument.dtype != self.dtype:
                return False
            kind, number, _ = argument.place
            is_writeable = kind in ("output", "arena") or (kind == "input" and number in written)
            return self.kind == "read" or is_writeable
        if self.kind == "number":
            return isinstance(argument, ScalarArgument) and argument.dtype == self.dtype
        if self.kind == "symbol":
            if not isinstance(argument, Symbol) or not argument.name.endswith(self.routine):
                return False
            return _OF_MATRICES in self.routine or _OF_MATRICES not in argument.name
        return type(argument) is int


def parameters(kernel: Kernel) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel.

    Raises:
        CodegenError: if its text does not use the words of its argument one by one, as emitted text does.
    """
    body = kernel.text.partition("\n")[2]
    uses = _WORD.findall(body)
    if sorted(uses, key=lambda number: (len(number), number)) != [str(i) for i in range(len(uses))]:
        raise CodegenError(f"kernel {kernel.name:.40} does not use each of its arguments once")
    signature = [Parameter()] * len(uses)
    for kind, suffix, number in _TYPED.findall(body):
        if suffix not in DTYPES:
            raise CodegenError(f"kernel {kernel.name:.40} has an argument of the unknown type {suffix:.40}")
        signature[int(number)] = Parameter(kind, DTYPES[suffix])
    called = _CALLS.search(body)
    if called is not None and len(signature) > _MATRICES:
        dtype = DTYPES[called[1].rpartition("_")[2]]
        signature[0] = Parameter("symbol", routine=_ROUTINES[called[1]])
        signature[-_MATRICES:] = [
            Parameter("read", dtype),
            Parameter("read", dtype),
            Parameter("write", dtype),
        ]
    loop = _LOOP.search(body)
    if loop is not None:
        kinds = {
            kind: "".join(p.dtype.char for p in signature if p.kind == kind and p.dtype)
            for kind in ("read", "write")
        }
        name = f"{_OF_MATRICES}{loop[1]}" if loop[1] else ""
        routine = f"{name}/{kinds['read']}->{kinds['write']}"
        if loop[2]:
            part = kinds["write"]
            operand = part if loop[2].startswith("rfft") else part.upper()
            routine = f"{_OF_LINES}{loop[2]}/{operand}{part}->{part if loop[2] == 'irfft' else part.upper()}"
        signature[0] = Parameter("symbol", routine=routine)
    return tuple(signature)


def misfit(
    expected: Sequence[Parameter], arguments: Sequence[Argument], written: Container[int]
) -> str | None:
    """Return what of the arguments of a row does not fit the parameters of its kernel, None if all fit.

    Args:
        expected: the parameters.
        arguments: of the row.
        written: the numbers of the inputs that the program may write.
    """
    if len(arguments) != len(expected):
        return f"{len(arguments)} arguments, expected {len(expected)}"
    for i, (parameter, argument) in enumerate(zip(expected, arguments, strict=True)):
        if not parameter.takes(argument, written):
            return f"argument {i} that is {_described(argument)}, expected {parameter}"
    return None


def _described(argument: Argument) -> str:
    if isinstance(argument, Pointer):
        return f"an address of {argument.dtype} in {argument.place.kind} {argument.place.number}"
    if isinstance(argument, ScalarArgument):
        return f"a number of {argument.dtype}"
    if isinstance(argument, Symbol):
        return f"the routine {argument.name}"
    return "an integer"
