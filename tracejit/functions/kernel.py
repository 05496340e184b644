# SPDX-License-Identifier: BSD-3-Clause
"""kernel: loops that a user has written, compiled as a kernel of the program."""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from tracejit.array import as_array
from tracejit.aval import Aval, check_dtype
from tracejit.errors import ArgumentError, BoundsError, GradientError
from tracejit.ops import Kind, Op, name_apart
from tracejit.ops.op import Sample, UserLoop
from tracejit.record import host
from tracejit.record import recorder as recorders
from tracejit.util.arguments import callable_
from tracejit.util.definitions import defines
from tracejit.util.parsing import parsed
from tracejit.util.text import brief, count, name_of

Out = Callable[..., Any]


class LoopKernel:
    """Loops over arrays as a function of dlarrays. Made by kernel.

    Attributes:
        function: the underlying function, which writes into its last arguments.
    """

    is_part_of_programs = True  # which have its text

    def __init__(self, function: Callable[..., Any], out: Out | None = None) -> None:
        self.function = callable_("kernel", "function", function)
        self._out = out if out is None else callable_("kernel", "out", out)
        self._name = name_of(function)
        self._tree, self._file, self._line = _definition(self._name, function)
        self._names = _names_of(function)
        self._frozen = _frozen(function, self._names)
        self._ops: dict[Any, Op] = {}
        self.__name__, self.__doc__ = self._name, function.__doc__

    def __call__(self, *inputs: Any) -> Any:
        """Return the outputs: a dlarray, or a tuple of them."""
        name = self._name
        parameters = [parameter.arg for parameter in self._tree.args.args]
        if not 1 <= len(inputs) < len(parameters):
            raise ArgumentError(
                f"{name}: it was called with {count(len(inputs), 'argument')}, and has the parameters "
                f"{', '.join(parameters)}; pass the inputs, and the last parameters are the outputs."
            )
        arrays = [as_array(x, name, parameters[i]) for i, x in enumerate(inputs)]
        avals = [Aval(x.shape, None, x.dtype) for x in arrays]
        outputs = self._outputs(avals, len(parameters) - len(inputs))
        for parameter, aval in zip(parameters, (*avals, *outputs), strict=True):
            if aval.dtype.kind not in "fiu" or not aval.size:
                raise ArgumentError(
                    f"{name}: {parameter} is {aval}; the arrays of a kernel have elements, of float32, float64 or an "
                    "integer type."
                )
        if self._out is None:
            outputs = [outputs[0]._replace(format=arrays[0].format)]
        key = (*avals, *outputs)
        op = self._ops.get(key)
        if op is None:
            op = self._ops[key] = self._op(avals, outputs)
        return recorders.apply_op(op, arrays, {})

    def __repr__(self) -> str:
        return f"<kernel {self._name}>"

    def __reduce__(self) -> str:
        return str(self.function.__qualname__)

    def _outputs(self, avals: Sequence[Aval], wanted: int) -> list[Aval]:
        """Return the sizes and dtypes of the outputs."""
        if self._out is None:
            if wanted != 1:
                raise ArgumentError(
                    f"{self._name}: the sizes of its {wanted} outputs are unknown; pass "
                    "out=lambda x, ...: [(shape, dtype), ...] to kernel."
                )
            return [avals[0]]
        told = self._out(*avals)
        told = [told] if _is_pair(told) else told
        if not isinstance(told, (list, tuple)) or len(told) != wanted or not all(map(_is_pair, told)):
            raise ArgumentError(
                f"{self._name}: out returned {brief(told)}, expected {count(wanted, 'pair')} (shape, dtype); return "
                "one pair, or a list of them."
            )
        return [
            Aval(tuple(int(size) for size in shape), None, check_dtype(self._name, np.dtype(dtype), "out"))
            for shape, dtype in told
        ]

    def _op(self, inputs: list[Aval], outputs: list[Aval]) -> Op:
        """Return the op for arrays of some sizes."""
        from tracejit.codegen import user_loops

        name = self._name
        source = user_loops.Source(name, self._tree, self._names, self._file, self._line)
        text, sizes = user_loops.text(source, inputs, outputs)
        avals: Any = outputs[0] if len(outputs) == 1 else tuple(outputs)

        def no_gradient(b: Any, node: Any, ct: Any) -> Any:
            raise GradientError(
                f"{name}: a kernel has no derivative; give it one with tj.custom_gradient, whose backward may call "
                "another kernel."
            )

        return Op(
            name=name_apart(name.rpartition(".")[2]), doc="loops of the user's", kind=Kind.KERNEL,
            infer=lambda *_: avals, numpy=self._uncompiled(outputs), vjp=no_gradient,
            emit=UserLoop(text, sizes), samples=(Sample(()),), analytic=False,
        )  # fmt: skip

    def _uncompiled(self, outputs: list[Aval]) -> Callable[..., Any]:
        """Return the function that runs the loops in Python."""
        function, name = self._frozen, self._name

        def run(*arrays: np.ndarray) -> Any:
            results = [np.zeros(aval.shape, aval.dtype) for aval in outputs]
            given = [host.read_only(x) if x.ndim else x[()] for x in arrays]
            try:
                host.run(function, [*given, *results])
            except IndexError as error:
                raise BoundsError(f"{name}: {error}.") from error
            return results[0] if len(results) == 1 else tuple(results)

        return run


