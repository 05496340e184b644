# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of every public function, with every argument that it takes by name or by position."""

from typing import Any, NamedTuple

import numpy as np
import public_calls_derivatives
import public_calls_layers
import public_calls_linalg
import public_calls_nn
import public_calls_signal

import tracejit as tj
from tracejit import dlarray

A = np.arange(6.0).reshape(2, 3) / 7 + 0.1
V = np.array([0.3, 0.1, 0.7])
SEQUENCE = np.arange(12.0).reshape(2, 3, 2) / 7  # of two observations
N = np.array([[1, 2, 3], [4, 5, 6]])


class Call(NamedTuple):
    """A call that works: the arguments by position, and those by name."""

    args: tuple[Any, ...]
    options: dict[str, Any]


def call(*args: Any, **options: Any) -> Call:
    return Call(args, options)


ONE = """
    abs arccos arcsin arcsinh arctan arctanh cbrt ceil cos cosh erf exp exp2 expm1 floor isfinite isinf isnan log log1p
    log2 log10 logical_not negative positive reciprocal rint sign sin sinh sqrt square tan tanh trunc relu sigmoid
    softplus stop_gradient atleast_1d atleast_2d atleast_3d nonzero ravel flatten isdlarray
"""
TWO = """
    add arctan2 divide equal floor_divide greater greater_equal less less_equal logical_and logical_or logical_xor
    maximum minimum multiply not_equal power remainder subtract inner
"""
REDUCTIONS = "all any count_nonzero max mean min prod ptp sum logsumexp"
ALSO_METHODS = "all any max min var std argmax argmin clip repeat round swapaxes take transpose dot"
OPERATORS = (
    "add sub mul truediv floordiv mod pow radd rsub rmul rtruediv rfloordiv rmod rpow eq ne lt le gt ge"
)


def doubled(x: Any, y: Any) -> None:
    """Write twice the elements of a vector."""
    for i in range(len(x)):
        y[i] = 2 * x[i]


def falls(t: Any, y: Any, *theta: Any) -> Any:
    return tj.tree.map(lambda x: -x, y)


