# SPDX-License-Identifier: BSD-3-Clause
"""Functions, objects and matrices of SciPy with traced arrays: SciPy's numbers, and derivatives where there are any."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.cluster.vq
import scipy.fft
import scipy.fftpack
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.distance
import scipy.special
import scipy.stats
import scipy.stats.contingency
from scipy.linalg import solve as imported_solve

import tracejit as tj

SIZES = {
    "A": (4, 4), "B": (4, 4), "v": (4,), "w": (6,), "T": (6, 3), "image": (9, 7), "kernel": (3, 3), "signal": (40,),
    "other": (40,), "points": (5, 2), "rows": (3, 5),
}  # fmt: skip
KNOTS = np.arange(8.0)
OBJECTS = {
    "cubic": scipy.interpolate.CubicSpline(KNOTS, KNOTS**2),
    "akima": scipy.interpolate.Akima1DInterpolator(KNOTS, np.sin(KNOTS)),
    "bspline": scipy.interpolate.BSpline(np.arange(-4.0, 12.0), np.arange(13.0), 2),
    "line": scipy.interpolate.interp1d(KNOTS, KNOTS**2, fill_value="extrapolate"),
    "grid": scipy.interpolate.RegularGridInterpolator((KNOTS, KNOTS), np.outer(KNOTS, KNOTS), bounds_error=False),
    "nearest": scipy.interpolate.NearestNDInterpolator(np.random.default_rng(0).normal(size=(9, 2)), KNOTS[[0] * 9]),
    "smooth": scipy.interpolate.UnivariateSpline(KNOTS, np.cos(KNOTS)),
    "kde": scipy.stats.gaussian_kde([1.0, 2.0, 4.0]),
    "tree": scipy.spatial.KDTree(np.random.default_rng(1).normal(size=(20, 2))),
    "frozen": scipy.stats.gamma(2.0, scale=2.0),
    "gauss": scipy.stats.multivariate_normal(np.zeros(2), np.eye(2)),
}  # fmt: skip
WITHOUT_DERIVATIVES = [
    "ndimage.gaussian_filter(image, 1.0)", "ndimage.sobel(image, axis=0) ** 2", "ndimage.median_filter(image, 3)",
    "ndimage.convolve(image, kernel)", "ndimage.label(image > 0)", "ndimage.label(image > 0)[1] * image",
    "ndimage.zoom(image, 2, order=1)", "ndimage.map_coordinates(image, np.abs(points.T) + 1, order=1)",
    "ndimage.distance_transform_edt(image > 0)", "ndimage.center_of_mass(image)", "ndimage.shift(image, v[:2])",
    "ndimage.binary_erosion(image > -1)", "signal.filtfilt([0.2, 0.2], [1.0, -0.6], signal)",
    "signal.sosfiltfilt(signal_package.butter(2, 0.2, output='sos'), signal)", "signal.savgol_filter(signal, 5, 2)",
    "signal.welch(signal, nperseg=16)", "signal.medfilt(signal, 3)", "signal.decimate(signal, 2)",
    "linalg.hessenberg(A)", "linalg.qr(A, pivoting=True)", "linalg.null_space(T.T)", "linalg.orth(A)",
    "spatial.distance.cdist(A, B)", "spatial.distance.pdist(A, 'cosine')",
    "spatial.distance.squareform(spatial.distance.pdist(A))", "optimize.linear_sum_assignment(A)",
    "optimize.nnls(T, w)", "stats.rankdata(signal)", "stats.linregress(signal, other)",
    "stats.linregress(signal, other).intercept_stderr", "stats.spearmanr(signal, other)",
    "stats.spearmanr(signal, other).correlation", "stats.kstest(signal, 'norm').statistic_sign",
    "stats.wasserstein_distance(signal, other)", "interpolate.griddata(points, points[:, 0], [[0.1, 0.1]], 'nearest')",
    "interpolate.splev(KNOTS, interpolate.splrep(np.arange(40.0), signal))", "nearest(points)", "smooth(v)",
    "kde(v)", "kde.logpdf(v)", "tree.query(points)", "tree.query(points, k=3)[0].mean()",
    "stats.kappa3.pdf(np.abs(v), 1.5)", "gauss.logpdf(points)", "spatial.procrustes(A, B)[2]",
    "cluster.hierarchy.linkage(points)", "cluster.hierarchy.fcluster(cluster.hierarchy.ward(points), 2, 'maxclust')",
    "cluster.hierarchy.leaves_list(cluster.hierarchy.linkage(spatial.distance.pdist(A), 'average'))",
    "cluster.vq.vq(points, points[:2])", "sparse.csgraph.shortest_path(np.abs(A))",
    "sparse.csgraph.dijkstra(np.abs(A), indices=0)", "sparse.csgraph.connected_components(A > 0)[0] * v",
    "stats.qmc.discrepancy(1 / (1 + points**2))", "stats.contingency.expected_freq(np.abs(A))", "fftpack.dct(signal)",
]  # fmt: skip
WITH_DERIVATIVES = [
    "linalg.solve(A, v)", "linalg.solve(A @ A.T + np.eye(4), v, assume_a='pos')",
    "linalg.solve(A, v, check_finite=False, overwrite_a=False)", "linalg.inv(A)", "linalg.expm(A)", "linalg.det(A)",
    "linalg.cholesky(A @ A.T + np.eye(4), lower=True)", "linalg.cholesky(A @ A.T + np.eye(4))", "linalg.svd(A)[1]",
    "linalg.cho_solve(linalg.cho_factor(A @ A.T + np.eye(4)), v)", "linalg.lu_solve(linalg.lu_factor(A), v)",
    "linalg.eigh(A + A.T)[0]", "linalg.norm(A)", "linalg.lstsq(T, w)[0]", "linalg.pinv(T)", "linalg.toeplitz(v)",
    "linalg.solve_sylvester(A, B, A)", "linalg.block_diag(A, T)", "np.abs(fft.fft(signal)) ** 2", "fft.dct(signal)",
    "np.abs(fft.rfft(signal)) ** 2", "fft.dctn(image, norm='ortho')", "signal.lfilter([1.0, 0.5], [1.0, -0.2], signal)",
    "signal.convolve(signal, v)", "signal.fftconvolve(image, kernel, mode='same')", "signal.correlate(signal, v)",
    "signal.convolve2d(image, kernel, 'same')", "signal.detrend(signal)", "integrate.simpson(signal, dx=0.1)",
    "integrate.trapezoid(signal, dx=0.1)", "integrate.cumulative_trapezoid(signal, dx=0.1, initial=0)",
    "special.logsumexp(A, axis=1, keepdims=True)", "special.softmax(A, axis=1)", "stats.zscore(signal)",
    "stats.skew(signal)", "stats.linregress(signal, other)[1]", "stats.pearsonr(signal, other)[0]",
    "interpolate.CubicSpline(np.arange(6.0), w)(v)", "interpolate.PchipInterpolator(np.arange(6.0), w)(np.abs(v))",
    "line(v)", "interpolate.interp1d(KNOTS, KNOTS**2, fill_value='extrapolate')(v) * v",
    "interpolate.interp1d([-9.0, 1.0, 9.0], [2.0, 1.0, 5.0], 'quadratic')(np.clip(v, -8.0, 8.0))",
    "interpolate.CubicSpline(np.arange(6.0), w).derivative()(v)", "cubic(v)", "cubic(v, 1)", "cubic(v[0]) * v",
    "akima(np.abs(v))", "bspline(v)", "grid(np.abs(points))", "stats.norm.logpdf(v, 1.0, np.abs(w[0]))",
    "stats.norm.cdf(v[0]) * v", "frozen.logpdf(np.abs(v))", "stats.chi2.sf(np.abs(v), 3)",
    "stats.multivariate_normal.logpdf(points, np.zeros(2), np.eye(2))",
]  # fmt: skip
PACKAGES = {
    name: getattr(scipy, name)
    for name in (
        "cluster",
        "fft",
        "fftpack",
        "integrate",
        "interpolate",
        "linalg",
        "ndimage",
        "optimize",
        "sparse",
        "spatial",
        "special",
        "stats",
    )
}


def function_of(text):
    """Return a function of a dict of arrays, in which `signal.` is the package and `signal` the array."""
    body = text.replace("signal.", "signal_package.").replace("signal_package_package", "signal_package")
    names = ", ".join(SIZES)
    scope = {
        **PACKAGES, **OBJECTS, "signal_package": scipy.signal, "imported_solve": imported_solve, "np": np,
        "KNOTS": KNOTS,
    }  # fmt: skip
    return eval(f"lambda {names}: {body}", scope)


def arrays_of(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=size) for size in SIZES.values()]


def parts(result):
    found = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(part) for part in found]


def compare(plain, seeds=5):
    accelerated = tj.dlaccelerate(plain)
    for seed in range(seeds):
        expected, found = parts(plain(*arrays_of(seed))), parts(accelerated(*arrays_of(seed)))
        assert [part.dtype for part in found] == [part.dtype for part in expected]
        for part, wanted in zip(found, expected, strict=True):
            assert part.shape == wanted.shape
            np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=1e-12)
    assert accelerated.stats.hits >= 2 and accelerated.stats.uncompiled == 0


@pytest.mark.sampled
@pytest.mark.parametrize("text", [*WITHOUT_DERIVATIVES, *WITH_DERIVATIVES])
def test_numbers_are_those_of_scipy(text):
    compare(function_of(text))


@pytest.mark.sampled
@pytest.mark.parametrize("text", WITH_DERIVATIVES)
def test_derivatives_are_those_of_differences(text):
    plain, arrays, rng = function_of(text), arrays_of(0), np.random.default_rng(7)
    directions = [rng.normal(size=x.shape) for x in arrays]

    def total(*arrays):
        return sum(
            (part * np.cos(np.arange(part.size).reshape(part.shape))).sum() for part in [plain(*arrays)]
        )

    slopes = tj.dlfeval(lambda *arrays: tj.dlgradient(total(*arrays), list(arrays)), *arrays)
    along = sum((np.asarray(slope) * d).sum() for slope, d in zip(slopes, directions, strict=True))
    sides = [total(*[x + h * d for x, d in zip(arrays, directions, strict=True)]) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(along, (sides[0] - sides[1]) / 2e-6, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "text", ["ndimage.gaussian_filter(image, 1.0)", "kde(v)", "spatial.distance.cdist(A, B)"]
)
def test_a_derivative_that_there_is_not_is_an_error(text):
    with pytest.raises(
        tj.GradientError, match=r"^scipy\.\S+: SciPy's own function runs here, which has no derivative"
    ):
        tj.dlfeval(
            lambda *arrays: tj.dlgradient(function_of(text)(*arrays).sum(), list(arrays)), *arrays_of(0)
        )


class OwnNormal(scipy.stats.rv_continuous):
    """A distribution of the user's with the name of another one."""

    def _pdf(self, x):
        return 2 * x


