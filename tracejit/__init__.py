# SPDX-License-Identifier: BSD-3-Clause
"""Labelled arrays with derivatives, and acceleration of custom training loops.

Long because each public name is imported and listed.
"""

import importlib
import typing

from tracejit.util import memory

with memory.collector_paused():  # which would scan the new modules thirty times, and find nothing to free
    from tracejit import errors, tree
    from tracejit.accelerate.function import AcceleratedFunction, clear_cache, dlaccelerate
    from tracejit.accelerate.policy import set_policy
    from tracejit.array import dlarray
    from tracejit.errors import (
        ArgumentError,
        ArgumentValueError,
        AxisError,
        BoundsError,
        CacheError,
        CacheWarning,
        ChangedTraceWarning,
        CodegenError,
        DeviceError,
        DeviceMemoryError,
        DimsError,
        DTypeError,
        ExportError,
        GradientError,
        KeyTypeError,
        LostChangeWarning,
        MatrixError,
        NotAcceleratedWarning,
        OutputsDifferWarning,
        RangeError,
        RetraceError,
        RetraceWarning,
        TraceError,
        TraceJitError,
        TraceJitWarning,
        WriteError,
    )
    from tracejit.functions.contraction import einsum
    from tracejit.functions.creation import (
        arange,
        eye,
        full,
        full_like,
        ones,
        ones_like,
        zeros,
        zeros_like,
    )
    from tracejit.functions.elementwise import (
        abs,
        add,
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctan2,
        arctanh,
        bitwise_and,
        bitwise_or,
        bitwise_xor,
        cast,
        cbrt,
        ceil,
        clip,
        cos,
        cosh,
        divide,
        equal,
        erf,
        exp,
        exp2,
        expm1,
        floor,
        floor_divide,
        greater,
        greater_equal,
        invert,
        isfinite,
        isinf,
        isnan,
        less,
        less_equal,
        log,
        log1p,
        log2,
        log10,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        maximum,
        minimum,
        multiply,
        negative,
        not_equal,
        positive,
        power,
        reciprocal,
        remainder,
        rint,
        round,
        sign,
        sin,
        sinh,
        sqrt,
        square,
        stop_gradient,
        subtract,
        tan,
        tanh,
        trunc,
        where,
    )
    from tracejit.functions.evaluate import dlfeval, dlgradient
    from tracejit.functions.joining import array_split, concatenate, hstack, split, stack, vstack
    from tracejit.functions.labels import (
        dims,
        extractdata,
        finddim,
        isdlarray,
        stripdims,
    )
    from tracejit.functions.layers.activations import (
        gelu,
        leakyrelu,
        logsoftmax,
        relu,
        sigmoid,
        softmax,
        softplus,
    )
    from tracejit.functions.layers.dense import fullyconnect
    from tracejit.functions.layers.encoding import onehotdecode, onehotencode
    from tracejit.functions.layers.losses import crossentropy, huber, l1loss, l2loss, mse
    from tracejit.functions.linear import diag, dot, inner, matmul, outer, tensordot, tril, triu, vdot
    from tracejit.functions.movement import (
        atleast_1d,
        atleast_2d,
        atleast_3d,
        broadcast_to,
        expand_dims,
        flatten,
        flip,
        moveaxis,
        permute,
        permute_dims,
        ravel,
        reshape,
        squeeze,
        swapaxes,
        transpose,
    )
    from tracejit.functions.norms import norm
    from tracejit.functions.numpy_api import (
        buffers,
        made_generators,
        methods,
        random_numbers,
        random_of_python,
    )
    from tracejit.functions.numpy_function import NumpyFunction, numpy_function
    from tracejit.functions.padding import pad, repeat, tile
    from tracejit.functions.random import (
        dropout,
        rand,
        randi,
        randn,
        randperm,
        rng,
    )
    from tracejit.functions.reductions import (
        all,
        any,
        argmax,
        argmin,
        count_nonzero,
        cumsum,
        logsumexp,
        max,
        mean,
        min,
        prod,
        ptp,
        std,
        sum,
        var,
    )
    from tracejit.functions.rng import Generator, RngState
    from tracejit.functions.rolling import roll
    from tracejit.functions.taking import nonzero, scatter_add, take, take_along_axis
    from tracejit.optim.clipping import clipgradients
    from tracejit.optim.loss_scale import LossScale
    from tracejit.optim.updates import adamupdate, dlupdate, rmspropupdate, sgdmupdate
    from tracejit.traces.devices import gather, gpu

    methods.install()
    buffers.install()
    random_numbers.install()
    random_of_python.install()
    made_generators.install()
    memory.age()

