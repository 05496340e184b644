# SPDX-License-Identifier: BSD-3-Clause
"""Remedies for functions and attributes that dlarrays do not have: a call of each, and an expression in its place.

The names in them: x, y vectors, A, B matrices, n integers, b and c conditions, k a kernel, a and h numbers, i an index.
A test computes both sides of each row.
"""

Row = tuple[str, str]

_SORTED = "x[np.argsort(tj.extractdata(x))]"
_WITHOUT_NAN = "x[~np.isnan(x)]"

_BINARY = (
    "add", "arctan2", "divide", "equal", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum",
    "multiply", "not_equal", "power", "remainder", "subtract",
)  # fmt: skip

_NUMPY = (
    ("np.angle(x)", "np.where(x < 0, np.pi, 0.0)"),
    ("np.append(x, y)", "np.concatenate([np.ravel(x), np.ravel(y)])"),
    ("np.apply_along_axis(f, 1, A)", "np.stack([f(row) for row in A])"),
    ("np.apply_over_axes(np.sum, A, [0, 1])", "np.sum(A, axis=(0, 1), keepdims=True)"),
    ("np.argpartition(x, 2)[2]", "np.argsort(tj.extractdata(x))[2]"),
    ("np.argsort(x)", "np.argsort(tj.extractdata(x))"),
    ("np.argwhere(b)", "np.stack(np.nonzero(b), axis=1)"),
    ("np.array_equiv(x, x)", "np.array_equal(x, x)"),
    ("np.astype(x, np.float32)", "x.astype(np.float32)"),
    ("np.average(x, weights=y)", "np.sum(y * x) / np.sum(y)"),
    ("np.bincount(n, minlength=9)", "tj.scatter_add(tj.zeros(9, int), n, 1)"),
    ("np.block([[A, B], [B, A]])", "np.vstack([np.hstack([A, B]), np.hstack([B, A])])"),
    ("np.broadcast_arrays(x, A)[0]", "np.broadcast_to(x, A.shape)"),
    ("np.choose(n % 2, [x, y])", "np.where(n % 2 == 0, x, y)"),
    ("np.column_stack([x, y])", "np.stack([x, y], axis=1)"),
    ("np.compress(b, x)", "x[b]"),
    ("np.convolve(x, k, 'valid')", "sum(k[-1 - j] * x[j : len(x) - len(k) + 1 + j] for j in range(len(k)))"),
    (
        "np.corrcoef(A)",
        "d @ d.T / np.outer(s, s), where d = A - np.mean(A, axis=1, keepdims=True), s = np.linalg.norm(d, axis=1)",
    ),
    ("np.correlate(x, k)", "sum(k[j] * x[j : len(x) - len(k) + 1 + j] for j in range(len(k)))"),
    ("np.cov(A)", "d @ d.T / (A.shape[1] - 1), where d = A - np.mean(A, axis=1, keepdims=True)"),
    ("np.cross(x, y)", "x[[1, 2, 0]] * y[[2, 0, 1]] - x[[2, 0, 1]] * y[[1, 2, 0]]"),
    ("np.cumprod(x)", "np.exp(np.cumsum(np.log(x))); for x > 0"),
    ("np.cumulative_prod(x)", "np.exp(np.cumsum(np.log(x))); for x > 0"),
    ("np.cumulative_sum(x)", "np.cumsum(x)"),
    ("np.delete(x, i)", "np.concatenate([x[:i], x[i + 1 :]])"),
    ("np.diagflat(A)", "np.diag(np.ravel(A))"),
    ("np.diagonal(A)", "np.diag(A)"),
    ("np.diff(x)", "x[1:] - x[:-1]"),
    ("np.digitize(y, np.sort(x))", f"np.sum(y[:, None] >= s, axis=1), where s = {_SORTED}"),
    ("np.dsplit(A[:, :, None], 1)[0]", "np.split(A[:, :, None], 1, axis=2)[0]"),
    ("np.dstack([A, B])", "np.stack([A, B], axis=2)"),
    ("np.ediff1d(x)", "x[1:] - x[:-1]"),
    ("np.extract(b, x)", "x[b]"),
    ("np.fix(x)", "np.trunc(x)"),
    ("np.flatnonzero(b)", "np.nonzero(np.ravel(b))[0]"),
    ("np.fliplr(A)", "np.flip(A, 1)"),
    ("np.flipud(A)", "np.flip(A, 0)"),
    ("np.geomspace(a, h, 5)", "a * (h / a) ** np.linspace(0, 1, 5)"),
    ("np.gradient(x)", "np.concatenate([x[1:2] - x[:1], (x[2:] - x[:-2]) / 2, x[-1:] - x[-2:-1]])"),
    ("np.histogram(x, 4)[0]", "np.histogram(tj.extractdata(x), 4)[0]"),
    ("np.hsplit(A, 3)[0]", "np.split(A, 3, axis=1)[0]"),
    ("np.imag(x)", "np.zeros_like(x)"),
    ("np.insert(x, i, a)", "np.concatenate([x[:i], np.reshape(a, 1), x[i:]])"),
    (
        "np.interp(x, s, y)",
        "y[j] + (x - s[j]) * (y[j + 1] - y[j]) / (s[j + 1] - s[j]), where "
        "j = np.clip(np.sum(x[:, None] >= s, axis=1) - 1, 0, len(s) - 2); for x between s[0] and s[-1]",
    ),
    ("np.isclose(x, y)", "np.abs(x - y) <= 1e-8 + 1e-5 * np.abs(y)"),
    ("np.isin(x, y)", "np.any(x[:, None] == y, axis=1)"),
    ("np.isneginf(x)", "x == -np.inf"),
    ("np.isposinf(x)", "x == np.inf"),
    ("np.isreal(x)", "x == x"),
    ("np.kron(A, B)", "(A[:, None, :, None] * B[:, None, :]).reshape(len(A) * len(B), -1)"),
    ("np.linspace(a, h, 5)", "a + (h - a) * np.linspace(0, 1, 5)"),
    ("np.logspace(a, h, 5)", "10.0 ** (a + (h - a) * np.linspace(0, 1, 5))"),
    ("np.matrix_transpose(A)", "np.swapaxes(A, -1, -2)"),
    ("np.median(x)", f"(s[(len(x) - 1) // 2] + s[len(x) // 2]) / 2, where s = {_SORTED}"),
    ("np.meshgrid(x, y)[1]", "np.broadcast_to(y[:, None], (len(y), len(x)))"),
    ("np.nan_to_num(x)", "np.where(np.isnan(x), 0.0, x)"),
    ("np.nanargmax(x)", "np.argmax(np.where(np.isnan(x), -np.inf, x))"),
    ("np.nanargmin(x)", "np.argmin(np.where(np.isnan(x), np.inf, x))"),
    ("np.nancumprod(x)", "np.exp(np.cumsum(np.log(np.where(np.isnan(x), 1.0, x)))); for x > 0"),
    ("np.nancumsum(x)", "np.cumsum(np.where(np.isnan(x), 0.0, x))"),
    ("np.nanmax(x)", "np.max(np.where(np.isnan(x), -np.inf, x))"),
    ("np.nanmean(x)", f"np.mean({_WITHOUT_NAN})"),
    (
        "np.nanmedian(x)",
        f"(s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2, where v = {_WITHOUT_NAN}, "
        "s = v[np.argsort(tj.extractdata(v))]",
    ),
    ("np.nanmin(x)", "np.min(np.where(np.isnan(x), np.inf, x))"),
    ("np.nanprod(x)", "np.prod(np.where(np.isnan(x), 1.0, x))"),
    ("np.nanstd(x)", f"np.std({_WITHOUT_NAN})"),
    ("np.nansum(x)", "np.sum(np.where(np.isnan(x), 0.0, x))"),
    ("np.nanvar(x)", f"np.var({_WITHOUT_NAN})"),
    ("np.partition(x, 2)[2]", f"s[2], where s = {_SORTED}"),
    (
        "np.percentile(x, 30)",
        f"s[int(h)] + (h - int(h)) * (s[int(h) + 1] - s[int(h)]), where s = {_SORTED}, h = 0.30 * (len(x) - 1)",
    ),
    ("np.piecewise(x, [x < 1], [lambda v: -v, lambda v: v])", "np.where(x < 1, -x, x)"),
    ("np.polyadd(x, y)", "x + y"),
    ("np.polyder(x)", "x[:-1] * np.arange(len(x) - 1, 0, -1)"),
    ("np.polyint(x)", "np.concatenate([x / np.arange(len(x), 0, -1), [0.0]])"),
    ("np.polymul(x, k)", "sum(k[j] * np.pad(x, (j, len(k) - 1 - j)) for j in range(len(k)))"),
    ("np.polysub(x, y)", "x - y"),
    ("np.polyval(k, x)", "sum(k[j] * x ** (len(k) - 1 - j) for j in range(len(k)))"),
    (
        "np.quantile(x, 0.3)",
        f"s[int(h)] + (h - int(h)) * (s[int(h) + 1] - s[int(h)]), where s = {_SORTED}, h = 0.3 * (len(x) - 1)",
    ),
    ("np.real(x)", "x"),
    ("np.real_if_close(x)", "x"),
    ("np.resize(x, 2 * len(x))", "np.tile(x, 2)"),
    ("np.rollaxis(A, 1)", "np.moveaxis(A, 1, 0)"),
    ("np.rot90(A)", "np.flip(A.T, 0)"),
    ("np.searchsorted(np.sort(x), y)", f"np.sum(s < y[:, None], axis=1), where s = {_SORTED}"),
    ("np.select([b, c], [x, y])", "np.where(b, x, np.where(c, y, 0.0))"),
    ("np.sinc(x)", "np.where(x == 0, 1.0, np.sin(np.pi * x) / np.where(x == 0, 1.0, np.pi * x))"),
    ("np.sort(x)", _SORTED),
    ("np.trapezoid(y, x)", "np.sum((y[1:] + y[:-1]) * (x[1:] - x[:-1])) / 2"),
    ("np.tril_indices_from(A)[0]", "np.tril_indices(len(A))[0]"),
    ("np.triu_indices_from(A)[0]", "np.triu_indices(len(A))[0]"),
    ("np.unique(x)", "np.unique(tj.extractdata(x))"),
    ("np.unstack(A)[1]", "list(A)[1]"),
    ("np.vander(x, 3)", "x[:, None] ** np.array([2, 1, 0])"),
    ("np.vsplit(A, 3)[0]", "np.split(A, 3)[0]"),
    # np.fft
    (
        "np.fft.fft(x).real",
        "np.cos(t) @ x, where j = np.arange(len(x)), t = 2 * np.pi * np.outer(j, j) / len(x); the imaginary part is "
        "-np.sin(t) @ x",
    ),
    ("np.fft.fftshift(x)", "np.roll(x, len(x) // 2)"),
    ("np.fft.ifftshift(x)", "np.roll(x, -(len(x) // 2))"),
    # np.linalg
    ("np.linalg.cross(x, y)", "x[[1, 2, 0]] * y[[2, 0, 1]] - x[[2, 0, 1]] * y[[1, 2, 0]]"),
    ("np.linalg.det(A[:2, :2])", "A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]"),
    ("np.linalg.diagonal(A)", "np.diag(A)"),
    (
        "np.linalg.inv(A[:2, :2])",
        "np.reshape(np.stack([A[1, 1], -A[0, 1], -A[1, 0], A[0, 0]]), (2, 2)) / "
        "(A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])",
    ),
    ("np.linalg.matmul(A, B)", "A @ B"),
    ("np.linalg.matrix_norm(A)", "np.linalg.norm(A)"),
    ("np.linalg.matrix_power(A, 3)", "A @ A @ A"),
    ("np.linalg.matrix_transpose(A)", "np.swapaxes(A, -1, -2)"),
    ("np.linalg.multi_dot([A, B, x])", "A @ (B @ x)"),
    ("np.linalg.outer(x, y)", "np.outer(x, y)"),
    ("np.linalg.solve(M, x)", "np.linalg.inv(M) @ x; for a constant ndarray M"),
    ("np.linalg.tensordot(A, B)", "np.tensordot(A, B)"),
    ("np.linalg.trace(A)", "np.trace(A)"),
    ("np.linalg.vecdot(x, y)", "np.sum(x * y, axis=-1)"),
    ("np.linalg.vector_norm(x)", "np.linalg.norm(x)"),
    # ufuncs
    ("np.bitwise_count(n)", "sum(n // 2**j % 2 for j in range(8))"),
    ("np.conjugate(x)", "x"),
    ("np.copysign(x, y)", "np.where(y < 0, -np.abs(x), np.abs(x))"),
    ("np.deg2rad(x)", "x * (np.pi / 180)"),
    ("np.degrees(x)", "x * (180 / np.pi)"),
    ("np.float_power(x, y)", "x**y"),
    ("np.fmax(x, y)", "np.maximum(np.where(np.isnan(x), y, x), np.where(np.isnan(y), x, y))"),
    ("np.fmin(x, y)", "np.minimum(np.where(np.isnan(x), y, x), np.where(np.isnan(y), x, y))"),
    ("np.fmod(x, y)", "x - np.trunc(x / y) * y"),
    ("np.heaviside(x, y)", "np.where(x == 0, y, np.where(x > 0, 1.0, 0.0))"),
    ("np.hypot(x, y)", "np.sqrt(x * x + y * y)"),
    ("np.ldexp(x, n)", "x * 2.0**n"),
    ("np.left_shift(n, 2)", "n * 2**2"),
    ("np.logaddexp(x, y)", "tj.logsumexp(np.stack([x, y]), 0); np.logaddexp(0, x) is tj.softplus(x)"),
    ("np.logaddexp2(x, y)", "np.log2(2.0**x + 2.0**y)"),
    ("np.matvec(A, x)", "A @ x"),
    ("np.modf(x)[0]", "x - np.trunc(x)"),
    ("np.rad2deg(x)", "x * (180 / np.pi)"),
    ("np.radians(x)", "x * (np.pi / 180)"),
    ("np.right_shift(n, 2)", "n // 2**2"),
    ("np.signbit(x)", "x < 0"),
    ("np.add.accumulate(x)", "np.cumsum(x)"),
    ("np.divide.reduce(x)", "x[0] / np.prod(x[1:])"),
    ("np.multiply.accumulate(x)", "np.exp(np.cumsum(np.log(x))); for x > 0"),
    ("np.subtract.accumulate(x)", "2 * x[0] - np.cumsum(x)"),
    ("np.subtract.reduce(x)", "x[0] - np.sum(x[1:])"),
    *((f"np.{ufunc}.outer(x, y)", f"np.{ufunc}(x[:, None], y)") for ufunc in _BINARY),
    ("np.vecdot(x, y)", "np.sum(x * y, axis=-1)"),
    ("np.vecmat(x, A)", "x @ A"),
)  # fmt: skip

