# SPDX-License-Identifier: BSD-3-Clause
"""Selections by traced masks: one trace where their sizes are not needed, and NumPy's numbers always."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import sweep
from selection_programs import program

import tracejit as tj


def of(text: str) -> Callable[..., Any]:
    """Return the function of x whose body is in a text; its last line is the result."""
    *lines, last = text.split("; ")
    names: dict[str, Any] = {"np": np, "tj": tj}
    exec("\n ".join(["def function(x):", *lines, f"return {last}"]), names)
    return names["function"]  # type: ignore[no-any-return]


def draws(count: int, size: Any = 9) -> list[np.ndarray]:
    """Return arrays of which no selection of the tests is empty."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(size) for _ in range(count)]
    for x in arrays:
        x[:3] = 2.5, -1.5, 1.5
    return arrays


def equal(found: Any, want: Any) -> None:
    found, want = ([x] if not isinstance(x, (list, tuple)) else x for x in (found, want))
    for have, expected in zip(found, want, strict=True):
        have, expected = np.asarray(have), np.asarray(expected)
        assert have.shape == expected.shape and have.dtype == expected.dtype
        rtol = 1e-6 if expected.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(have, expected, rtol=rtol, atol=1e-11)


ONE_TRACE = """
x[x > 0].sum() | x[x > 0].mean() | x[x > 0].max() | x[x > 0].min() | x[x > 0].std() | x[x > 0].var(ddof=1) | x[x > 0].prod()
np.sum(x[x > 0]) | np.mean(x[x > 0]) | np.ptp(x[x > 0]) | np.any(x[x > 0] > 1) | np.all(x[x > 0] > 1) | np.count_nonzero(x[x > 0] > 1)
x[x > 0] @ x[x > 0] | np.dot(x[x > 0], x[x > 0] ** 2) | x[x > 0].sum(keepdims=True) | x[x > 0].sum(axis=-1) | np.add.reduce(x[x > 0])
x[x > 0] *= 2; x | x[x > 0] = 0; x | m = x > 0; x[m] = x[m] ** 2; x | m = x > 0; x[m] = np.log(x[m]); x[~m] = -x[~m]; x
out = x.copy(); out[x < 0] *= 0.1; out | out = np.zeros_like(x); out[x > 0] = x[x > 0] * 2; out | out = np.empty(9); out[x > 0] = np.sqrt(x[x > 0]); out[x <= 0] = 0; out
y = x[x > 0]; y *= 2; y -= y.mean(); (y**2).sum() | y = x[x > 0]; y[y > 1] = 1; y.sum() | y = x[x > 0]; y[y > 1] *= 2; y.sum() | y = x[x > 0].copy(); y += 1; y.sum()
y = x[x > 0]; x[:] = 0; y.sum() | m = x > 0; y = x[m]; m[:] = True; y.sum() + x[m].sum() | x[x > 0][x[x > 0] > 1].sum() | x[x > -9][0] * 2
x[np.where(x > 0)].sum() | i = np.where(x > 0)[0]; x[i] *= 2; x | i = np.flatnonzero(x > 0); (i * x[i]).sum()
i = np.where(x > 0)[0]; y = x[0] * np.arange(20.0); y[2 * i].sum() | np.where(x > -9)[0][0] + x.sum() | x.astype(np.float32)[x > 0].mean() | x[x > 0].astype(np.float32).sum()
(x * 10).astype(int)[x > -9].max() | (x * 10).astype(int)[x > 0].sum() | (x + 1j)[x > 0].sum() | np.where(x[x > 0] > 1, x[x > 0], 0).sum()
np.nan_to_num(np.where(x > 1, np.nan, x)[x > 0]).sum() | np.abs(x[x < 0]).sum() | divmod(x[x > 0], 0.3)[1].sum() | (2 ** x[x > 0]).sum() | np.hypot(x[x > 0], 1.0).sum()
np.logaddexp(x[x > 0], 0.5).sum() | tj.exp(x[x > 0]).sum() | tj.clip(x[x > 0], 0.1, 0.5).mean() | x[x > 0].dtype == x.dtype and x[x > 0].sum() | x[x > 0].ndim * x[x > 0].sum()
y = x.reshape(3, 3); y[y[:, 0] > 0].sum(axis=0) | y = x.reshape(3, 3); y[y[:, 0] > 0].mean(axis=0) | y = x.reshape(3, 3); y[y > 0].sum() | y = x.reshape(3, 3); y[y[:, 0] > 0] *= 2; y
y = x.reshape(3, 3); y[y[:, 0] > 0, 1] += y[y[:, 0] > 0, 2]; y | y = x.reshape(3, 3); y[y[:, 0] > 0, 1:] = 0; y | y = x.reshape(3, 3); (y[y[:, 0] > 0] * y[0]).sum() | y = x.reshape(3, 3); y[y[:, 0] > 0].max(axis=1).sum()
y = x.reshape(3, 3); i, j = np.where(y > 0); y[i, j].sum() | y = x.reshape(3, 3); i, j = np.where(y > 0); y[i, j] = 7; y | y = x.reshape(3, 3); i, j = np.where(y > 0); (i * 3 + j).sum() + y[i].sum()
y = np.where(x > 1, np.nan, x); y[np.isnan(y)] = y[~np.isnan(y)].mean(); y
np.linalg.norm(x[x > 0]) | np.linalg.norm(x[x > 0], 1) | np.extract(x > 0, x).mean() | np.compress(x > 0, x).sum() | y = x.reshape(3, 3); np.compress(y[:, 0] > 0, y, axis=0).sum(axis=0)
y = x.reshape(3, 3); np.linalg.norm(y[y[:, 0] > 0], axis=1).sum() | np.nanmedian(np.where(x > 0, x, np.nan))
y = x.reshape(3, 3); (y[y[:, 0] > 0] @ y).sum(axis=0) | y = x.reshape(3, 3); (y[y[:, 0] > 0] @ y[0]).mean() | y = x.reshape(3, 3); np.dot(y[y[:, 0] > 0], np.ones((3, 2))).max(axis=1).sum()
y = x.reshape(3, 3); m = y[:, 0] > 0; r = y[m] @ y[0] - x[:3][m]; (r**2).mean() | y = x.reshape(3, 3); m = y[:, 0] > 0; out = np.zeros((3, 2)); out[m] = np.maximum(y[m] @ y[:, :2], 0) @ y[:2, :2]; out
y = x[:8].reshape(2, 2, 2); (y[y[:, :, 0] > 0] @ y[0]).sum(axis=0) | y = x[:8].reshape(2, 2, 2); y[y[:, :, 0] > 0] = y[y[:, :, 0] > 0] @ y[0]; y | y = x.reshape(3, 3); (y[y[:, 0] > 0] @ np.arange(3)).sum()
y = x.reshape(3, 3); m = y[:, 0] > 0; (y[m] * y[m, 1, None]).sum(axis=0) | y = x.reshape(3, 3); y[y[:, 0] > 0, None].max(axis=2).sum() | y = x.reshape(3, 3); (y[y[:, 0] > 0, None, 1:] * y[0, 1]).sum(axis=0)
y = x.reshape(3, 3); m = y[:, 0] > 0; k = y.argmax(axis=1); y[m, k[m]].mean() | y = x.reshape(3, 3); m = y[:, 0] > 0; k = np.where(m, 1, 99); -y[m, k[m]].sum()
"""  # noqa: E501
OF_SIZES = """
(x + 1j * x)[x > 0].std() | i = np.nonzero(x > 0)[0]; np.arange(20.0)[i + 2].sum() + x.sum()
x[x > 0] | x[x > 0] * 2 | len(x[x > 0]) | x[x > 0].size | x[x > 0].shape[0] * x.sum() | np.sort(x[x > 0]) | x[x > 0][1:] | x[x > 0][:, None] * x | x[x > 0].reshape(-1, 1)
np.concatenate([x[x > 0], x[x <= 0]]) | np.outer(x[x > 0], x) | np.cumsum(x[x > 0]) | np.argmax(x[x > -9]) | np.median(x[x > 0]) | np.diff(x[x > 0]).sum() | x[x > 0].T | x[x > -9][-1]
sum(v * 2 for v in x[x > 0]) | sum(list(x[x > 0])) | y = x[x > 0]; v = y[1:]; y *= 2; v.sum() | y = x[x > 0]; y[0] = 5; y.sum() + x.sum() | y = x[x > 0]; y[:] = 1; y.sum() | y = x[x > 0]; y.sort(); y
y = x[x > 0]; z = y * 2; n = len(y); z.sum() / n | y = x[x > 0]; z = y * 2; np.sort(y).sum() + z.sum() | y = x[x > 0]; np.add(y, 1, out=y); y.sum() | x[x > 0] = np.arange(len(x[x > 0])); x | y = x[x > 0]; y.fill(2.0); y
np.stack([x[x > 0], x[x > 0] ** 2]) | {"y": x[x > 0]}["y"] | np.where(x > 0)[0] | x[x > 0] + np.ones(len(x[x > 0])) | y = x.reshape(3, 3); y[:, y[0] > 0] | y = x.reshape(3, 3); y[y[:, 0] > 0].T @ y[y[:, 0] > 0]
y = x.reshape(3, 3); i, j = np.where(y > 0); y[j, i].sum() | x[x > 0][np.argsort(x[x > 0])] | np.histogram(x[x > 0], bins=3, range=(0, 3))[0] | x[x > 0].mean() if len(x[x > 0]) > 3 else x.sum()
"""  # noqa: E501


