# SPDX-License-Identifier: BSD-3-Clause
"""Remedies for functions and attributes that dlarrays do not have: a call of each, and an expression in its place.

The names in them: x, y vectors, A, B matrices, n integers, b a condition, a and h numbers.
A test computes both sides of each row.
"""

from tracejit.util.other_names import TENSORS

Row = tuple[str, str]

_NUMPY = (
    # np.linalg
    ("np.linalg.cross(x, y)", "np.cross(x, y)"),
    ("np.linalg.matrix_norm(A)", "np.linalg.norm(A, axis=(-2, -1))"),
    ("np.linalg.vecdot(x, y)", "np.sum(x * y, axis=-1)"),
    ("np.linalg.vector_norm(x)", "np.linalg.norm(x)"),
)  # fmt: skip

_SCIPY = (("scipy.spatial.distance.cdist(A, B)", "np.linalg.norm(A[:, None] - B, axis=2)"),)


def _named(call: str) -> str:
    """Return the function that a call is of: ``np.diff`` of ``np.diff(x)``."""
    return call.partition("(")[0]


COMPOSITIONS: dict[str, Row] = {_named(call): (call, expression) for call, expression in (*_NUMPY, *_SCIPY)}
"""A call and an expression in its place, by the name of the function."""

ATTRIBUTES: dict[str, Row] = {
    "byteswap": ("x.byteswap()", "tj.extractdata(x).byteswap()"),
    "dumps": ("len(x.dumps())", "len(tj.extractdata(x).dumps())"),
    "getfield": ("x.getfield(float)", "tj.extractdata(x).getfield(float)"),
}
"""The same for the attributes of an ndarray that a dlarray does not have."""

ADVICE: dict[str, str] = {
    "base": "np.shares_memory(tj.extractdata(x), other) asks about memory; a slice writes into what it was taken from",
    "ctypes": "np.asarray(x).ctypes is that of an untraced array",
    "data": "np.asarray(x).data is that of an untraced array",
    "dump": "np.save(file, x) writes an untraced array",
    "itemset": "x[i] = value writes one element",
    "newbyteorder": "the bytes are always in the order of the processor",
    "ptp": "np.ptp(x) is the function",
    "resize": "np.concatenate adds elements, x[:n] takes some away",
    "setfield": "x[...] = values writes into x",
    "setflags": "set them on an ndarray and make a dlarray of it, tj.dlarray(data)",
    "tostring": "tj.extractdata(x).tobytes() are its bytes",
    "tofile": "np.save(file, x) writes an untraced array",
}
"""Remedies for attributes in whose place no expression stands."""

INSTEAD: dict[str, str] = {
    "scipy.linalg.funm": "tj.linalg.funmh(A, func) is that of symmetric and Hermitian matrices, with derivatives",
}
"""Remedies for functions in whose place no expression stands."""

ANY = (
    "compose it of functions that tracejit has (dir(tracejit) lists them). If no gradient is needed, take the value "
    "with extractdata(x) first"
)
"""The remedy for any other function."""


OF_OBJECTS = (
    "what np.frompyfunc made gives arrays of Python's objects; np.vectorize(f) in its place is recorded, and gives "
    "numbers"
)
"""The remedy for a ufunc that a function of the user was made into."""

OF_SOLVERS = (
    "SciPy computes with ndarrays there. Where nothing is recorded, pass it tj.numpy_function(f) in place of a "
    "function f"
)
"""The remedy for a function of SciPy that calls functions of the user."""

WITH_DERIVATIVES = {
    "scipy.optimize.": "tj.stop_gradient(x) in the solver, and one step from its result: r - f(r) / s has the "
    "derivative of a root r, with the slope s of f",
    "scipy.integrate.": "scipy.integrate.fixed_quad",
    "statistics.": "functions of NumPy, or of tracejit.stats",
    "random.": "operations on a number that random.random() draws, or tracejit.rand",
    "complex": "x + 1j * y, or x + 0j",
    "float": "[float(v) for v in x]",
    "ndarray.__setitem__": "an array that the function makes",
    "tolist": "the array, or lists of up to 100 elements",
    "math.dist": "np.linalg.norm of the difference",
    "math.erf": "scipy.special.erf",
    "math.erfc": "scipy.special.erfc",
    "math.fsum": "sum",
    "math.gamma": "scipy.special.gamma",
    "math.lgamma": "scipy.special.gammaln",
}
"""The remedy for a function that makes plain numbers of traced values, by its name or that of its module."""

_BY_PROBABILITIES = "np.searchsorted(np.cumsum(p), tj.rand(n, like=p)) for n numbers with the probabilities p"
DRAWS = {
    "choice": _BY_PROBABILITIES,
    "multinomial": _BY_PROBABILITIES,
    "binomial": "tj.rand(n, like=p) < p for n single trials",
    "normal": "m + s * tj.randn(n, like=m)",
    "multivariate_normal": "m + tj.randn(n, like=m) @ np.linalg.cholesky(c).T",
    "uniform": "a + (b - a) * tj.rand(n, like=a)",
    "exponential": "-s * np.log1p(-tj.rand(n, like=s))",
    "permutation": "tj.take(x, tj.randperm(n), axis=0)",
}
"""The remedy for a method of NumPy's generators, or a function of np.random: numbers that a trace draws."""

