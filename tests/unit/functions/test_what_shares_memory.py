# SPDX-License-Identifier: BSD-3-Clause
"""A result shares memory with an operand exactly where NumPy's does, also where a function has nothing to do."""

import ast
import copy
from functools import partial

import numpy as np
import pytest
from write_oracle import compare

import tracejit as tj

pytestmark = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
EXPRESSIONS = """
x | +x | -x | abs(x) | x + 0 | x - 0 | x * 1 | x / 1 | x ** 1 | x // 1 | ~m | m | 0 + x | 1 * x | n + 0 | n * 1 | n ** 1
x.copy() | copy.copy(x) | x.astype(np.float64) | n.astype(int) | x.astype(np.float32) | x.round(3)
x.clip(-9, 9) | x.sum(axis=()) | x.max(axis=()) | x[:1].sum(axis=0) | x[:1].mean(axis=0) | x[:1].max(axis=0) | x[:1].cumsum(axis=0)
x[0, 0] | x[0][0] | x[0][:1][0] | x[0, 0, ...] | x[-1, -1, None] | v[3] | v[np.int64(2)] | z[()] | x[...] | x[()] | x[:] | x[0:] | x[::1] | x[None][0] | x[[0, 1, 2]] | x[x > -9] | x[x > -9, ...] | x[np.arange(3)] | x[1, ...]
x[0] | x[0, 1:2] | x[:, None] | x[..., 0] | x[0:0] | v[3, ...] | v[-1:] | z | z[...] | z[None]
x.T | x.T.T | x.transpose() | x.transpose(0, 1) | x.swapaxes(0, 0) | x.swapaxes(0, 1) | x.reshape(x.shape) | x.reshape(-1) | x.ravel() | x.flatten()
x.T.ravel() | x.T.flatten() | x.T.reshape(-1) | x.T.T.reshape(-1) | x[:, :2].ravel() | x[:1].ravel() | x[:, :1].ravel() | v[::2].ravel() | v[::-1].ravel()
(x + 1).T.ravel() | (x.T + 1).ravel() | (x.T * x.T).reshape(-1) | np.tanh(x.T).ravel() | x.T.copy().ravel() | x.T.copy().reshape(-1)[2:] | np.sin(x).T.reshape(-1) | (x.T @ x).T.ravel()
x[:, ::2].copy().ravel() | (x[:, ::-1] + 1).ravel() | np.where(m.T, x.T, 0).ravel() | np.maximum(x.T, 0).reshape(-1) | x.T.astype(np.float32).ravel()
np.stack([v, v]).T.ravel() | np.concatenate([x.T, x.T]).ravel() | np.zeros_like(x.T).ravel() | x.T[[0, 1]].ravel() | x.T[x.T > -9].ravel() | (-x.T).ravel()
x.sum(axis=0).ravel() | x.T.cumsum(axis=0).ravel() | np.flip(x.T + 1, 0).ravel() | (x.T + x[:, :1].T).ravel() | (x.T == x.T).ravel()
x.squeeze() | x[:1].squeeze() | x[:1, :1].squeeze() | x.repeat(1, 0) | x.take([0, 1, 2], 0) | z.ravel() | z.reshape(1) | z.copy() | z + 0
np.positive(x) | np.negative(x) | np.abs(x) | np.fabs(x) | np.round(x, 2) | np.round(n) | np.floor(n) | np.ceil(n) | np.trunc(n) | np.rint(x) | np.clip(x, -9, 9)
np.maximum(x, x) | np.minimum(x, -9) | np.where(m, x, x) | np.where(True, x, 0) | np.sum(x, axis=()) | np.prod(x, axis=()) | np.max(x, axis=()) | np.cumsum(v)
np.roll(x, 0) | np.pad(x, 0) | np.tile(x, 1) | np.repeat(x, 1, 0) | np.concatenate([x]) | np.vstack([x]) | np.hstack([x]) | np.stack([x])[0] | np.tril(x, 9) | np.triu(x, -9)
np.take(x, [0, 1, 2], 0) | np.take_along_axis(x, np.zeros((3, 4), int), 1) | np.dot(x, 1) | np.multiply(x, 1) | np.tensordot(x, 1, 0)
np.einsum("ij->ij", x) | np.einsum("ij->ji", x) | np.einsum("ij->i", x[:, :1]) | np.trace(x) | np.inner(x, 1) | np.outer(v, 1)
np.ravel(x) | np.ravel(x.T) | np.reshape(x, (4, 3)) | np.reshape(x, x.shape) | np.transpose(x) | np.transpose(v) | np.swapaxes(x, 0, 0) | np.moveaxis(x, 0, 0) | np.moveaxis(x, 0, 1)
np.squeeze(x) | np.squeeze(x[:1]) | np.expand_dims(x, 0) | np.atleast_1d(x) | np.atleast_1d(z) | np.atleast_2d(x) | np.atleast_2d(v) | np.atleast_3d(x) | np.atleast_3d(v)
np.split(x, 3)[1] | np.split(x, [1])[1] | np.array_split(x, 1)[0] | np.array_split(x, 2)[1] | np.split(x, 2, 1)[0] | np.flip(x) | np.flip(x, 0) | np.flip(x, ())
np.broadcast_to(x, (2, 3, 4)) | np.diag(v[:2]) | np.full_like(x, 2) | np.ones_like(x) | np.zeros_like(x)
np.fliplr(x) | np.flipud(v) | np.rot90(x) | np.rot90(x, 2) | np.rot90(x, 3) | np.rot90(x, 4) | np.rollaxis(x, 1) | np.rollaxis(x, 0) | np.matrix_transpose(x)
np.hsplit(x, 2)[0] | np.vsplit(x, 3)[1] | np.unstack(x)[0] | np.unstack(x, axis=1)[1] | np.real(x) | np.imag(x) | np.real_if_close(x) | np.conj(x) | x.real | np.diff(v, n=0) | np.diff(v)
np.nan_to_num(x) | np.nan_to_num(x, copy=False) | np.nan_to_num(n, copy=False) | np.astype(x, float, copy=False) | np.astype(x, float) | np.sort(v) | np.delete(v, []) | np.delete(x, [], 0) | np.insert(v, [], 0)
np.resize(x, (3, 4)) | np.resize(x, (2, 3)) | np.append(x, x[:0], 0) | np.block(x) | np.block([x]) | np.atleast_1d(x, v)[0] | np.select([x > -9], [x]) | np.compress([1, 1, 1], x, 0) | np.extract(x > -9, x) | np.trim_zeros(v)
np.unwrap(v) | np.ravel(x, order="F") | np.ravel(x.T, order="F") | np.reshape(x, (4, 3), order="F") | np.reshape(x.T, (12,), order="F") | np.meshgrid(v, v, copy=False)[0][0] | np.meshgrid(v)[0] | np.meshgrid(v, copy=False)[0]
np.partition(v, 1)[:0] | np.cumprod(v) | np.gradient(v) | np.tril(x) | np.kron(v, 1) | np.vander(v, 2) | np.median(x, axis=()) | np.average(x, axis=()) | np.quantile(x, 0.5, axis=0) | np.unique(v) | np.fix(n) | np.isreal(x)
list(x)[0] | list(v)[0] | next(iter(v)) | max(v) | min(v) | sorted(v)[0] | x.any() | next(iter(x)) | [*x][1] | dict(a=x)["a"] | sum(x) | sum([x]) | x.min()
"""  # noqa: E501
INTEGERS = np.arange(3)
RETURN_THEIR_ARGUMENT = {"np.round(n)"} if np.round(INTEGERS) is INTEGERS else set()  # in releases before 2.2
CASES = [case.strip() for case in EXPRESSIONS.replace("\n", "|").split("|")]
CASES = [case for case in CASES if case and case not in RETURN_THEIR_ARGUMENT]