def cases(text: str) -> list[str]:
    return [case.strip() for case in text.replace("\n", "|").split("|") if case.strip()]


@pytest.mark.parametrize("case", cases(ONE_TRACE))
def test_one_trace(case: str) -> None:
    plain, function = of(case), dlaccelerate(of(case))
    for x in draws(8):
        mine, want = tj.dlarray(x.copy()), x.copy()
        equal(function(mine), plain(want))
        equal(mine, want)
    assert (function.stats.hits, function.stats.uncompiled) == (7, 0)


@pytest.mark.parametrize("case", cases(OF_SIZES))
def test_what_needs_the_size(case: str) -> None:
    plain, function = of(case), dlaccelerate(of(case), max_variants=20)
    for x in [x for x in draws(4) for _ in range(3)]:
        mine, want = tj.dlarray(x.copy()), x.copy()
        equal(function(mine), plain(want))
        equal(mine, want)
    assert function.stats.uncompiled == 0


def test_an_empty_selection_has_a_trace_of_its_own() -> None:
    function = dlaccelerate(lambda x: (x[x > 0].mean(), np.prod(x[x > 0] * 2)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in [x * sign for x in draws(4) for sign in (1, 0)]:
            equal(function(tj.dlarray(x)), (x[x > 0].mean(), np.prod(x[x > 0] * 2)))
    assert len(function.variants()[0].traces) == 2
    with pytest.raises(ValueError, match="max"), np.errstate(all="ignore"):
        dlaccelerate(lambda x: x[x > 0].max())(tj.dlarray([-1.0]))


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("len(x[x > 0])", "the size of a selection by a mask"),
        ("len(np.where(x > 0)[0])", "the number of places of nonzero"),
    ],
)
def test_the_warning_says_what_needs_no_size(case: str, what: str) -> None:
    function = dlaccelerate(of(case), max_variants=2)
    text = (
        f"function runs uncompiled for these arguments: {what} on a traced array gave a different number in each of 3 "
        "recordings at <string>:2. Sums, means, extrema and functions of the elements of "
        "x[mask] need no size, mask.sum() counts them in place of len and .size, and np.nanmedian(np.where(mask, x, "
        "np.nan)) and its like take the rest; or raise max_variants."
    )
    with pytest.warns(tj.NotAcceleratedWarning) as found:
        for count in (1, 2, 3, 4):
            assert function(tj.dlarray(np.arange(5.0) < count) * 1.0) == count
    assert [str(warning.message) for warning in found] == [text]