__all__ = [
    "AcceleratedFunction",
    "ArgumentError",
    "ArgumentValueError",
    "AxisError",
    "BoundsError",
    "CacheError",
    "CacheWarning",
    "ChangedTraceWarning",
    "CodegenError",
    "CustomGradient",
    "DTypeError",
    "DeviceError",
    "DeviceMemoryError",
    "DifferentiableFunction",
    "DimsError",
    "ExportError",
    "Exported",
    "Generator",
    "GradientError",
    "KeyTypeError",
    "LoadedFunction",
    "LoopKernel",
    "LossScale",
    "LostChangeWarning",
    "MatrixError",
    "NotAcceleratedWarning",
    "NumpyFunction",
    "OutputsDifferWarning",
    "RangeError",
    "RetraceError",
    "RetraceWarning",
    "RngState",
    "TraceError",
    "TraceJitError",
    "TraceJitWarning",
    "WriteError",
    "abs",
    "adamupdate",
    "adaptiveavgpool",
    "add",
    "all",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "attention",
    "avgpool",
    "batchnorm",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "cache",
    "cast",
    "cbrt",
    "ceil",
    "celu",
    "checklayer",
    "cholesky",
    "clear_cache",
    "clip",
    "clipgradients",
    "clippedrelu",
    "concatenate",
    "cos",
    "cosh",
    "count_nonzero",
    "crop",
    "crosschannelnorm",
    "crossentropy",
    "ctc",
    "cumsum",
    "custom_gradient",
    "depthtospace",
    "det",
    "diag",
    "dice",
    "dims",
    "divide",
    "dlaccelerate",
    "dlarray",
    "dlcheckpoint",
    "dlcond",
    "dlconv",
    "dldivergence",
    "dleuler",
    "dlfeval",
    "dlgradient",
    "dlhessian",
    "dljacobian",
    "dljvp",
    "dllaplacian",
    "dlmap",
    "dlnetwork",
    "dlode45",
    "dlresize",
    "dlrk4",
    "dlscan",
    "dltranspconv",
    "dlupdate",
    "dlwhile",
    "dot",
    "dropout",
    "einsum",
    "elu",
    "embed",
    "equal",
    "erf",
    "errors",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "export",
    "extractdata",
    "eye",
    "fft",
    "finddim",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "focalcrossentropy",
    "full",
    "full_like",
    "fullyconnect",
    "functionlayer",
    "gather",
    "gelu",
    "glu",
    "gpu",
    "greater",
    "greater_equal",
    "groupnorm",
    "gru",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hessian",
    "hstack",
    "huber",
    "hvp",
    "indexcrossentropy",
    "inner",
    "instancenorm",
    "integrate",
    "interpolate",
    "inv",
    "invert",
    "isdlarray",
    "isfinite",
    "isinf",
    "isnan",
    "istft",
    "jacobian",
    "jvp",
    "kernel",
    "l1loss",
    "l2loss",
    "layernorm",
    "lbfgsstate",
    "lbfgsupdate",
    "leakyrelu",
    "less",
    "less_equal",
    "linalg",
    "load",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsoftmax",
    "logsumexp",
    "lppool",
    "lstm",
    "matmul",
    "max",
    "maximum",
    "maxpool",
    "maxunpool",
    "mean",
    "min",
    "minibatchqueue",
    "minimum",
    "mish",
    "moveaxis",
    "mse",
    "multiply",
    "negative",
    "nn",
    "nonzero",
    "norm",
    "not_equal",
    "numpy_function",
    "onehotdecode",
    "onehotencode",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute",
    "permute_dims",
    "positive",
    "power",
    "prelu",
    "prod",
    "ptp",
    "rand",
    "randi",
    "randn",
    "randperm",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "rint",
    "rmsnorm",
    "rmspropupdate",
    "rng",
    "rnn",
    "roll",
    "round",
    "scatter_add",
    "selu",
    "set_policy",
    "sgdmupdate",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "slogdet",
    "softmax",
    "softplus",
    "solve",
    "solve_triangular",
    "spacetodepth",
    "spatial",
    "special",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stats",
    "std",
    "stft",
    "stop_gradient",
    "stripdims",
    "subtract",
    "sum",
    "swapaxes",
    "swish",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "testing",
    "tile",
    "trainingoptions",
    "trainnet",
    "transpose",
    "tree",
    "tril",
    "triu",
    "trunc",
    "var",
    "vdot",
    "vjp",
    "vstack",
    "where",
    "xp",
    "zeros",
    "zeros_like",
]