def arguments():
    rng = np.random.default_rng(0)
    x, v, z = rng.standard_normal((3, 4)), rng.standard_normal(5), np.array(1.5)
    return [x, v, z, np.arange(12).reshape(3, 4), x > 0]


def program_of(case, name):
    """Return a function that adds to the result of an expression, or to its operand, and returns the result."""
    statement = f"{name} ^= True" if name == "m" else f"{name} += 1"
    text = f"def program(x, v, z, n, m):\n    r = {case}\n    {statement}\n    return r"
    names = {"np": np, "copy": copy}
    exec(compile(text, f"<{case}>", "exec"), names)
    return names["program"]


def operand(case):
    """Return the argument that an expression is made of."""
    names = {node.id for node in ast.walk(ast.parse(case)) if isinstance(node, ast.Name)}
    return next(name for name in "xvznm" if name in names)


def ran(function, box=None):
    given = arguments()
    try:
        return function(*(given if box is None else map(box, given))), given
    except Exception as error:
        return error.with_traceback(None), given


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_results_share_memory_where_they_do_in_numpy(case):
    for written in ("r", operand(case)):
        program = program_of(case, written)
        expected = ran(program)
        compare(f"{written} written, eager", 0, ran(program, tj.dlarray), expected, arguments(), 1e-5)
        evaluated = ran(partial(tj.dlfeval, program))
        compare(f"{written} written, evaluated", 0, evaluated, expected, arguments(), 1e-5)