GRADIENTS = """
tj.dlgradient(np.sqrt(x[x > 0]).sum() + np.log(x[x > 0]).mean(), x) | y = np.where(x > 1, np.nan, x); y = y[~np.isnan(y)]; tj.dlgradient((y * y).sum(), x)
y = x[x > 0]; tj.dlgradient(y.max() + y.std() + y.min() + y.prod(), x) | z = x.copy(); z[x > 0] = x[x > 0] ** 2; z[x < 0] *= 3; tj.dlgradient((z * x).sum(), x) | tj.dlgradient(x[x > 0][0] ** 2, x)
a = x[0] * 1; y = x[x > -9]; y[y < 0] = 1; tj.dlgradient(np.sqrt(y * a).sum(), a) | a = x[0] * 1; y = x[::-1][x > 0]; y[y < 0] = 1; tj.dlgradient(np.sqrt(y * a).sum(), a)
a = x[0] * 1; m = x > 0.5; b = x[1] * (x > 0)[m]; tj.dlgradient((np.sqrt(-b) * a).sum(), a) | a = x[0] * 1; m = x > 1; b = np.where((x > 0.5)[m], 1, 0); tj.dlgradient((np.log(b) * a).sum(), a)
y = x[x > 0]; y *= 2; tj.dlgradient((y**2).sum(), x) | y = x[x > 0]; tj.dlgradient((y**2).sum(), y) | y = x[x > 0]; s = (y * y).sum() + (np.sort(y) * y[::-1]).sum(); tj.dlgradient(s, y)
y = x[x > 0]; z = y * 2; s = (z**3).sum() + y.sum(); [tj.dlgradient(s, z), tj.dlgradient(s, y), tj.dlgradient(s, x)] | y = x[x > 0]; z = y.copy(); s = (z * y).sum(); [tj.dlgradient(s, z), tj.dlgradient(s, y)]
y = x[x > 0]; s = (y**2).sum() + (np.exp(y) * y).mean(); g = tj.dlgradient(s, y); tj.dlgradient((g * y).sum(), x) | tj.dlfeval(lambda y: tj.dlgradient((y**3).sum(), y), x[x > 0])
y = x.reshape(3, 3); y = y[y[:, 0] > 0]; s = (y**2 * x[:3]).sum(); [tj.dlgradient(s, y), tj.dlgradient(s, x)] | y = x[x > 0]; tj.dlhessian((y**3).sum(), y) | y = x[x > 0]; tj.dljvp((y**2).sum(), y, y * 0 + 1)
y = x[x > 0]; z = y[y > 1]; s = (z**3).sum(); t = s + (y**2).sum(); [tj.dlgradient(t, y), tj.dlgradient(s, z), tj.dlgradient(t, y)]
y = x[x > 0]; s = (y**2).sum(); g = tj.dlgradient(s, y); t = (y**3).sum(); [g, tj.dlgradient(s + t, y)] | tj.dlcheckpoint(lambda y: (y * y).sum())(x[x > 0]) | y = x[x > 0]; tj.dlgradient((y**2).sum(), [y, x])
y = x[x > 0]; tj.dlmap(lambda row: (y * row[0]).sum(), 0)(x.reshape(3, 3)) | tj.dlmap(lambda row: row * x[x > 0].sum(), 0)(x.reshape(3, 3)) | y = x[x > 0]; tj.dlcond(x.sum() > 0, lambda: (y * 2).sum(), lambda: -y.sum())
y = x[x > 0]; tj.dlgradient(tj.dlscan(lambda c, t: (c + (y * t).max(), c), tj.dlarray(0.0), x)[0], x) | tj.dlscan(lambda c, t: (c + t * (x[x > 0] ** 2).sum(), c), tj.dlarray(0.0), x)[0]
"""  # noqa: E501