_SCIPY = (
    ("scipy.integrate.trapezoid(y, x)", "np.sum((y[1:] + y[:-1]) * (x[1:] - x[:-1])) / 2"),
    ("scipy.linalg.det(A[:2, :2])", "A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]"),
    ("scipy.linalg.norm(x)", "np.linalg.norm(x)"),
    ("scipy.linalg.solve(M, x)", "np.linalg.inv(M) @ x; for a constant ndarray M"),
    ("scipy.spatial.distance.cdist(A, B)", "np.linalg.norm(A[:, None] - B, axis=2)"),
    ("scipy.special.boxcox(x, h)", "(x**h - 1) / h"),
    ("scipy.special.cbrt(x)", "np.cbrt(x)"),
    ("scipy.special.cosdg(x)", "np.cos(x * (np.pi / 180))"),
    ("scipy.special.cosm1(x)", "-2 * np.sin(x / 2) ** 2"),
    ("scipy.special.entr(x)", "-x * np.log(x)"),
    ("scipy.special.erf(x)", "tj.erf(x)"),
    ("scipy.special.erfc(x)", "1 - tj.erf(x)"),
    ("scipy.special.exp10(x)", "10.0**x"),
    ("scipy.special.exp2(x)", "np.exp2(x)"),
    ("scipy.special.expit(x)", "tj.sigmoid(x)"),
    ("scipy.special.expm1(x)", "np.expm1(x)"),
    ("scipy.special.exprel(x)", "np.expm1(x) / x"),
    ("scipy.special.huber(h, x)", "np.where(np.abs(x) <= h, x * x / 2, h * (np.abs(x) - h / 2))"),
    ("scipy.special.inv_boxcox(x, h)", "(x * h + 1) ** (1 / h)"),
    ("scipy.special.kl_div(x, y)", "x * np.log(x / y) - x + y"),
    ("scipy.special.log1p(x)", "np.log1p(x)"),
    ("scipy.special.log_expit(x)", "-tj.softplus(-x)"),
    ("scipy.special.log_ndtr(x)", "np.log((1 + tj.erf(x * 0.5**0.5)) / 2)"),
    ("scipy.special.log_softmax(x)", "tj.logsoftmax(x, axis=0)"),
    ("scipy.special.logit(p)", "np.log(p / (1 - p))"),
    ("scipy.special.logsumexp(x)", "tj.logsumexp(x)"),
    ("scipy.special.ndtr(x)", "(1 + tj.erf(x * 0.5**0.5)) / 2"),
    ("scipy.special.powm1(x, y)", "x**y - 1"),
    ("scipy.special.pseudo_huber(h, x)", "h * h * (np.sqrt(1 + (x / h) ** 2) - 1)"),
    ("scipy.special.rel_entr(x, y)", "x * np.log(x / y)"),
    ("scipy.special.round(x)", "np.round(x)"),
    ("scipy.special.sindg(x)", "np.sin(x * (np.pi / 180))"),
    ("scipy.special.softmax(x)", "tj.softmax(x, axis=0)"),
    ("scipy.special.tandg(x)", "np.tan(x * (np.pi / 180))"),
    ("scipy.special.xlog1py(x, y)", "x * np.log1p(y)"),
    ("scipy.special.xlogy(x, y)", "np.where(x == 0, 0.0, x * np.log(y))"),
)


