# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of NumPy's functions and methods of arrays."""

import importlib
from collections.abc import Callable

import numpy as np
from messages_shared import M, V, X, traced
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    DimsError,
    DTypeError,
    GradientError,
    RangeError,
    TraceError,
    WriteError,
)
from tracejit.ops.ufunc_loops import ufunc_of
from tracejit.util import arguments

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # xp
    (
        lambda: tj.xp.einsum,
        AttributeError,
        "module 'tracejit.xp' has no attribute 'einsum'",
    ),
    # functions/numpy_api/methods
    (
        lambda: setattr(X.flags, "writeable", False),
        AttributeError,
        "flags.writeable of a dlarray cannot be set; set it on an ndarray and make a dlarray of it, tj.dlarray(data).",
    ),
    (
        lambda: tj.dlfeval(lambda x: setattr(x, "shape", (6, 1)), V),
        AttributeError,
        "shape of a dlarray that is an argument cannot be set; write y = x.reshape(shape), which is a view.",
    ),
    (
        lambda: setattr(X.copy().T, "shape", 6),
        AttributeError,
        "shape (6,) would move elements of 3(C) x 2(B) float64 in memory; write x = x.reshape(shape).",
    ),
    # functions/numpy_api/full_forms
    (
        lambda: np.ravel(X, "B"),
        ArgumentValueError,
        "np.ravel: order must be 'C', 'F', 'A' or 'K', not 'B'.",
    ),
    (
        lambda: np.reshape(X.T, 6, copy=False),
        ArgumentValueError,
        "np.reshape: copy=False cannot be met, as elements move in memory; leave copy= out.",
    ),
    # functions/numpy_api/seen
    (
        lambda: tj.dlfeval(lambda x: as_strided(x, (2, 2), (8,)), V),
        ArgumentError,
        "np.lib.stride_tricks.as_strided: shape is (2, 2) and strides (8,), expected one of both for each axis.",
    ),
    (
        lambda: tj.dlfeval(lambda x: as_strided(x, (2,), (4,)), V),
        ArgumentError,
        "np.lib.stride_tricks.as_strided: strides are (4,), expected multiples of 8, the bytes of an element.",
    ),
    (
        lambda: tj.dlfeval(lambda x: as_strided(x, (9,), (8,)), V),
        ArgumentError,
        "np.lib.stride_tricks.as_strided: shape (9,) with strides (8,) leaves the elements of x (3); pass the array "
        "that x is a view of.",
    ),
    (
        lambda: tj.dlfeval(lambda x: sliding_window_view(x, 2).__setitem__(0, 1.0), V),
        WriteError,
        "write: what np.lib.stride_tricks.sliding_window_view gives is read-only, as in NumPy; write to a copy "
        "(x.copy()), or pass writeable=True.",
    ),
    (
        lambda: tj.dlfeval(lambda x: as_strided(x, (2, 2), (8, 8)).__setitem__(0, 1.0), V),
        WriteError,
        "write: what np.lib.stride_tricks.as_strided gave shows elements in several places, and a trace does not know "
        "which of them is written; write into the array that it was made of.",
    ),
    (
        lambda: X.view(type=np.matrix),
        ArgumentError,
        "view: type is <class 'numpy.matrix'>, expected np.ndarray; dlarrays have no subclasses "
        "(x.reshape(shape) changes sizes).",
    ),
    (
        lambda: X.T.view(np.float32),
        ArgumentError,
        "view: float64 seen as float32 needs a last axis whose elements are neighbours; pass x.copy().",
    ),
    (
        lambda: tj.dlarray(V).view(np.complex128),
        ArgumentError,
        "view: the last axis has 3 elements of float64, which complex128 does not divide.",
    ),
    (
        lambda: tj.dlarray(V).sum().flat.__setitem__(0, 1.0),
        WriteError,
        "write: a number has no elements to write; assign it to a name.",
    ),
    # functions/numpy_api/classes
    (
        lambda: tj.dlfeval(lambda x: np.nditer(x, flags=["external_loop"]), V),
        ArgumentError,
        "np.nditer: 'external_loop' is not supported on traced arrays; leave it out, or compute with whole arrays.",
    ),
    # functions/numpy_api/unasked
    (
        lambda: tj.dlfeval(lambda x: np.ma.array(x, mask=[True, False, True]), V),
        ArgumentError,
        "np.ma.array: masked arrays are not recorded; compute with np.where(mask, 0, x), with where= "
        "(x.sum(where=~mask)), or with functions that leave NaN out (np.nanmean).",
    ),
    (
        lambda: tj.dlfeval(lambda x: np.asarray_chkfinite(np.log(x * 0)), V),
        ValueError,
        "array must not contain infs or NaNs",
    ),
    # functions/numpy_api/counting
    (
        lambda: np.histogram(tj.dlarray(V), "most"),
        ArgumentValueError,
        "np.histogram: bins='most' is no rule for the number of bins; pass 'auto', a number, or edges.",
    ),
    # functions/halves
    (
        lambda: np.spacing(tj.dlarray(np.arange(3, dtype=np.uint8))),
        DTypeError,
        "np.spacing: NumPy computes it in float16 for operands of 8 bits, which is not supported; cast them first "
        "(x.astype(np.float32)).",
    ),
    # functions/numpy_api/buffers
    (
        lambda: tj.dlfeval(lambda x: np.array(x, dtype=object), X),
        DTypeError,
        "np.array: data of type object is not supported as dtype; use float64, float32, float16, bfloat16 (of "
        "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
    # functions/elementwise
    (
        lambda: np.round(tj.dlarray(np.array([True])), 1),
        DTypeError,
        "round: not defined for bool; cast the operands first (x.astype(np.float64)).",
    ),
    (
        lambda: np.positive(tj.dlarray(np.array([True]))),
        DTypeError,
        "positive: not defined for bool; cast the operands first (x.astype(np.float64)).",
    ),
    (
        lambda: +tj.dlarray(np.array([True])),
        DTypeError,
        "positive: not defined for bool; cast the operands first (x.astype(np.float64)).",
    ),
    # functions/numpy_api/ufuncs
    (
        lambda: np.matvec(tj.dlarray(V), V),
        DimsError,
        "np.matvec: x1 has 1 axes, expected matrices (two axes or more); use np.vecdot for two vectors.",
    ),
    # functions/numpy_api/masked
    (
        lambda: np.max(tj.dlarray(np.arange(3, dtype=np.uint8)), initial=-1),
        RangeError,
        "np.max: initial=-1 does not fit uint8 (0 to 255); pass dtype=, or cast the array first.",
    ),
    # functions/numpy_api/matrices
    (
        lambda: np.linalg.cross(tj.dlarray(np.ones((2, 2))), tj.dlarray(np.ones((2, 2)))),
        ArgumentError,
        "np.linalg.cross: vectors along axis -1 of (2, 2) and (2, 2) need 3 elements.",
    ),
    # functions/numpy_api/concatenators
    (
        lambda: tj.dlfeval(lambda x: np.r_["r", x], V),
        ArgumentError,
        "np.r_: the directive 'r' is not supported on dlarrays; integers come first.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(lambda x: x if x > 0 else -x), tj.dlarray(np.ones(300))),
        TraceError,
        "np.vectorize: bool() needs the value of an array that differs between observations at <place>; "
        "<lambda>.<locals>.<lambda> is recorded once for all of them. Choose with where(condition, a, b), or call the "
        "function in a loop.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(np.exp), V[:0]),
        ArgumentError,
        "np.vectorize: there are no elements, so that the dtype of the result is not known; pass otypes=.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(np.add), V, V[:2]),
        ArgumentValueError,
        "np.vectorize: the sizes (3,), (2,) do not broadcast; they must be equal, or 1.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(np.dot, signature="(n),(n)->()"), V),
        ArgumentValueError,
        "np.vectorize: there are 1 arguments, expected 2 by the signature '(n),(n)->()'.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(np.sum, signature="(n,n)->()"), V),
        ArgumentValueError,
        "np.vectorize: argument 0 has fewer axes than the signature gives an element.",
    ),
    (
        lambda: tj.dlfeval(np.vectorize(np.sum, signature="(n)->(),()"), V),
        ArgumentValueError,
        "np.vectorize: the function does not have as many results as its signature, 2.",
    ),
    # functions/numpy_api/dispatch
    (
        lambda: tj.dlfeval(lambda x: np.save("never.npy", x), X),
        TraceError,
        "np.save: 2(B) x 3(C) float64 is traced, and a replay writes no file; return the array from the function and "
        "save it outside.",
    ),
    (
        lambda: np.isnat(X),
        ArgumentError,
        "np.isnat: not supported on dlarrays; compose it of functions that tracejit has (dir(tracejit) lists them). "
        "If no gradient is needed, take the value with extractdata(x) first.",
    ),
    (
        lambda: traced(lambda x: np.repeat(x, (x[:, 0] > 0) * 1, axis=1)),
        DimsError,
        "repeat: repeats has 2 numbers, expected one for each of 3 places.",
    ),
    (
        lambda: traced(lambda x: np.repeat(x, (x[:, 0] < np.inf) * -1, axis=0)),
        DimsError,
        "repeat: repeats has negative numbers, expected numbers >= 0.",
    ),
    (
        lambda: traced(lambda x: np.repeat(x, x[:, 0], axis=0)),
        DTypeError,
        "repeat: repeats has dtype float64, expected integers.",
    ),
    (
        lambda: traced(lambda x: importlib.import_module("scipy.interpolate").RBFInterpolator(x, [1.0, 2.0])),
        TraceError,
        "scipy.interpolate.RBFInterpolator: not supported on traced dlarrays, whose derivative it would drop (2x3 "
        "float64 at <place>); compose it of functions that tracejit has (dir(tracejit) lists them). If no gradient is "
        "needed, take the value with extractdata(x) first.",
    ),
    (
        lambda: tj.einsum("ij->i", M, optimize="much"),
        ArgumentError,
        "einsum: optimize must be True, False, 'greedy', 'optimal' or a path of numpy.einsum_path, not 'much'.",
    ),
    (
        lambda: tj.arange(None),
        ArgumentError,
        "arange: cannot go from 0 to None by 1: None is no number; give numbers, and a step that leads from start "
        "to stop.",
    ),
    (
        lambda: tj.zeros(3, tj.dlarray(1.0)),
        ArgumentError,
        "zeros: dtype must be a NumPy dtype such as np.float32, not scalar dlarray float64 1.0.",
    ),
    (
        lambda: tj.zeros({1, 2}),
        DimsError,
        "zeros: shape must be an integer or a tuple of integers, not {1, 2}.",
    ),
    (
        lambda: tj.tree.map(None, X),
        ArgumentError,
        "map: fun must be a function, not None.",
    ),
    (
        lambda: tj.tree.map(abs),
        ArgumentError,
        "map: there is no tree; pass map(fun, tree).",
    ),
    (
        lambda: tj.tree.unflatten(None, []),
        ArgumentError,
        "unflatten: treedef must be what flatten returned, not None.",
    ),
    (
        lambda: tj.tree.unflatten(tj.tree.flatten([1])[1], 3),
        ArgumentError,
        "unflatten: leaves must be a list or a tuple, not 3.",
    ),
    (
        lambda: tj.tree.paths(None, "x"),
        ArgumentError,
        "paths: treedef must be what flatten returned, not None.",
    ),
    (
        lambda: tj.tree.paths(tj.tree.flatten([1])[1], 3),
        ArgumentError,
        "paths: root must be a string, not 3.",
    ),
    (
        lambda: tj.testing.check_gradients(tj.sum, X, order=10**15),
        ArgumentError,
        "check_gradients: order must be at most 20, not 1000000000000000.",
    ),
    (
        lambda: tj.testing.check_gradients(tj.sum, X, rtol=-1.0),
        ArgumentError,
        "check_gradients: rtol must be a number >= 0, not -1.0.",
    ),
    (
        lambda: arguments.path("load", "path", None),
        ArgumentError,
        "load: path must be a path, not None.",
    ),
    (
        lambda: arguments.named("export", "kwargs", [1]),
        ArgumentError,
        "export: kwargs must be a dict from names, not [1].",
    ),
    (
        lambda: setattr(X, "base", 1.0),
        AttributeError,
        "attribute 'base' of a dlarray cannot be set; write x[...] = values.",
    ),
    (
        lambda: setattr(X, "requires_grad", True),
        AttributeError,
        "'dlarray' object has no attribute 'requires_grad': there are gradients by all arguments; tj.stop_gradient(x) "
        "cuts a derivative.",
    ),
    (
        lambda: tj.grad,
        AttributeError,
        "tj.grad: there is no such name; tj.dlgradient(loss, params) gives gradients, in the function that computes "
        "the loss.",
    ),
    (
        lambda: X.byteswap,
        AttributeError,
        "'dlarray' object has no attribute 'byteswap': x.byteswap() is tj.extractdata(x).byteswap().",
    ),
    (
        lambda: np.cov(tj.dlarray([1.0, 2.0]), ddof=0.5),  # type: ignore[arg-type]
        ArgumentValueError,
        "np.cov: ddof must be an integer, not 0.5.",
    ),
    (
        lambda: np.cov(tj.dlarray([1.0, 2.0]), fweights=[0.5, 2.0]),  # type: ignore[arg-type]
        ArgumentError,
        "np.cov: fweights must be integers, as they count observations; aweights need not be.",
    ),
    (
        lambda: np.cov(tj.dlarray([1.0, 2.0]), aweights=[-1.0, 2.0]),
        ArgumentValueError,
        "np.cov: aweights must not be negative.",
    ),
    (
        lambda: tj.where(X > 0, X),
        ArgumentValueError,
        "where: one of x and y is missing; pass both, or neither for the places where the condition holds.",
    ),
    (
        lambda: tj.dlfeval(tj.dlmap(lambda y: np.add(y, y, out=V), over=0), tj.dlarray(np.ones((2, 3)))),
        ArgumentError,
        "np.add: out is an ndarray, and the result is traced. Fill an array that holds traced values: one that "
        "np.zeros, np.ones, np.empty, np.full or np.array, called by name, made in the function, "
        "tj.dlarray(y).copy() of an ndarray y, or an attribute that is a dlarray (self.y = tj.dlarray(y)); or join "
        "the values with np.stack.",
    ),
    # functions/numpy_api/writes
    (
        lambda: np.sum(X, out=3),
        ArgumentError,
        "np.sum: out must be an array, not int.",
    ),
    (
        lambda: tj.dlfeval(tj.dlmap(lambda y: np.copyto(V, y), over=0), tj.dlarray(np.ones((2, 3)))),
        ArgumentError,
        "np.copyto: dst is an ndarray, and what is written is traced. Fill an array that holds traced values: "
        "one that np.zeros, np.ones, np.empty, np.full or np.array, called by name, made in the function, "
        "tj.dlarray(y).copy() of an ndarray y, or an attribute that is a dlarray (self.y = tj.dlarray(y)); or join "
        "the values with np.stack.",
    ),
    (
        lambda: np.put_along_axis(3, tj.dlarray([0]), 1.0, 0),  # type: ignore[arg-type]
        ArgumentError,
        "np.put_along_axis: arr must be an array, not int.",
    ),
    (
        lambda: np.copyto(tj.dlarray([1.0]), V[:1], casting="no"),  # type: ignore[arg-type]
        ArgumentError,
        "np.copyto: casting must be 'same_kind' or 'unsafe' for dlarrays, not 'no'.",
    ),
    (
        lambda: np.fill_diagonal(tj.dlarray([1.0]), 0),  # type: ignore[arg-type]
        ArgumentValueError,
        "np.fill_diagonal: a has size (1,), expected a matrix, or more axes of one size; use a[i, i] = val.",
    ),
    (
        lambda: np.put_along_axis(X.copy(), np.array([0]), 1.0, 0),  # type: ignore[arg-type]
        ArgumentError,
        "np.put_along_axis: indices have 1 axes, but arr has 2; give one index for each element, with as many axes as "
        "arr.",
    ),
    (
        lambda: np.put(X.copy(), [0], 1.0, mode="no"),  # type: ignore[call-overload]
        ArgumentError,
        "np.put: mode must be 'raise', 'wrap' or 'clip', not 'no'.",
    ),
    (
        lambda: np.place(X.copy(), X > 0, []),  # type: ignore[arg-type]
        ArgumentValueError,
        "np.place: vals is empty; pass at least one value.",
    ),
    (
        lambda: tj.dlfeval(lambda x: np.array(x, np.float32, copy=False), X),
        ValueError,
        "np.array: copy=False cannot be met, as a copy is needed; leave copy= out.",
    ),
    (
        lambda: np.add(X, X, where=M > 0),
        ArgumentError,
        "np.add: where= is not supported on dlarrays; use where(condition, x, y) to select, and "
        "x.astype(dtype) to convert.",
    ),
    (
        lambda: np.zeros_like(X, device="gpu"),  # type: ignore[call-overload]
        ArgumentError,
        "np.zeros_like: device= is not supported on dlarrays; arguments are x, dtype, order, shape.",
    ),
    (
        lambda: np.zeros_like(X, order="Z"),  # type: ignore[call-overload]
        ArgumentValueError,
        "zeros_like: order must be 'K', 'A', 'C' or 'F', not 'Z'.",
    ),
    (
        lambda: np.put_along_axis(tj.dlarray(np.zeros(2)), np.array([[0]]), 1.0, None),
        ArgumentValueError,
        "np.put_along_axis: indices have 2 axes, expected 1 with axis=None; ravel them.",
    ),
    (
        lambda: np.clip(X, 0, 1, max=1),  # type: ignore[call-overload]
        ArgumentValueError,
        "np.clip: min= and max= mean the same as a_min and a_max; pass one pair of them.",
    ),
    (
        lambda: np.select([X > 0], [X, X]),
        ArgumentValueError,
        "np.select: there are 1 conditions and 2 choices, expected as many of both, and one at least.",
    ),
    (
        lambda: np.pad(X, 1, stat_length=3),
        ArgumentValueError,
        "np.pad: mode='constant' with stat_length= is not supported.",
    ),
    (
        lambda: np.pad(X, 1, "maximum", stat_length=0),
        ArgumentValueError,
        "np.pad: stat_length=0 must be made of integers >= 1 for mode='maximum'.",
    ),
    (
        lambda: np.pad(X, 1, constant_values=tj.dlarray([1.0, 2.0, 3.0])),
        ArgumentError,
        "np.pad: constant_values of size 3 are not a number, a pair (before, after) or one pair for each of the 2 axes "
        "of x.",
    ),
    (
        lambda: np.where(X > 0, "up", [1, 2, 3, 4, 5]),
        ArgumentValueError,
        "np.where: operands could not be broadcast together with shapes (2,3) () (5,); use arrays of sizes that fit, "
        "and dtype=object for texts among numbers.",
    ),
    (
        lambda: np.clip(X, 0, 1, dtype=np.int64),
        ArgumentError,
        "np.clip: operands of float64 are not cast to int64 with casting='same_kind'; use x.astype(dtype).",
    ),
    (
        lambda: np.clip(X, 0, 1, where=M > 0),  # type: ignore[call-overload]
        ArgumentError,
        "np.clip: where= is not supported on dlarrays; arguments are x, a_min, a_max, min, max, dtype, casting.",
    ),
    (
        lambda: np.argmax(X, axis=0, out=np.zeros(3)),
        DTypeError,
        "np.argmax: the result is int64, but out is float64; pass an array of integers.",
    ),
    (
        lambda: np.putmask(tj.dlarray(np.arange(3)), V > 0, V),
        DTypeError,
        "np.putmask: values are float64, which int64 numbers cannot hold in full; cast them first "
        "(values.astype(np.int64)).",
    ),
    (
        lambda: round(tj.dlarray(1j)),
        DTypeError,
        "round: a complex number has no nearest integer; np.round(x) rounds its real and its imaginary part.",
    ),
    (
        lambda: np.linalg.norm(X, axis=()),
        DimsError,
        "np.linalg.norm: axis=() names 0 axes, expected one for vectors or two for matrices; leave axis out for all "
        "elements.",
    ),
    (
        lambda: np.geomspace(X[0, 0] * 0, 1),
        ArgumentValueError,
        "np.geomspace: start and stop must not be zero.",
    ),
    (
        lambda: np.vander(V * X[0], -1),
        ArgumentValueError,
        "np.vander: N is -1, expected a number that is not negative.",
    ),
    (
        lambda: np.polyfit(X[0], V, -1),
        ArgumentValueError,
        "np.polyfit: deg is -1, expected a number that is not negative.",
    ),
    (
        lambda: np.einsum("ij->", X, casting="no"),
        ArgumentError,
        "np.einsum: casting= is not supported on dlarrays; cast the operands first.",
    ),
    (
        lambda: np.rot90(X, 1, None),  # type: ignore[arg-type]
        ArgumentError,
        "np.rot90: these arguments cannot be used: TypeError: \"'NoneType' object is not iterable\"; see the "
        "documentation of NumPy for what it takes.",
    ),
    (
        lambda: X.copy("B"),
        ArgumentError,
        "copy: order must be 'C', 'K', 'A' or 'F', not 'B'.",
    ),
    (
        lambda: np.gcd(X, X),
        ArgumentError,
        "np.gcd: it is not defined for float64, float64; cast the operands first.",
    ),
    (
        lambda: apply("recurrence", X, X[:1], axis=1, reverse=False),
        DimsError,
        "recurrence: a has size 2(B) x 3(C) and b 1(B) x 3(C); broadcast them to one size.",
    ),
    (
        lambda: tj.special.jv(2.0),
        ArgumentError,
        "special.jv: 1 operands, expected 2; see the documentation of SciPy.",
    ),
    (
        lambda: tj.special.eval_hermite(2.5, X),
        DTypeError,
        "special.eval_hermite: not defined for float, float64; cast the operands first (x.astype(np.float64)).",
    ),
    (
        lambda: tj.dlfeval(lambda v: tj.dlgradient(tj.special.jv(v, 1.0), v), np.array(2.0)),
        GradientError,
        "special.jv: there is no formula for its derivative by operand 1; pass an operand that does not depend "
        "on the variables (stop_gradient cuts a dependence).",
    ),
    (
        lambda: tj.dlfeval(
            lambda v: tj.dlgradient(tj.dlgradient(tj.special.gammainc(v, 1.0), v), v), np.array(2.0)
        ),
        GradientError,
        "special.gammainc: there is no formula for its second derivative by a parameter; pass one that does not depend "
        "on the variables (stop_gradient cuts a dependence).",
    ),
    (
        lambda: ufunc_of("nothing"),
        ArgumentError,
        "scipy.special.nothing: the SciPy that is installed has no such function; install another version.",
    ),
    (
        lambda: tj.special.multigammaln(3.0, 0),
        ArgumentError,
        "special.multigammaln: d is 0, expected a positive dimension.",
    ),
    (
        lambda: tj.special.comb(X, 2, exact=True),
        ArgumentError,
        "special.comb: exact=True is not supported on dlarrays; use math.comb.",
    ),
    (
        lambda: tj.special.perm(X, 2, exact=True),
        ArgumentError,
        "special.perm: exact=True is not supported on dlarrays; use math.perm.",
    ),
    (
        lambda: tj.special.jvp(2, X, -1),
        ArgumentError,
        "special.jvp: n is -1, expected the number of a derivative.",
    ),
    # stats
    (
        lambda: tj.stats.zipf.cdf(X, 3.0),
        ArgumentError,
        "stats.zipf.cdf: there is no formula for it; there are formulas for logpmf.",
    ),
    (
        lambda: tj.stats.gamma.logpdf(X),
        ArgumentError,
        "stats.gamma.logpdf: a is missing; parameters are a, loc, scale.",
    ),
    (
        lambda: tj.stats.poisson.logpmf(X, 1.0, scale=2.0),
        ArgumentError,
        "stats.poisson.logpmf: 'scale' is unknown or given twice; parameters are mu, loc.",
    ),
    (
        lambda: tj.stats.norm.pmf(X),
        ArgumentError,
        "stats.norm.pmf: the distribution has pdf instead.",
    ),
    (
        lambda: tj.stats.multivariate_normal.logpdf(M, np.zeros(2)),
        DimsError,
        "stats.multivariate_normal.logpdf: x has 3 components, mean and cov 2; vectors lie along the last axis.",
    ),
    (
        lambda: tj.stats.multivariate_normal.logpdf(M, np.zeros(3), np.eye(2)),
        DimsError,
        "stats.multivariate_normal.logpdf: cov has size (2, 2), expected (3, 3).",
    ),
    (
        lambda: tj.stats.dirichlet.logpdf(M, np.ones(5)),
        DimsError,
        "stats.dirichlet.logpdf: x has size (2, 3) and alpha (5,); shares lie along the first axis of x, as many as "
        "numbers in alpha or one less.",
    ),
    # xp
    (
        lambda: tj.xp.zeros(3, device="gpu"),
        ArgumentError,
        "xp.zeros: device must be 'cpu' or None, not 'gpu'.",
    ),
    (
        lambda: tj.xp.asarray(X, dtype=np.float32, copy=False),
        ValueError,
        "xp.asarray: copy=False cannot be met, because the dtype is a different one; leave copy out.",
    ),
    (
        lambda: tj.xp.__array_namespace_info__().dtypes(kind="real"),
        ArgumentError,
        "xp.dtypes: kind is 'real', expected one of bool, signed integer, unsigned integer, integral, real floating, "
        "complex floating, numeric.",
    ),
    (
        lambda: X.__array_namespace__(api_version="1999"),
        ArgumentError,
        "__array_namespace__: api_version is '1999', expected '2025.12' or an earlier one.",
    ),
    (
        lambda: X.to_device("gpu"),
        ArgumentError,
        "to_device: device must be 'cpu', not 'gpu'; gpu(x) copies an array to the GPU.",
    ),
    (
        lambda: tj.dlarray([1.0]).mT,
        DimsError,
        "mT: an array of 1 axes holds no matrices; use reshape.",
    ),
)