def _is_shape(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(size, (int, np.integer)) for size in x)


def _is_pair(x: Any) -> bool:
    return (
        isinstance(x, (tuple, list))
        and len(x) == 2
        and _is_shape(x[0])
        and not isinstance(x[1], (tuple, list))
    )


def _definition(name: str, function: Any) -> tuple[ast.FunctionDef, str, int]:
    """Return the definition of a function, its file and its first line."""
    try:
        lines, line = inspect.getsourcelines(function)
        tree = parsed(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise ArgumentError(
            f"kernel: function: the source of {name}, which is compiled, cannot be read ({type(error).__name__}); "
            "define it in a file or a notebook."
        ) from error
    if not isinstance(tree, ast.FunctionDef):
        raise ArgumentError(f"kernel: function: {name} must be a function that def defines, with its loops.")
    arguments = tree.args
    if (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
        or arguments.posonlyargs
    ):
        raise ArgumentError(
            f"kernel: function: the parameters of {name} must be names only: its inputs and then its outputs."
        )
    if not defines(tree, function):
        raise ArgumentError(
            f"kernel: function: {name} is not what {function.__code__.co_filename} has in line {line}: the "
            "file changed after it was read, or the function comes from exec; run it anew, or define it in a file or a "
            "notebook."
        )
    return tree, function.__code__.co_filename, line


def _names_of(function: Any) -> dict[str, Any]:
    """Return what the names outside of a function hold now; they are constants of its kernel."""
    found = {
        name: function.__globals__[name]
        for name in function.__code__.co_names
        if name in function.__globals__
    }
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not yet
            continue
    return found


def _frozen(function: Any, names: dict[str, Any]) -> Callable[..., Any]:
    """Return a function whose names hold what they hold now, as those of its kernel."""
    closure = tuple([types.CellType(names.get(name)) for name in function.__code__.co_freevars])
    own = {**names, "__builtins__": __builtins__}
    return types.FunctionType(function.__code__, own, function.__name__, None, closure)


@overload
def kernel(function: Callable[..., Any], /, *, out: Out | None = None) -> LoopKernel: ...


@overload
def kernel(
    function: None = None, /, *, out: Out | None = None
) -> Callable[[Callable[..., Any]], LoopKernel]: ...


def kernel(function: Callable[..., Any] | None = None, /, *, out: Out | None = None) -> Any:
    """Return a function of dlarrays from loops that write into arrays; programs contain the compiled loops.

    The function has inputs and then outputs as parameters: arrays of numbers whose elements it reads and writes one by
    one; outputs are 0 at first. An input without axes is a number. In a replay the loops are one launch, compiled, with
    indices checked; uncompiled they run in Python. The values of module names when it is defined are part of it.

    Args:
        function: loops over ranges, conditions, arithmetic, functions of math, elements and sizes of arrays.
        out: called with the shapes and dtypes of the inputs (attributes of its arguments); returns the shape and the
            dtype of the output, or a list of such pairs. By default there is one output like the first input.

    Returns:
        The function; called with the inputs it returns the outputs. Used as ``@kernel`` or ``@kernel(out=...)``.

    Raises:
        ArgumentError: if `function` is not defined by def; from a call, if it contains code that no kernel can have.
        BoundsError: from a call, if an index is out of range.
        GradientError: from dlgradient: custom_gradient gives it a derivative.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> @tj.kernel(out=lambda x: ((), x.dtype))
        ... def total(x, y):
        ...     for i in range(x.shape[0]):
        ...         y[()] += x[i]
        >>> total(tj.dlarray([1.0, 2.0, 3.5])).item()
        6.5
    """
    return LoopKernel(function, out) if function is not None else lambda chosen: LoopKernel(chosen, out)