CALLS: dict[str, list[Call]] = {
    **{name: [call(A)] for name in ONE.split()},
    **{name: [call(A, A + 1)] for name in TWO.split()},
    **{name: [call(A, axis=0, keepdims=True)] for name in REDUCTIONS.split()},
    "sum": [call(A, 0, True, dtype=np.float32)],
    "prod": [call(A, 0, True, dtype=np.float32)],
    "mean": [call(A, 0, True, dtype=np.float32)],
    "var": [call(A, 0, True, ddof=1)],
    "std": [call(A, 0, True, ddof=1)],
    "argmax": [call(A, 0, True)],
    "argmin": [call(A, 0, True)],
    "cumsum": [call(A, 0, dtype=np.float64)],
    "norm": [call(A, 2, 0, True), call(A, "fro", (0, 1))],
    "arccosh": [call(A + 1)],
    "bitwise_and": [call(N, N)],
    "bitwise_or": [call(N, N)],
    "bitwise_xor": [call(N, N)],
    "invert": [call(N)],
    "cast": [call(A, np.float32)],
    "clip": [call(A, 0.2, 0.4)],
    "round": [call(A, 1)],
    "where": [call(A > 0.3, A, -A)],
    "leakyrelu": [call(A, 0.1)],
    "gather": [call({"a": V})],
    "gelu": [call(A, approximation="tanh")],
    "softmax": [call(A, axis=1), call(A, data_format="BC")],
    "logsoftmax": [call(A, axis=1), call(A, data_format="BC")],
    "arange": [call(0, 5, 2, np.float64, "C"), call(3, like=dlarray(V))],
    "eye": [call(2, 3, 1, np.float32, "CB"), call(2, like=dlarray(V))],
    "full": [call((2, 3), 1.5, np.float32, "CB"), call(3, 2.0, like=dlarray(V))],
    "full_like": [call(A, 1.5, np.float32, (2, 2))],
    "ones": [call((2, 3), np.float32, "CB"), call(3, like=dlarray(V))],
    "ones_like": [call(A, np.float32, (2, 2))],
    "zeros": [call((2, 3), np.float32, "CB"), call(3, like=dlarray(V))],
    "zeros_like": [call(A, np.float32, (2, 2))],
    "attention": [
        call(SEQUENCE, SEQUENCE, SEQUENCE, 2, scale=0.5, attention_mask=np.tri(3), padding_mask=np.ones((2, 3)),
             dropout_probability=0.5, return_weights=True, data_format="BTC"),
        call(SEQUENCE, SEQUENCE, SEQUENCE, 2, scale="auto", attention_mask="causal", data_format="BTC"),
    ],
    "ctc": [
        call(SEQUENCE, np.ones((2, 1), int), np.ones((2, 3)), np.ones((2, 1)), blank_index=0, from_logits=True,
             zero_infinity=True, reduction="none", data_format="BTC"),
        call(SEQUENCE / 2, np.ones((2, 1), int), [3, 2], [1, 1], blank_index="first", data_format="BTC"),
    ],
    "lstm": [
        call(SEQUENCE, np.ones(2), np.ones(2), np.ones((8, 2)), np.ones((8, 2)), np.ones(8), direction="reverse",
             mask=np.ones((2, 3)), data_format="BTC"),
    ],
    "gru": [
        call(SEQUENCE, np.ones(2), np.ones((6, 2)), np.ones((6, 2)), np.ones(6), direction="forward",
             reset_gate_mode="before-multiplication", mask=np.ones((2, 3)), data_format="BTC"),
    ],
    "rnn": [
        call(SEQUENCE, np.ones(4), np.ones((4, 2)), np.ones((4, 2)), np.ones(4), direction="bidirectional",
             activation="relu", mask=np.ones((2, 3)), data_format="BTC"),
    ],
    "fullyconnect": [call(A, np.ones((2, 3)), np.ones(2), data_format="BC")],
    "dlconv": [call(np.ones((2, 3, 4)), np.ones((2, 3, 2)), V[:2], stride=1, padding=(1, 0), dilation_factor=2,
                    groups=1, data_format="BCS", weights_format="UCS")],
    "dltranspconv": [call(np.ones((2, 3, 4)), np.ones((3, 2, 2)), V[:2], stride=2, cropping=1, dilation_factor=1,
                          groups=1, output_padding=1, data_format="BCS", weights_format="CUS")],
    "onehotencode": [call(N, 0, range(1, 7), dtype=np.float32), call(["b", "a"], 1, ["a", "b"])],
    "onehotdecode": [call(A, 3, 1), call(A, ["a", "b", "c"], 1)],
    "dlcheckpoint": [call(lambda x: x)],
    "dlcond": [call(True, lambda x: x, lambda x: x, A)],
    "dlscan": [call(lambda c, x: (c, x), A, V, length=V.shape[0], reverse=True)],
    "dlode45": [call(falls, [0.0, 1.0], V, 2.0, initial_step_size=0.5, max_step_size=0.5)],
    "dleuler": [call(falls, [0.0, 1.0], V, 2.0, num_steps=3)],
    "dlrk4": [call(falls, [0.0, 1.0], V, 2.0, num_steps=3)],
    "dlwhile": [call(lambda c: False, lambda c: c, A)],
    "dlfeval": [call(lambda x: x, A)],
    "dlgradient": [call(dlarray(2.0), dlarray(V))],
    "scatter_add": [call(A, [0, 1], A, 0)],
    "take": [call(A, [0, 1], 0)],
    "take_along_axis": [call(A, [[0], [1]], 1)],
    "dims": [call(dlarray(A, "CB"))],
    "extractdata": [call(dlarray(A))],
    "finddim": [call(dlarray(A, "CB"), "B")],
    "stripdims": [call(dlarray(A, "CB"), "BC")],
    "diag": [call(V, 1), call(A, 0)],
    "dot": [call(A, V)],
    "einsum": [call("ij,j->i", A, V, optimize=True)],
    "matmul": [call(A, V)],
    "outer": [call(V, V)],
    "tensordot": [call(A, A, 2), call(A, A, ((0,), (0,)))],
    "tril": [call(A, 1)],
    "triu": [call(A, 1)],
    "vdot": [call(A, A)],
    "crossentropy": [
        call(A, A, V, from_logits=False, classification_mode="single-label", mask=A > 0.3, reduction="sum",
             normalization_factor="batch-size", data_format="BC", weights_format="C"),
        call(A, A, classification_mode="multilabel", from_logits=True, data_format="BC"),
    ],
    "huber": [call(A, A + 1, V, transition_point=1.0, mask=A > 0.3, reduction="sum", normalization_factor="batch-size",
                   data_format="BC", weights_format="C")],
    **{name: [call(A, A + 1, V, mask=A > 0.3, reduction="none", normalization_factor="mask-included",
                   data_format="BC", weights_format="C")] for name in ("l1loss", "l2loss")},
    "mse": [call(A, A + 1, data_format="BC")],
    "array_split": [call(A, 2, 1), call(A, [1], 1)],
    "split": [call(A, 3, 1), call(A, [1], 1)],
    "broadcast_to": [call(A, (4, 2, 3))],
    "concatenate": [call([A, A], 1), call((A, A), axis=None)],
    "expand_dims": [call(A, 1, "T")],
    "flip": [call(A, 1)],
    "hstack": [call([A, A])],
    "vstack": [call([A, A])],
    "stack": [call([A, A], 1)],
    "moveaxis": [call(A, 0, 1), call(A, (0, 1), (1, 0))],
    "pad": [call(A, ((1, 0), (0, 2)), "constant", 1.5), call(A, 1, "edge")],
    **{name: [call(A, (1, 0))] for name in ("permute", "permute_dims", "transpose")},
    "repeat": [call(A, 2, 1), call(A, [1, 2, 0], 1)],
    "reshape": [call(A, (3, -1))],
    "roll": [call(A, 1, 1), call(A, (1, 2), (0, 1))],
    "squeeze": [call(A[:1], 0)],
    "swapaxes": [call(A, 0, 1)],
    "tile": [call(A, (2, 1))],
    "dropout": [call(A, 0.5, generator=tj.Generator(1))],
    "rand": [call(2, 3, dtype=np.float32, format="CB", generator=tj.Generator(1)), call((3,), like=dlarray(V))],
    "randn": [call(2, 3, dtype=np.float32, format="CB", generator=tj.Generator(1)), call((3,), like=dlarray(V))],
    "randi": [call(9, 2, 3, dtype=np.float32, format="CB", generator=tj.Generator(1)),
              call((1, 7), (3,), like=dlarray(V))],
    "randperm": [call(6, 3, generator=tj.Generator(1))],
    "rng": [call(3)],
    "Generator": [call(3)],
    "adamupdate": [call(dlarray(V), dlarray(V), dlarray(V), dlarray(V), 2, 0.001, 0.9, 0.999, 1e-8)],
    "lbfgsstate": [call(5, 0.5)],
    "lbfgsupdate": [call(dlarray(V), lambda x: (1.0, x), tj.lbfgsstate(), line_search_method="strong-wolfe",
                         max_num_line_search_iterations=3, initial_step_size=0.1)],
    "sgdmupdate": [call(dlarray(V), dlarray(V), dlarray(V), 0.01, 0.9)],
    "rmspropupdate": [call(dlarray(V), dlarray(V), dlarray(V), 0.01, 0.9, 1e-8)],
    "clipgradients": [call(dlarray(V), 0.5, "global-l2norm")],
    "dlupdate": [call(lambda p, q: p + q, dlarray(V), dlarray(V))],
    "dlarray": [call(A, "CB")],
    "set_policy": [call("default")],
    "clear_cache": [call(tj.dlaccelerate(lambda x: x))],
    "custom_gradient": [call(lambda x: (x, x))],
    "kernel": [call(doubled, out=lambda x: (x.shape, x.dtype))],
    "dlaccelerate": [call(lambda x: x, cache_size=5, check_mode="none", check_tolerance=1e-4, enabled=True, confirm=1,
                          audit=True, max_variants=None, check_every=100, write_arguments=True)],
    "numpy_function": [call(lambda x: x, V)],
    **{name: [Call(*row) for row in rows] for name, rows in public_calls_derivatives.CALLS.items()},
    **{name: [Call(*row) for row in rows] for name, rows in public_calls_layers.CALLS.items()},
    **{name: [Call(*row) for row in rows] for name, rows in public_calls_linalg.CALLS.items()},
    **{name: [Call(*row) for row in rows] for name, rows in public_calls_nn.CALLS.items()},
    **{name: [Call(*row) for row in rows] for name, rows in public_calls_signal.CALLS.items()},
}  # fmt: skip