OF_SPARSE = (
    "products (S @ x, x @ S) have derivatives; for anything else a small matrix may be dense, S.toarray()"
)
"""The remedy for a sparse matrix of SciPy."""


_SAME: dict[str, str] = {
    "scipy.fft": """
        dct dctn dst dstn fft fft2 fftfreq fftn fftshift hfft idct idctn idst idstn ifft ifft2 ifftn ifftshift
        ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn""",
    "scipy.integrate": """
        cumulative_trapezoid romb simpson trapezoid""",
    "scipy.interpolate": """
        Akima1DInterpolator BSpline CubicHermiteSpline CubicSpline PPoly PchipInterpolator
        RegularGridInterpolator interp1d interpn make_interp_spline""",
    "scipy.linalg": """
        block_diag cho_factor cho_solve cho_solve_banded cholesky cholesky_banded circulant companion coshm
        cosm det eig eigh eigvals eigvalsh expm expm_frechet fractional_matrix_power hankel inv khatri_rao
        logm lstsq lu lu_factor lu_solve matmul_toeplitz norm null_space orth pinv pinvh polar qr schur
        signm sinhm sinm solve solve_banded solve_circulant solve_continuous_are solve_continuous_lyapunov
        solve_discrete_are solve_discrete_lyapunov solve_sylvester solve_toeplitz solve_triangular
        solveh_banded sqrtm svd svdvals tanhm tanm toeplitz""",
    "scipy.signal": """
        convolve convolve2d correlate correlate2d detrend fftconvolve hilbert lfilter oaconvolve resample
        sosfilt""",
    "scipy.spatial.transform": """
        Rotation Slerp""",
    "scipy.special": """
        comb factorial ivp jvp kvp lambertw log_softmax logsumexp multigammaln perm polygamma sinc softmax
        softplus sph_harm_y spherical_in spherical_jn spherical_kn spherical_yn yvp zeta""",
    "scipy.stats": """
        entropy gmean gstd hmean iqr kurtosis linregress median_abs_deviation moment pearsonr pmean sem skew
        ttest_1samp ttest_ind ttest_rel variation zmap zscore""",
}
"""Functions and classes that tracejit has under the same name, by the package of SciPy."""


def has_counterpart(name: str) -> bool:
    """Return whether tracejit has a function of SciPy under the same name.

    >>> has_counterpart("scipy.linalg.solve")
    True
    """
    package, _, last = name.rpartition(".")
    return last in _SAME.get(package, "").split()


def _elsewhere(name: str) -> str | None:
    """Return what stands in place of a function of SciPy, if it has the same name elsewhere."""
    if has_counterpart(name):
        return f"tj{name.removeprefix('scipy')} does the same on dlarrays, with derivatives"
    if name.startswith("scipy.stats.rv_") or name == "a function of scipy.stats":
        return "tj.stats has distributions under SciPy's names, such as tj.stats.norm, with derivatives"
    if name == "a function of scipy.sparse" or name.startswith("scipy.sparse."):
        return OF_SPARSE
    return None


def advice(name: str) -> str:
    """Return what works in place of a function, as a clause.

    >>> advice("np.linalg.vecdot")
    'np.linalg.vecdot(x, y) is np.sum(x * y, axis=-1)'
    """
    row = COMPOSITIONS.get(name)
    if name.endswith(" (vectorized)"):
        return OF_OBJECTS
    elsewhere = _elsewhere(name)
    if row is None and elsewhere is not None:
        return elsewhere
    other = OF_SOLVERS if name.startswith(("scipy.optimize.", "scipy.integrate.")) else ANY
    return f"{row[0]} is {row[1]}" if row else INSTEAD.get(name, other)


def to_compose(name: str) -> str:
    """Return what works in place of a function where a derivative is needed, as a clause.

    >>> to_compose("scipy.ndimage.label")
    'compose it of functions that tracejit has (dir(tracejit) lists them)'
    """
    return advice(name).partition(". If no gradient")[0]


def with_derivative(name: str) -> str:
    """Return what to call in place of a function that makes plain numbers of traced values.

    >>> with_derivative("math.exp")
    'np.exp'
    """
    module, _, function = name.rpartition(".")
    if module in ("math", "cmath"):
        return WITH_DERIVATIVES.get(name, f"np.{function}")
    return WITH_DERIVATIVES.get(f"{module}.") or WITH_DERIVATIVES.get(
        name, "a function that has a derivative"
    )


def advice_about_attribute(name: str) -> str:
    """Return what works in place of an attribute of an ndarray or a tensor, as a clause."""
    row = ATTRIBUTES.get(name)
    return f"{row[0]} is {row[1]}" if row else ADVICE.get(name) or TENSORS[name]