@pytest.mark.parametrize("case", cases(GRADIENTS))
def test_derivatives_and_loops(case: str) -> None:
    """They are those of the uncompiled function, which computes with the elements that are selected alone."""
    plain, function = of(case), dlaccelerate(of(case), max_variants=20)
    for x in [x for x in draws(3) for _ in range(3)]:
        equal(function(tj.dlarray(x)), tj.dlfeval(plain, tj.dlarray(x)))
    assert function.stats.uncompiled == 0


def test_a_selection_that_is_kept() -> None:
    """In an attribute, or elsewhere: it is an array with its own elements after the call."""
    kept: list[Any] = []
    holder = type("Holder", (), {})()

    def function(x: Any) -> Any:
        y = x[x > 0]
        kept.append(y)
        holder.last = y * 2
        return y.sum()

    accelerated = dlaccelerate(function, max_variants=20)
    for x in draws(6):
        accelerated(tj.dlarray(x))
        equal(holder.last, x[x > 0] * 2)
        equal(kept[-1], x[x > 0])
        equal(kept[-1] + 1, x[x > 0] + 1)


W = np.random.default_rng(1).standard_normal((9, 9))
OF_NDARRAYS = {
    "W[x > 0].sum(axis=0)": 1,
    "W[x > 0, 1].mean()": 1,
    "W[0][~(x > 0)].std()": 1,
    "y = x.copy(); m = x > 0; y[m] = y[m] ** 2 + W[0][m]; y": 1,
    "W[:, x > 0].sum(axis=1)": None,  # a mask that is not the first entry settles
    "W[x > 0].shape": None,
    "W.astype(np.int64)[x > 0].sum()": 1,
    "(W > 0)[x > 0].any(axis=0)": 1,
}