MADE = """
x.T.copy() | x[:, ::2].copy() | copy.copy(x.T) | x.T.astype(np.float32) | x.T.astype(np.float64) | +x.T | x.T + 1 | x.T + x.T | x + x.T.T | x.T + x[0, 0]
np.positive(x.T) | np.sin(x.T) | np.sin(x[:, ::2]) | np.where(m.T, x.T, 0) | np.where(m, x, x[:1]) | np.maximum(x.T, 0) | x.T * x[:, :1].T | x.T.clip(0, 1)
np.ones_like(x[:, ::2]) | np.concatenate([x.T, x.T]) | np.concatenate([x.T, x.T], 1) | np.stack([x.T, x.T])
np.round(x.T, 1) | x.T.round(2) | np.roll(x.T, 1) | np.roll(x.T, 1, 0) | np.roll(x.T, 0) | np.pad(x.T, 1) | np.pad(x.T, 0) | np.tile(x.T, (2, 1)) | np.tile(x.T, 1)
np.repeat(x.T, 2, 0) | np.repeat(x.T, 1, 0) | np.flip(x.T + 1, 0) | x.T[[0, 1]] | x.T[x.T > -9] | x.T[m.T] | np.take(x.T, [0, 1], 0) | np.take(x.T, [0, 1], 1)
x @ x.T | x.T @ x | x.T.cumsum(axis=0) | np.cumsum(x.T, axis=1) | np.tril(x.T) | np.triu(x.T) | x.T.sum(axis=0, keepdims=True) | x[None].sum(axis=0) | x.T[None].sum(axis=0)
x.T[None].max(axis=0) | x.T[:, None].mean(axis=1) | np.outer(v, v).T | np.einsum("ij->ji", x) + 1 | np.broadcast_to(x.T, (2, 4, 3)) + 1
-x.T | abs(x.T) | x.T / 2 | x.T ** 2 | x.T // 1 | x.T > 0 | ~m.T | n.T + 1 | n.T % 2 | 2 * x.T | np.swapaxes(x[None] * 2, 0, 2) | np.moveaxis(x[None] + 1, 0, 2)
np.expand_dims(x.T, 0) + 1 | np.squeeze(x.T[None] * 2) | x.T.copy().T | np.sqrt(abs(x.T)) | np.vstack([x.T, x.T]) | np.hstack([x.T, x.T]) | np.split(x.T * 2, 2)[0]
np.take_along_axis(x.T, np.zeros((4, 3), int), 0) | np.tensordot(x, x.T, 1) | np.inner(x, x) | x.reshape(2, 6).T + 1 | x[::-1, ::-1] * 2
"""  # noqa: E501
MADE_CASES = [case.strip() for case in MADE.replace("\n", "|").split("|") if case.strip()]