def _named(call: str) -> str:
    """Return the function that a call is of: ``np.diff`` of ``np.diff(x)``."""
    return call.partition("(")[0]


COMPOSITIONS: dict[str, Row] = {_named(call): (call, expression) for call, expression in (*_NUMPY, *_SCIPY)}
"""A call and an expression in its place, by the name of the function."""

ATTRIBUTES: dict[str, Row] = {
    "argpartition": ("x.argpartition(2)[2]", "np.argsort(tj.extractdata(x))[2]"),
    "argsort": ("x.argsort()", "np.argsort(tj.extractdata(x))"),
    "byteswap": ("x.byteswap()", "tj.extractdata(x).byteswap()"),
    "choose": ("(n % 2).choose([x, y])", "np.where(n % 2 == 0, x, y)"),
    "compress": ("x.compress(b)", "x[b]"),
    "conj": ("x.conj()", "x"),
    "conjugate": ("x.conjugate()", "x"),
    "cumprod": ("x.cumprod()", "np.exp(np.cumsum(np.log(x))); for x > 0"),
    "diagonal": ("A.diagonal()", "np.diag(A)"),
    "dumps": ("len(x.dumps())", "len(tj.extractdata(x).dumps())"),
    "flat": ("np.array(A.flat)", "A.ravel()"),
    "getfield": ("x.getfield(float)", "tj.extractdata(x).getfield(float)"),
    "imag": ("x.imag", "np.zeros_like(x)"),
    "mT": ("A.mT", "np.swapaxes(A, -1, -2)"),
    "real": ("x.real", "x"),
    "searchsorted": ("np.sort(x).searchsorted(y)", f"np.sum(s < y[:, None], axis=1), where s = {_SORTED}"),
    "strides": ("x.strides", "tj.extractdata(x).strides"),
    "tobytes": ("x.tobytes()", "tj.extractdata(x).tobytes()"),
    "view": ("x.view()", "x[...]"),
}
"""The same for the attributes of an ndarray that a dlarray does not have."""