if typing.TYPE_CHECKING:
    from tracejit import (
        cache,
        fft,
        integrate,
        interpolate,
        linalg,
        nn,
        signal,
        spatial,
        special,
        stats,
        testing,
        xp,
    )
    from tracejit.exports.loader import LoadedFunction, load
    from tracejit.exports.writer import Exported, export
    from tracejit.functions.branches import dlcond, dlwhile
    from tracejit.functions.custom_gradient import CustomGradient, custom_gradient
    from tracejit.functions.derivatives import dldivergence, dlhessian, dljacobian, dljvp, dllaplacian
    from tracejit.functions.differentiable import DifferentiableFunction
    from tracejit.functions.kernel import LoopKernel, kernel
    from tracejit.functions.layers.activation_variants import (
        celu,
        clippedrelu,
        elu,
        glu,
        hardsigmoid,
        hardswish,
        hardtanh,
        mish,
        prelu,
        selu,
        swish,
    )
    from tracejit.functions.layers.attention import attention
    from tracejit.functions.layers.blocks import crop, depthtospace, spacetodepth
    from tracejit.functions.layers.class_losses import dice, focalcrossentropy, indexcrossentropy
    from tracejit.functions.layers.convolution import dlconv, dltranspconv
    from tracejit.functions.layers.ctc import ctc
    from tracejit.functions.layers.embedding import embed
    from tracejit.functions.layers.normalization import (
        batchnorm,
        crosschannelnorm,
        groupnorm,
        instancenorm,
        layernorm,
        rmsnorm,
    )
    from tracejit.functions.layers.pooling import adaptiveavgpool, avgpool, lppool, maxpool, maxunpool
    from tracejit.functions.layers.recurrent import gru, lstm, rnn
    from tracejit.functions.layers.resizing import dlresize
    from tracejit.functions.linalg import cholesky, det, inv, slogdet, solve, solve_triangular
    from tracejit.functions.loops import dlcheckpoint, dlscan
    from tracejit.functions.mapping import dlmap
    from tracejit.functions.stft import istft, stft
    from tracejit.functions.transforms import hessian, hvp, jacobian, jvp, vjp
    from tracejit.nn.check_layer import checklayer
    from tracejit.nn.layers.function import functionlayer
    from tracejit.nn.network import dlnetwork
    from tracejit.ode.dlode45 import dleuler, dlode45, dlrk4
    from tracejit.optim.lbfgs import lbfgsstate, lbfgsupdate
    from tracejit.training.minibatches import minibatchqueue
    from tracejit.training.options import trainingoptions
    from tracejit.training.trainnet import trainnet

    __version__: str
else:
    _MODULES = {  # imported when one of their names is asked for: many programs need none
        "exports.loader": ("LoadedFunction", "load"),
        "exports.writer": ("Exported", "export"),
        "functions.custom_gradient": ("CustomGradient", "custom_gradient"),
        "functions.differentiable": ("DifferentiableFunction",),
        "functions.kernel": ("LoopKernel", "kernel"),
        "functions.derivatives": ("dldivergence", "dlhessian", "dljacobian", "dljvp", "dllaplacian"),
        "functions.mapping": ("dlmap",),
        "functions.stft": ("istft", "stft"),
        "functions.transforms": ("hessian", "hvp", "jacobian", "jvp", "vjp"),
        "functions.layers.activation_variants": (
            "celu",
            "clippedrelu",
            "elu",
            "glu",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "mish",
            "prelu",
            "selu",
            "swish",
        ),
        "functions.layers.attention": ("attention",),
        "functions.layers.blocks": (
            "crop",
            "depthtospace",
            "spacetodepth",
        ),
        "functions.layers.class_losses": (
            "dice",
            "focalcrossentropy",
            "indexcrossentropy",
        ),
        "functions.layers.convolution": (
            "dlconv",
            "dltranspconv",
        ),
        "functions.layers.ctc": ("ctc",),
        "functions.layers.embedding": ("embed",),
        "functions.layers.normalization": (
            "batchnorm",
            "crosschannelnorm",
            "groupnorm",
            "instancenorm",
            "layernorm",
            "rmsnorm",
        ),
        "functions.layers.pooling": (
            "adaptiveavgpool",
            "avgpool",
            "lppool",
            "maxpool",
            "maxunpool",
        ),
        "functions.layers.recurrent": (
            "gru",
            "lstm",
            "rnn",
        ),
        "functions.layers.resizing": ("dlresize",),
        "functions.linalg": (
            "cholesky",
            "det",
            "inv",
            "slogdet",
            "solve",
            "solve_triangular",
        ),
        "ode.dlode45": ("dleuler", "dlode45", "dlrk4"),
        "functions.branches": (
            "dlcond",
            "dlwhile",
        ),
        "functions.loops": (
            "dlcheckpoint",
            "dlscan",
        ),
        "nn.check_layer": ("checklayer",),
        "nn.layers.function": ("functionlayer",),
        "nn.network": ("dlnetwork",),
        "optim.lbfgs": ("lbfgsstate", "lbfgsupdate"),
        "training.minibatches": ("minibatchqueue",),
        "training.options": ("trainingoptions",),
        "training.trainnet": ("trainnet",),
    }
    _NAMESPACES = (
        "cache",
        "fft",
        "integrate",
        "interpolate",
        "linalg",
        "nn",
        "signal",
        "spatial",
        "special",
        "stats",
        "testing",
        "xp",
    )
    _LATE = {name: f"tracejit.{module}" for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> typing.Any:
        """Return a public name that is imported late, or the version of the installed package."""
        if name in _NAMESPACES:
            return importlib.import_module(f"tracejit.{name}")
        if name in _LATE:
            value = getattr(importlib.import_module(_LATE[name]), name)
            globals()[name] = value
            return value
        if name == "__version__":
            from importlib.metadata import version  # takes 15 ms

            return version("tracejit")
        from importlib.util import find_spec

        if name.startswith("_") or find_spec(f"tracejit.{name}"):  # import asks before it imports one
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from tracejit.util.missing import unknown_function

        layers = importlib.import_module("tracejit.nn").__all__ if name.endswith("Layer") else ()
        raise unknown_function(name, __all__, layers)


def __dir__() -> list[str]:
    """Return the public names, without the folders that hold them."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
