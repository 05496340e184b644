# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions that run in Python: a call, the error, its text."""

import importlib
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    BoundsError,
    DimsError,
    DTypeError,
    GradientError,
)
from tracejit.passes.graph.split import split

M = tj.dlarray(np.ones((2, 3)), "CB")


class Made(tj.DifferentiableFunction):
    """A function whose forward and backward return what it is made with."""

    def __init__(self, forward: Any = None, backward: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.found, self.gradients = forward, backward

    def forward(self, *inputs: Any) -> Any:
        return inputs[0] if self.found is None else self.found

    def backward(self, *arguments: Any) -> Any:
        return self.gradients


class Nothing(tj.DifferentiableFunction):
    """A function without forward and backward."""


class Same(tj.DifferentiableFunction):
    """A function without backward."""

    def forward(self, x: Any) -> Any:
        return x


class Square(tj.DifferentiableFunction):
    """A function whose second derivative is asked for."""

    def __init__(self) -> None:
        super().__init__(save_inputs_for_backward=True)

    def forward(self, x: Any) -> Any:
        return x * x

    def backward(self, dy: Any, compute_gradients: Any, x: Any) -> Any:
        return 2 * x * dy


def slope(function: Callable[..., Any], *inputs: Any) -> object:
    return tj.dlfeval(lambda x, *more: tj.dlgradient(function(x, *more).sum(), x), *inputs)


def curvature(x: Any) -> Any:
    return tj.dlgradient(tj.dlgradient(Square()(x).sum(), x).sum(), x)


def given(outputs: Any, gradients: Any = None, with_backward: bool = True) -> tj.CustomGradient:
    """Return a function whose forward and backward return what is given."""

    @tj.custom_gradient
    def function(x: Any, *more: Any, by: Any = 1) -> Any:
        return (x * 1, None) if outputs is None else outputs

    if with_backward:
        function.backward(lambda residuals, cotangents: gradients)
    return function


def of_dict(p: Any) -> Any:
    return p["w"] * 1, None


def dict_slope(gradients: Any) -> object:
    function = tj.custom_gradient(of_dict)
    function.backward(lambda residuals, cotangents: gradients)
    return tj.dlfeval(lambda p: tj.dlgradient(function(p).sum(), p), {"w": M})


def taken_apart() -> object:
    """Differentiate a function with a custom gradient where its backward cannot be recorded."""
    function = given(None)
    fun = tj.dlaccelerate(lambda x: function(x).sum())
    for _ in range(2):
        fun(M)
    (variants,) = fun.variants()
    (trace,) = variants.traces
    return split(trace.graph)


outside = lambda x, y: None


def loops(x: Any, y: Any) -> None:
    """Write sums that a kernel cannot have."""
    y[0] = sum(x)


def doubled(x: Any, y: Any) -> None:
    """Write twice the elements of a vector, and one more."""
    for i in range(len(x) + 1):
        y[i] = 2 * x[i]


def first(x: Any, y: Any) -> None:
    """Write one element."""
    y[0] = x[0]


def with_default(x: Any, y: Any = 1) -> None:
    """Have a default, as no kernel has."""


def two(x: Any, y: Any, z: Any) -> None:
    """Have two outputs."""
    y[0] = x[0]


def edited() -> Callable[..., Any]:
    """Return a function whose file has changed since it was imported."""
    text = "def edited(x, y):\n    y[0] = x[0] + 1\n"
    linecache.cache["loops.py"] = (
        len(text),
        None,
        text.replace("+", "-").splitlines(keepends=True),
        "loops.py",
    )
    names: dict[str, Any] = {}
    exec(compile(text, "loops.py", "exec"), names)
    function: Callable[..., Any] = names["edited"]
    return function


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.dlfeval(Same(), tj.dlarray(np.ones(2, np.float16))),
        DTypeError,
        "Same: a function of Python that a program calls does not take or give numbers of 16 bits; cast them first "
        "(x.astype(np.float32)).",
    ),
    (Made(), ArgumentError, "Made: it was called without inputs; pass one array at least."),
    (
        lambda: Made("text")(1.0),
        tj.DTypeError,
        "Made.forward: data of type <U4 is not supported as value 1; use float64, float32, float16, bfloat16 (of "
        "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
    (
        lambda: Made(num_outputs=0),
        ArgumentError,
        "Made: num_outputs must be at least 1, not 0.",
    ),
    (
        lambda: Made((1.0, 2.0, 3.0), num_outputs=2, num_memory_values=2)(1.0),
        ArgumentError,
        "Made.forward: it returned 3 values, expected 4: 2 outputs and 2 memory values. Return that many, or change "
        "num_outputs and num_memory_values.",
    ),
    (
        lambda: Nothing()(1.0),
        ArgumentError,
        "Nothing: there is no forward; define forward(self, *inputs).",
    ),
    (
        lambda: slope(Same(), M),
        GradientError,
        "Same: there is no backward; define backward(self, *cotangents, compute_gradients, ...).",
    ),
    (
        lambda: slope(Made(None, (1.0, 2.0)), M),
        ArgumentError,
        "Made.backward: it returned 2 gradients, expected 1: one for each input of forward, in their order, None where "
        "compute_gradients is False.",
    ),
    (
        lambda: slope(Made(None, np.ones((3, 2))), M),
        DimsError,
        "Made.backward: gradient 1 is 3x2 float64, but input 1 of forward is 2(C) x 3(B) float64; a gradient has the "
        "size of its input. Sum over the axes that were broadcast.",
    ),
    (
        lambda: slope(Made(None, None), M),
        GradientError,
        "Made.backward: gradient 1 is None, but compute_gradients[0] is True; return an array of 2(C) x 3(B) float64, "
        "zeros if no output depends on the input.",
    ),
    (
        lambda: tj.dlfeval(curvature, M),
        GradientError,
        "Square: backward is Python code, which has no derivative of its own, so there are no second "
        "derivatives; write backward of dlarray operations, with tj.custom_gradient.",
    ),
    (
        lambda: slope(lambda x: np.linalg.qr(x, mode="raw")[0], M),
        GradientError,
        "np.linalg.qr: NumPy's own function runs here, which has no derivative; compose it of functions that tracejit "
        "has (dir(tracejit) lists them). Or give it a derivative with tj.DifferentiableFunction.",
    ),
    (
        lambda: slope(lambda x: importlib.import_module("scipy.ndimage").gaussian_filter(x, 1.0), M),
        GradientError,
        "scipy.ndimage.gaussian_filter: SciPy's own function runs here, which has no derivative; compose it of "
        "functions that tracejit has (dir(tracejit) lists them). Or give it a derivative with "
        "tj.DifferentiableFunction.",
    ),
    (
        lambda: np.linalg.qr(M, mode="third"),
        ArgumentValueError,
        "np.linalg.qr: these arguments cannot be used: ValueError: \"Unrecognized mode 'third'\"; see the "
        "documentation of NumPy for what it takes.",
    ),
    (
        lambda: tj.custom_gradient(3),  # type: ignore[arg-type]
        ArgumentError,
        "custom_gradient: function must be a function, not 3.",
    ),
    (
        lambda: given((1, 2, 3))(M),
        ArgumentError,
        "given.<locals>.function: a function under custom_gradient returns its outputs and its residuals, not 3 "
        "values; return y, (x, ...), or y, None.",
    ),
    (
        lambda: given(None)(M, by=M),
        ArgumentError,
        "given.<locals>.function: by, which is passed by name only, is an array; backward gives gradients by position. "
        "Let the function take it by position.",
    ),
    (
        lambda: slope(given(None, None, with_backward=False), M),
        GradientError,
        "given.<locals>.function: there is no backward function; define one under @given.<locals>.function.backward.",
    ),
    (
        lambda: slope(given(None, (1.0,)), M, M),
        ArgumentError,
        "given.<locals>.function: backward returned 1 gradient, expected 2: one for each argument, None for zeros.",
    ),
    (
        lambda: slope(given(None, np.ones(2)), M),
        DimsError,
        "given.<locals>.function: the gradient by argument 1 is 2 float64, but the argument is 2(C) x 3(B) float64; a "
        "gradient has the size of its argument.",
    ),
    (
        lambda: dict_slope({"v": M}),
        ArgumentError,
        "of_dict: the gradient by argument 1 has no ['w']; it has the containers of the argument, with None for zeros.",
    ),
    (
        taken_apart,
        GradientError,
        "given.<locals>.function: its backward is recorded where dlgradient, jvp, vjp or hvp is called, for one "
        "cotangent. Call one of these instead of jacobian, dljacobian, dldivergence or dllaplacian; call an "
        "accelerated function that contains it outside of dlfeval, or take the gradient inside that function.",
    ),
    (
        lambda: tj.kernel(loops)(np.ones(3)),
        ArgumentError,
        "loops: a kernel cannot have the whole array 'x', at <place>. It has loops over ranges, conditions, numbers "
        "and elements of arrays, and functions of math; use DifferentiableFunction for other code.",
    ),
    (
        lambda: tj.kernel(doubled)(np.ones(3)),
        BoundsError,
        "doubled: index 3 is out of bounds for axis 0 with size 3.",
    ),
    (
        tj.kernel(doubled),
        ArgumentError,
        "doubled: it was called with 0 arguments, and has the parameters x, y; pass the inputs, and the last "
        "parameters are the outputs.",
    ),
    (
        lambda: tj.kernel(doubled)(np.ones(0)),
        ArgumentError,
        "doubled: x is 0 float64; the arrays of a kernel have elements, of float32, float64 or an integer type.",
    ),
    (
        lambda: tj.kernel(two)(np.ones(3)),
        ArgumentError,
        "two: the sizes of its 2 outputs are unknown; pass out=lambda x, ...: [(shape, dtype), ...] to kernel.",
    ),
    (
        lambda: tj.kernel(two, out=lambda x: x.shape)(np.ones(3)),
        ArgumentError,
        "two: out returned (3,), expected 2 pairs (shape, dtype); return one pair, or a list of them.",
    ),
    (
        lambda: tj.kernel(len),
        ArgumentError,
        "kernel: function: the source of len, which is compiled, cannot be read (TypeError); define it in a file or a "
        "notebook.",
    ),
    (
        lambda: tj.kernel(edited()),
        ArgumentError,
        "kernel: function: edited is not what loops.py has in line 1: the file changed after it was read, or the "
        "function comes from exec; run it anew, or define it in a file or a notebook.",
    ),
    (
        lambda: tj.kernel(with_default),
        ArgumentError,
        "kernel: function: the parameters of with_default must be names only: its inputs and then its outputs.",
    ),
    (
        lambda: tj.kernel(outside),
        ArgumentError,
        "kernel: function: <lambda> must be a function that def defines, with its loops.",
    ),
    (
        lambda: slope(tj.kernel(first), np.ones(3)),
        GradientError,
        "first: a kernel has no derivative; give it one with tj.custom_gradient, whose backward may call "
        "another kernel.",
    ),
)