class OwnGrid(scipy.interpolate.RegularGridInterpolator):
    """An interpolator of the user's."""

    def __call__(self, points):
        return super().__call__(points) + 1


def repeated(plain, *calls):
    """Compare results where the first calls have equal arguments, so that two recordings agree."""
    accelerated = tj.dlaccelerate(plain)
    for given in (calls[0], calls[0], *calls):
        for found, expected in zip(parts(accelerated(*given)), parts(plain(*given)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    return accelerated


class TestEqualRecordings:
    @pytest.mark.slow
    def test_values_that_decide_after_another_way_failed(self):
        areas = lambda x: scipy.integrate.quad(lambda t: 2 * t, 0.0, x[1])[0] * x
        repeated(areas, *[(np.arange(3.0) * n,) for n in (1, 2, 3)])
        texts = ["stats.iqr(x, keepdims=True)", "ndimage.generic_filter(x, np.max, 3)"]
        for text in (*texts, "stats.ks_1samp(x, stats.norm.cdf)[0]"):
            plain = eval(f"lambda x: {text}", {"np": np, "stats": scipy.stats, "ndimage": scipy.ndimage})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tj.TraceJitWarning)
                repeated(plain, *[(np.arange(8) * n % 5,) for n in (1, 2, 3, 4)])

    @pytest.mark.parametrize("name", ["ks_2samp", "ttest_ind", "spearmanr", "linregress", "mannwhitneyu"])
    def test_results_as_a_whole(self, name):
        plain = eval(f"lambda x, y: stats.{name}(x, y)", {"stats": scipy.stats})
        rng = np.random.default_rng(0)
        accelerated = repeated(plain, *[(rng.normal(size=9), rng.normal(size=9)) for _ in range(4)])
        assert accelerated.stats.uncompiled == 0

    @pytest.mark.skipif(
        "random_state" in inspect.signature(scipy.stats.ttest_ind).parameters, reason="it may draw"
    )
    def test_tuples_unpack_alike(self):
        def run(x, y):
            t, p = scipy.stats.ttest_ind(x, y, nan_policy="omit", keepdims=True)
            return t, p

        repeated(run, *[(np.arange(4.0) * n, np.arange(4.0) + n) for n in (1, 2, 3)])


class TestObjects:
    def test_other_polynomials_are_no_powers(self):
        bernstein = scipy.interpolate.BPoly([[1.0, 4.0], [2.0, 1.0], [3.0, 2.0]], [0.0, 1.0, 2.0])
        repeated(lambda x: bernstein(x), *[(np.array([0.3, 0.7]) * n,) for n in (1.0, 1.5, 2.0)])

    def test_classes_of_the_user_are_theirs(self):
        own, grid = OwnNormal(a=0, b=1, name="norm"), OwnGrid((KNOTS,), KNOTS**2)
        other = type(scipy.stats.gamma)(a=0.5, b=2, name="gamma")
        points = [(np.array([[0.3], [0.6]]) * n,) for n in (1.0, 1.2, 1.4)]
        repeated(lambda x: own.pdf(x) + other.pdf(x, 2.0) + grid(x)[:, None], *points)

    def test_keywords_have_the_names_that_scipy_gives_them(self):
        line = lambda x: scipy.interpolate.interp1d(KNOTS[:4], x, kind="cubic")(1.5)
        repeated(line, *[(np.arange(4.0) ** n,) for n in (1, 2, 3)])
        nearest = lambda x: OBJECTS["grid"](x, method="nearest")
        repeated(nearest, *[(np.array([[1.2, 2.2]]) * n,) for n in (1, 2, 3)])
        filtered = lambda x: x * scipy.ndimage.generic_filter(np.eye(3), function=np.max, size=2)
        repeated(filtered, *[(np.eye(3) * n,) for n in (1, 2, 3)])

    def test_methods_of_classes(self):
        def run(x):
            element = scipy.interpolate.BSpline.basis_element([0.0, 1.0, 2.0, 3.0])
            assert callable(scipy.interpolate.PPoly.from_spline)
            return x * float(element(0.5))

        repeated(run, *[(np.arange(3.0) + n,) for n in (1, 2, 3)])


class TestWays:
    def test_a_size_that_values_decide(self):
        accelerated = tj.dlaccelerate(lambda x: scipy.signal.find_peaks(x)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
            for seed in range(6):
                x = np.random.default_rng(seed).normal(size=40)
                assert np.asarray(accelerated(x)).tolist() == scipy.signal.find_peaks(x)[0].tolist()

    def test_errors_are_those_of_scipy(self):
        accelerated = tj.dlaccelerate(lambda a, b: scipy.linalg.solve(a, b))
        for a, b in ((np.eye(3), np.ones(2)), (np.ones((2, 3)), np.ones(2))):
            with pytest.raises(ValueError) as expected:
                scipy.linalg.solve(a, b)
            with pytest.raises(ValueError) as caught:
                accelerated(a, b)
            assert str(caught.value) == str(expected.value)

    def test_what_the_function_has_decided_in_vain_is_forgotten(self):
        accelerated = tj.dlaccelerate(lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0))
        for n in range(4):
            accelerated(np.arange(5.0) - n)
        assert accelerated.stats.hits == 2 and "bool" not in accelerated.explain()

    def test_a_function_that_draws_is_refused(self):
        with pytest.raises(tj.TraceError, match="permutation_test"):
            tj.dlfeval(lambda x: scipy.stats.permutation_test((x, x), np.mean, n_resamples=9), np.ones(3))

    @pytest.mark.parametrize(
        ("name", "option", "call"),
        [
            ("gaussian_filter", "output", lambda x, out: scipy.ndimage.gaussian_filter(x, 1.0, output=out)),
            ("gaussian_filter", "output", lambda x, out: scipy.ndimage.gaussian_filter(x, 1.0, 0, out)),
            *[
                (
                    name,
                    "distances",
                    lambda x, out, name=name: getattr(scipy.ndimage, name)(x, distances=out),
                )
                for name in ("distance_transform_edt", "distance_transform_bf", "distance_transform_cdt")
            ],
            (
                "distance_transform_edt",
                "indices",
                lambda x, out: scipy.ndimage.distance_transform_edt(
                    x, return_indices=True, indices=np.zeros((2, 3, 3), np.int32)
                ),
            ),
        ],
    )
    def test_an_array_that_a_function_writes(self, name, option, call):
        for run in (tj.dlaccelerate(call), lambda x, out: tj.dlfeval(call, x, out)):
            with pytest.raises(tj.ArgumentError) as caught:
                run(np.eye(3), np.zeros((3, 3)))
            assert str(caught.value).partition("\n")[0] == (
                f"scipy.ndimage.{name}: {option}= is no array that a function with traced arrays writes; leave it out, "
                "and assign the result (y[...] = result)."
            )

    def test_numbers_among_results_vary(self):
        accelerated = tj.dlaccelerate(lambda x: scipy.ndimage.label(x > 0)[1])
        found = [accelerated(np.sign(np.sin(np.arange(12.0) * n))) for n in (0.5, 1.0, 1.5, 2.0, 2.5)]
        expected = [
            scipy.ndimage.label(np.sin(np.arange(12.0) * n) > 0)[1] for n in (0.5, 1.0, 1.5, 2.0, 2.5)
        ]
        assert found == expected and accelerated.stats.hits == 3

    def test_numbers_among_arguments_vary(self):
        accelerated = tj.dlaccelerate(lambda x, width: scipy.ndimage.gaussian_filter(x, width))
        for n in range(1, 7):
            found = accelerated(np.arange(9.0) ** 2, 0.5 * n)
            np.testing.assert_allclose(found, scipy.ndimage.gaussian_filter(np.arange(9.0) ** 2, 0.5 * n))
        assert accelerated.stats.hits == 2

    def test_a_function_that_was_imported_by_name(self):
        compare(lambda first, second, v, *others: imported_solve(first, v))

    def test_a_function_handed_over(self):
        x = np.array([0.5, 1.0])
        np.testing.assert_allclose(tj.dlfeval(scipy.special.softmax, x), scipy.special.softmax(x))
        np.testing.assert_allclose(tj.dlaccelerate(scipy.linalg.norm)(x), scipy.linalg.norm(x))

    def test_classes_are_what_they_are(self):
        def run(x):
            assert isinstance(OBJECTS["cubic"], scipy.interpolate.CubicSpline)
            assert issubclass(scipy.interpolate.CubicSpline, scipy.interpolate.PPoly)
            made = scipy.interpolate.CubicSpline([0.0, 1.0], [0.0, 1.0])  # of no traced arrays
            return x * float(made(0.5))

        compare(lambda first, *others: run(first))
        assert type(scipy.interpolate.CubicSpline) is type and type(scipy.linalg.solve) is type(compare)

    def test_an_object_that_changes(self):
        spline = scipy.interpolate.UnivariateSpline(KNOTS, np.cos(KNOTS))
        accelerated = tj.dlaccelerate(lambda x: spline(x))
        for factor in (None, 1.0, 0.1, 0.5):
            if factor is not None:
                spline.set_smoothing_factor(factor)
            for n in range(3):
                np.testing.assert_allclose(accelerated(KNOTS + n), spline(KNOTS + n))


FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
DENSE = np.random.default_rng(0).normal(size=(6, 5)) * (np.random.default_rng(1).uniform(size=(6, 5)) < 0.4)
PRODUCTS = [
    ("S @ x", (5,)), ("S @ x", (5, 3)), ("S @ x[:, None]", (5,)), ("S.dot(x)", (5,)), ("x @ S", (6,)),
    ("x @ S", (2, 6)),
    ("S.T @ x", (6,)), ("S @ (2 * x) + 1", (5,)), ("S @ [x[0], x[1], x[2], x[3], x[4]]", (5,)),
]  # fmt: skip


class TestSparse:
    @pytest.mark.sampled
    @pytest.mark.parametrize("format", FORMATS)
    @pytest.mark.parametrize(("text", "size"), PRODUCTS)
    def test_products(self, format, text, size):
        turn = FORMATS.index(format) % 2
        for number, make in enumerate((scipy.sparse.csr_array, scipy.sparse.csr_matrix)):
            matrix = make(DENSE).asformat(format)
            plain = eval(f"lambda x: {text}", {"S": matrix})
            accelerated = tj.dlaccelerate(plain)
            for dtype in (np.float64, np.float32, np.complex128, np.int64)[(turn + number) % 2 :: 2]:
                for n in range(3):
                    x = (np.random.default_rng(n).normal(size=size) * 4).astype(dtype)
                    found, expected = accelerated(x), plain(x)
                    assert found.shape == expected.shape and found.dtype == expected.dtype
                    np.testing.assert_allclose(
                        np.asarray(found), expected, rtol=1e-6 if dtype is np.float32 else 1e-13
                    )
            assert accelerated.stats.uncompiled == 0

    def test_stars_of_matrices(self):
        matrix = scipy.sparse.csr_matrix(DENSE)
        left, right = tj.dlaccelerate(lambda x: x * matrix), tj.dlaccelerate(lambda x: matrix * x)
        for n in range(4):
            np.testing.assert_allclose(left(np.arange(6.0) + n), (np.arange(6.0) + n) @ DENSE)
            np.testing.assert_allclose(right(np.arange(5.0) + n), DENSE @ (np.arange(5.0) + n))

    def test_derivatives(self):
        matrix = scipy.sparse.csr_array(DENSE)

        @tj.dlaccelerate
        def slope(x):
            return tj.dlgradient(((matrix @ x) ** 2).sum(), x)

        for n in range(5):
            x = np.arange(5.0) - n
            np.testing.assert_allclose(slope(x), 2 * matrix.toarray().T @ (matrix.toarray() @ x))
            if n == 3:
                matrix.data *= 2.0
        assert slope.stats.uncompiled == 0

    @pytest.mark.parametrize(
        "text",
        [
            "solvers.spsolve(S, x)", "solvers.spsolve(S, X)", "solvers.cg(S, x)[0]", "solvers.gmres(S, x)",
            "solvers.expm_multiply(S, x)", "operator @ x", "operator.matvec(x)", "operator.matmat(X)",
            "operator.dot(x)", "solvers.norm(S) * x",
        ],
    )  # fmt: skip
    def test_solvers(self, text):
        matrix = scipy.sparse.csc_array(np.eye(5) * 4 + np.diag(np.ones(4), 1))
        names = {
            "solvers": scipy.sparse.linalg,
            "S": matrix,
            "operator": scipy.sparse.linalg.aslinearoperator(matrix),
        }
        plain = eval(f"lambda x, X: {text}", names)
        accelerated = tj.dlaccelerate(plain)
        for n in range(7):
            if n == 4:
                matrix.data *= 1.5
            x, columns = np.arange(5.0) + n, np.arange(10.0).reshape(5, 2) * (n + 1)
            for found, expected in zip(parts(accelerated(x, columns)), parts(plain(x, columns)), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert accelerated.stats.uncompiled == 0 and accelerated.stats.hits >= 3

    def test_the_derivative_of_a_solution(self):
        matrix = scipy.sparse.csr_array(np.eye(4) * 3 + np.diag(np.ones(3), 1))

        @tj.dlaccelerate
        def slope(b):
            return tj.dlgradient((scipy.sparse.linalg.spsolve(matrix, b) ** 2).sum(), b)

        for n in range(4):
            dense, b = matrix.toarray(), np.arange(4.0) + n
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SciPy solves with rows less well
                np.testing.assert_allclose(slope(b), 2 * np.linalg.solve(dense.T, np.linalg.solve(dense, b)))
        assert slope.stats.hits == 2

    @pytest.mark.parametrize("size", [(3, 0), (0, 3), (0, 0)])
    def test_matrices_without_elements(self, size):
        for format in FORMATS[:3]:
            matrix = scipy.sparse.csr_array(np.zeros(size)).asformat(format)
            for columns in ((), (4,), (0,)):
                given = np.ones((size[1], *columns))
                found = tj.dlaccelerate(lambda x, matrix=matrix: matrix @ x)(given)
                assert found.shape == (matrix @ given).shape

    def test_sizes_that_do_not_fit(self):
        matrix = scipy.sparse.csr_array(DENSE)
        with pytest.raises(ValueError, match="dimension mismatch"):
            tj.dlaccelerate(lambda x: matrix @ x)(np.ones(4))


class TestRefusals:
    @pytest.mark.parametrize("name", [f"{f}_{kind}" for f in FORMATS for kind in ("array", "matrix")])
    def test_a_sparse_matrix_of_traced_elements(self, name):
        makes = [lambda x: getattr(scipy.sparse, name)(x) @ np.ones(3)]
        if name.startswith(("csr", "csc", "coo")):
            makes.append(
                lambda x: getattr(scipy.sparse, name)((x[0], (np.arange(3), np.arange(3)))) @ np.ones(3)
            )
        for make in makes:
            for run in (tj.dlaccelerate(make), lambda x, make=make: tj.dlfeval(make, x)):
                with pytest.raises(tj.ArgumentError) as caught:
                    run(np.eye(3))
                assert str(caught.value) == (
                    f"scipy.sparse.{name}: a sparse matrix cannot be made of traced arrays; make it outside of the "
                    "function, or compute with the dense array."
                )

    @pytest.mark.parametrize("name", ["eigsh", "eigs", "svds", "aslinearoperator", "splu", "factorized"])
    def test_a_traced_matrix_for_functions_of_sparse_ones(self, name):
        with pytest.raises(tj.ArgumentError) as caught:
            tj.dlfeval(getattr(scipy.sparse.linalg, name), np.eye(9))
        assert str(caught.value) == (
            f"scipy.sparse.linalg.{name}: not supported for a matrix that is traced; use a function of scipy.linalg, "
            "or a sparse matrix that is made outside of the function."
        )

    def test_a_traced_window(self):
        with pytest.raises(tj.ArgumentError) as caught:
            tj.dlfeval(lambda w: scipy.signal.ShortTimeFFT(w, hop=2, fs=1.0), np.ones(4))
        assert str(caught.value) == (
            "scipy.signal.ShortTimeFFT: its window cannot be traced; make it outside of the function, or use "
            "tj.stft(x, window), which has derivatives by the window."
        )


class TestCallsOfPython:
    @pytest.mark.parametrize("name", ["cg", "gmres", "minres", "lsqr", "expm_multiply", "expm"])
    def test_a_traced_matrix_is_one_of_the_program(self, name):
        function = getattr(scipy.sparse.linalg, name)

        def run(a, b):
            found = function(a) if name == "expm" else function(a, b)
            return found[0] if isinstance(found, tuple) else found

        step = tj.dlaccelerate(run)
        for n in range(4):
            a, b = np.diag([2.0, 3.0, 4.0]) + 0.1, np.arange(3.0) + n
            np.testing.assert_allclose(step(a, b), run(a, b))
        assert step.stats.hits == 2

    def test_truths_are_guards(self):
        step = tj.dlaccelerate(lambda y: scipy.spatial.distance.is_valid_dm(y) * y.sum())
        for n in range(6):
            matrix = scipy.spatial.distance.squareform(np.arange(1.0, 7.0))
            matrix[0, 1] += n % 2  # it is not symmetric then
            assert step(matrix) == scipy.spatial.distance.is_valid_dm(matrix) * matrix.sum()
        assert step.stats.hits > 0

    def test_transforms_of_short_times(self):
        window = scipy.signal.windows.gaussian(16, std=4)
        transform = scipy.signal.ShortTimeFFT(window, hop=4, fs=1.0)
        step = tj.dlaccelerate(lambda x: np.abs(transform.stft(x)).sum())
        inside = tj.dlaccelerate(
            lambda x: np.abs(scipy.signal.ShortTimeFFT(np.hanning(16), hop=4, fs=1.0).stft(x)).sum()
        )
        other = scipy.signal.ShortTimeFFT(np.hanning(16), hop=4, fs=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
            for n in range(5):
                x = np.sin(np.arange(64.0) * (n + 1))
                np.testing.assert_allclose(step(x), np.abs(transform.stft(x)).sum())
                np.testing.assert_allclose(inside(x), np.abs(other.stft(x)).sum())
        assert step.stats.hits == 3