X = dlarray(A)
REDUCING = ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin")
METHODS: dict[str, list[Call]] = {
    **{
        name: [Call((X, *call.args[1:]), call.options) for call in CALLS[name]] for name in ALSO_METHODS.split()
    },
    **{name: [call(X, 0, keepdims=True)] for name in REDUCING},
    "cumsum": [call(X, 0)],
    "squeeze": [call(dlarray(A[:1]), 0)],
    "astype": [call(X, np.float32)],
    "item": [call(X, 1), call(X, 0, 1)],
    "reshape": [call(X, (3, 2)), call(X, 3, 2, order="C")],
    "__contains__": [call(X, 0.5)],
    "__round__": [call(X, 1)],
    "__getitem__": [call(X, 1), call(X, (slice(None), [0, 1]))],
    "__setitem__": [call(dlarray(A.copy()), (0, slice(None)), V), call(dlarray(A.copy()), A > 0.3, 1.0)],
    **{f"__{name}__": [call(X, A)] for name in OPERATORS.split()},
    **{f"__{name}__": [call(dlarray(N), N)] for name in ("and", "or", "xor", "rand", "ror", "rxor")},
    "__matmul__": [call(X, V)],
    "__rmatmul__": [call(X, np.ones(2))],
}  # fmt: skip