@pytest.mark.parametrize("text", OF_NDARRAYS)
def test_ndarrays_that_a_traced_mask_selects_from(text: str) -> None:
    plain = of(text)
    plain.__globals__["W"] = W
    accelerated = dlaccelerate(plain, max_variants=20, audit=False)
    for x in draws(10):
        equal(accelerated(x.copy()), plain(x.copy()))
    assert not accelerated.stats.uncompiled
    assert OF_NDARRAYS[text] in (None, accelerated.stats.traces)


def test_the_ndarray_may_change_and_has_its_derivative() -> None:
    class Net:
        def __init__(self) -> None:
            self.w, self.table = np.ones(9), np.arange(9.0)

        def step(self, x: Any) -> Any:
            fired = x > 0
            self.w[fired] += 0.5 * self.table[fired]
            self.table *= 1.5
            return self.w[fired].sum()

    mine, theirs = Net(), Net()
    accelerated = dlaccelerate(mine.step)
    for x in draws(12):
        equal(accelerated(x), theirs.step(x))
        equal((mine.w, mine.table), (theirs.w, theirs.table))
    assert accelerated.stats.hits >= 6 and not accelerated.stats.uncompiled
    slope = dlaccelerate(lambda x: tj.dlgradient((W[0][x > 0] * x[x > 0]).sum(), x))
    for x in draws(4):
        equal(slope(tj.dlarray(x)), np.where(x > 0, W[0], 0.0))


def test_a_mask_of_another_size_is_numpys_error() -> None:
    accelerated = dlaccelerate(lambda x: W[x > 0])
    for _ in range(3):
        with pytest.raises(IndexError, match="boolean index did not match"):
            accelerated(np.ones(4))


def test_a_selection_in_another_function() -> None:
    inner = dlaccelerate(lambda y: (y * y).sum(), max_variants=20)
    outer = dlaccelerate(lambda x: inner(x[x > 0]) + (x[x > 0] ** 2).sum(), max_variants=20)
    for x in draws(8):
        equal(outer(tj.dlarray(x)), 2 * (x[x > 0] ** 2).sum())


def test_a_selection_in_another_thread() -> None:
    """What a thread computes is not recorded: the function runs uncompiled, and its numbers are right."""

    def function(x: Any) -> Any:
        y, found = x[x > 0], []
        thread = threading.Thread(target=lambda: found.append(np.sort(y * 2)[::-1].sum()))
        thread.start()
        thread.join()
        return found[0] + y.sum()

    accelerated = dlaccelerate(function)
    with pytest.warns(tj.NotAcceleratedWarning):
        for x in draws(5):
            equal(accelerated(tj.dlarray(x)), 3 * x[x > 0].sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(sweep(20, 300)))