ADVICE: dict[str, str] = {
    "base": "np.shares_memory(tj.extractdata(x), other) asks about memory; a slice writes into what it was taken from",
    "ctypes": "np.asarray(x).ctypes is that of an untraced array",
    "data": "np.asarray(x).data is that of an untraced array",
    "device": "it is always the CPU",
    "dump": "np.save(file, x) writes an untraced array",
    "flags": "np.asarray(x).flags are those of an untraced array",
    "itemset": "x[i] = value writes one element",
    "newbyteorder": "the bytes are always in the order of the processor",
    "partition": f"x[...] = {_SORTED} sorts x",
    "ptp": "np.ptp(x) is the function",
    "put": "x.ravel()[places] = values writes at places in C order",
    "resize": "np.concatenate adds elements, x[:n] takes some away",
    "setfield": "x[...] = values writes into x",
    "setflags": "set them on an ndarray and make a dlarray of it, tj.dlarray(data)",
    "sort": f"x[...] = {_SORTED} sorts x",
    "to_device": "it is always on the CPU",
    "tostring": "tj.extractdata(x).tobytes() are its bytes",
    "tofile": "np.save(file, x) writes an untraced array",
}
"""Remedies for attributes in whose place no expression stands."""

_MEMORY = "np.shares_memory(tj.extractdata(x), other) asks about untraced arrays"
INSTEAD: dict[str, str] = {
    "np.may_share_memory": f"{_MEMORY}; x[tj.randperm(len(x))] permutes at random",
    "np.shares_memory": _MEMORY,
}
"""Remedies for functions in whose place no expression stands."""

ANY = (
    "compose it of functions that tracejit has (dir(tracejit) lists them). If no gradient is needed, take the value "
    "with extractdata(x) first"
)
"""The remedy for any other function."""


OF_SOLVERS = (
    "SciPy computes with ndarrays there. Where nothing is recorded, pass it tj.numpy_function(f) in place of a "
    "function f"
)
"""The remedy for a function of SciPy that calls functions of the user."""


def advice(name: str) -> str:
    """Return what works in place of a function, as a clause.

    >>> advice("np.diff")
    'np.diff(x) is x[1:] - x[:-1]'
    """
    row = COMPOSITIONS.get(name)
    other = OF_SOLVERS if name.startswith(("scipy.optimize.", "scipy.integrate.")) else ANY
    return f"{row[0]} is {row[1]}" if row else INSTEAD.get(name, other)


def advice_about_attribute(name: str) -> str:
    """Return what works in place of an attribute of an ndarray, as a clause."""
    row = ATTRIBUTES.get(name)
    return f"{row[0]} is {row[1]}" if row else ADVICE[name]