@pytest.mark.sampled
@pytest.mark.parametrize("case", MADE_CASES)
def test_results_lie_in_memory_as_numpys_do(case):
    """Whether reshape and ravel give views of them depends on it."""
    lines = [
        "made = " + case,
        "made.ravel()[...] = 0",
        "made.reshape(-1)[1:] += 1",
        "made.T.ravel()[:2] -= 1",
    ]
    text = "\n    ".join(["def program(x, v, z, n, m):", *lines, "return made"])
    names = {"np": np, "copy": copy}
    exec(compile(text, f"<{case}>", "exec"), names)
    program = names["program"]
    expected = ran(program)
    compare("eager", 0, ran(program, tj.dlarray), expected, arguments(), 1e-5)
    compare("evaluated", 0, ran(partial(tj.dlfeval, program)), expected, arguments(), 1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "text",
    """
np.tile(x, 3) | np.tile(x, (2, 1)) | np.resize(x, (4,)) | +np.broadcast_to(x, (3,)) | np.copy(np.broadcast_to(x, (3,)))
np.array(np.broadcast_to(x, (3,))) | np.broadcast_to(x, (2, 1, 1)).flatten() | np.broadcast_to(x, (2, 3)).ravel()
np.broadcast_to(x, (2, 2)).astype(float) | np.roll(np.broadcast_to(x, (3,)), 0) | np.pad(np.broadcast_to(x, (3,)), 0)
""".strip()
    .replace("\n", " | ")
    .split(" | "),
)
def test_a_copy_of_one_element_that_is_shown_often_has_as_many_elements(text):
    names = {"np": np}
    exec(
        f"def fun(x):\n    y = {text}\n    z = y * 2\n    y[:1] = 0.5\n    y[-1:] += 1\n    return y, z, x * 1",
        names,
    )
    fun, x = names["fun"], np.array([3.0])
    accelerated = tj.dlaccelerate(fun)
    for found in (fun(tj.dlarray(x)), tj.dlfeval(fun, x), *(accelerated(x) for _ in range(3))):
        for ours, theirs in zip(found, fun(x.copy()), strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("dtype", [float, int, complex])
@pytest.mark.parametrize(
    "text",
    ["x.copy()", "np.array(x)", "x.astype(x.dtype)", "+x", "np.roll(x, 0)", "np.tile(x, 1)", "np.pad(x, 0)",
     "np.concatenate([x])", "tj.stop_gradient(x)"],
)  # fmt: skip
def test_a_copy_that_leaves_an_evaluation_has_elements_of_its_own(text, dtype):
    """Also where the recording has nothing to compute: the array may be written inside, by its end and later."""
    copied = eval(f"lambda x: {text}", {"np": np, "tj": tj})
    kept = []

    def fun(x):
        y = x * 2
        kept[:] = [copied(x), copied(y)]
        of_x, of_y = copied(x), copied(y)
        x += 1
        return of_x, y, of_y

    for run in (fun, partial(tj.dlfeval, fun), tj.dlaccelerate(fun)):
        x = tj.dlarray(np.arange(3).astype(dtype))
        of_x, y, of_y = run(x)
        x += 1
        y += 1
        found = [np.asarray(array).tolist() for array in (of_x, of_y, *kept, x, y)]
        assert found == [[0, 1, 2], [0, 2, 4], [0, 1, 2], [0, 2, 4], [2, 3, 4], [1, 3, 5]]