def test_generated_programs(seed: int) -> None:
    """Random programs and their gradients agree with NumPy, and with the uncompiled gradients."""
    text, size = program(seed)
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    plain = names["program"]

    def gradients(x: Any, a: Any) -> Any:
        squares = [np.square(out * 1.0).sum() for out in plain(x, a)]
        return tj.dlgradient(sum(squares), [x, a])

    function, gradient = dlaccelerate(plain, max_variants=20), dlaccelerate(gradients, max_variants=20)
    rng = np.random.default_rng(seed)
    for call in range(6):
        x, a = rng.standard_normal(size).round(3), float(rng.uniform(0.3, 1.2))
        x = -5 * np.ones(size) if call == 4 else x
        with np.errstate(all="ignore"):
            equal(function(tj.dlarray(x.copy()), a), plain(x.copy(), a))
            arguments = [tj.dlarray(x), tj.dlarray(a)]
            equal(gradient(*arguments), tj.dlfeval(gradients, *arguments))


def _experts(x: Any, weights: Any) -> Any:
    """Each row goes through the matrix of its largest element, as in a mixture of experts."""
    expert, out = (x @ weights["gate"]).argmax(axis=1), np.zeros((len(x), 2))
    share = tj.softmax(x @ weights["gate"], axis=1)
    for number in range(3):
        mine = expert == number
        out[mine] = np.tanh(x[mine] @ weights[f"w{number}"]) * share[mine, number, None]
    return ((out - 0.5) ** 2).mean()


def _classes(x: Any, weights: Any) -> Any:
    """The cross-entropy of the rows that have a class."""
    classes = np.where(x[:, 0] > 0, 1, -9)
    logp = np.log(tj.softmax(x @ weights["gate"], axis=1))
    known = classes >= 0
    return -logp[known, classes[known]].mean()


def _regression(x: Any, weights: Any) -> Any:
    train = x[:, 1] > -0.5
    return ((x[train] @ weights["w0"][:, 0] - x[:, 2][train]) ** 2).mean()


def _outside_of_the_domain(x: Any, weights: Any) -> Any:
    """The functions of what is not selected are NaN, and so are their derivatives."""
    known, place = x[:, 0] > 0.1, np.where(x[:, 0] > 0.1, 0, -1)
    return np.sqrt(x[known, place[known]]).sum() + np.sqrt(x[known] @ np.array([1.0, 0, 0])).mean()


@pytest.mark.parametrize("loss", [_experts, _classes, _regression, _outside_of_the_domain])
def test_gradients_of_products_of_rows_have_one_trace(loss: Any) -> None:
    rng = np.random.default_rng(3)
    weights = {
        "gate": rng.standard_normal((3, 3)),
        **{f"w{n}": rng.standard_normal((3, 2)) for n in range(3)},
    }

    def step(weights: Any, x: Any) -> Any:
        value = loss(x, weights)
        return value, tj.dlgradient(value, {"x": x, **weights})

    function = dlaccelerate(step)
    for _ in range(8):
        x = rng.standard_normal((30, 3))
        (value, gradients), (want, slopes) = function(weights, x), tj.dlfeval(step, weights, x)
        equal(value, want)
        for name, gradient in gradients.items():
            equal(gradient, slopes[name])
    assert (function.stats.hits, function.stats.uncompiled) == (7, 0)


def test_a_large_product_is_one_of_the_selected_rows() -> None:
    function = dlaccelerate(lambda x, w: (x[x[:, 0] > 0] @ w).sum(axis=0), max_variants=20)
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((300, 120)), rng.standard_normal((120, 120))
    for count in (10, 10, 10, 20, 20, 20):
        x[:, 0] = np.arange(300) < count
        equal(function(x, w), (x[:count] @ w).sum(axis=0))
    assert len(function.variants()[0].traces) == 2


def test_a_mask_selects_from_a_large_ndarray_of_the_state_as_numpy_does() -> None:
    """To compute with all of it would take longer than to read the few rows that are selected."""

    class Net:
        def __init__(self) -> None:
            self.w = np.ones((600, 600))  # more than 1 << 16 elements

        def step(self, x: Any) -> Any:
            return self.w[x > 0.9].sum(axis=0)

    net = Net()
    step = dlaccelerate(net.step)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            x = rng.random(600)
            np.testing.assert_array_equal(np.asarray(step(x)), net.w[x > 0.9].sum(axis=0))
    assert (step.stats.hits, step.stats.uncompiled) == (0, 5)
