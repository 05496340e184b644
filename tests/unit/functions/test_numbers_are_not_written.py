# SPDX-License-Identifier: BSD-3-Clause
"""What is a scalar in NumPy is a number that no write reaches; arrays without axes are written."""

import numpy as np
import pytest
from accelerated import dlaccelerate
from write_oracle import compare

import tracejit as tj

NUMBERS = """
x.sum() | x.mean() | x.max() | x.min() | x.prod() | x.std() | x.var() | x.any() | x.all() | x.argmax() | x.sum(axis=None) | v.sum(axis=0)
v.max(axis=0) | v.mean(0) | np.sum(x) | np.sum(x, axis=(0, 1)) | np.max(v) | np.linalg.norm(v) | np.trace(x) | np.dot(v, v) | v @ v | np.vdot(v, v)
np.inner(v, v) | np.einsum("i->", v) | np.einsum("i,i->", v, v) | np.tensordot(v, v, 1)[()] | np.count_nonzero(m) | np.ptp(v) | np.add.reduce(v)
x[0, 0] | v[0] | v[-1] | x[1][1] | v[np.int64(1)] | v[np.array(1)] | x[0, 0] + 1 | -v[0] | abs(v[0]) | v[0] * 2 | v[0] > 0 | z + 1 | z * 2 | -z | z ** 2
np.sin(v[0]) | np.tanh(z) | np.maximum(z, 0) | np.exp(v[0]) | np.sqrt(abs(z)) | list(v)[1] | max(v) | sum(v) | v.sum() / 2 | (x * 2)[0, 0] | v.take(1)
np.take(v, 1) | np.clip(v[0], 0, 1) | np.round(v[0], 1) | np.sign(z) | z[()] | v[1:][0] | x.T[0, 1] | x.ravel()[3] | n.sum() | n[0, 0] | m[0, 0] | n.sum() / 2
np.zeros(3).sum() | np.zeros(3)[1] | np.ones(3) @ np.ones(3) | np.empty_like(z) * 0 | np.zeros(()) + 1 | np.zeros(()) + x[0, 0] | np.zeros_like(x)[0, 1]
"""  # noqa: E501
ARRAYS = """
z | z[...] | z.T | z.reshape(()) | v[0, ...] | x[0, 0, ...] | x[0, 0:1].reshape(()) | x[:1, :1].squeeze() | np.squeeze(x[:1, :1]) | z.copy() | z[None][0, ...]
z.sum()[...] | np.zeros_like(z) | np.ones_like(v[0]) | np.full_like(z, 2.0) | np.zeros(()) | np.ones(3)[1, ...] | np.zeros(3)[:1].reshape(()) | v[0][...] | np.squeeze(z) | z.transpose() | z.reshape(1).reshape(()) | np.reshape(v[:1], ()) | z[...].copy()
"""  # noqa: E501
CASES = [case.strip() for case in (NUMBERS + ARRAYS).replace("\n", "|").split("|") if case.strip()]


def arguments():
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, 3)), rng.standard_normal(4)
    return [x, v, np.array(1.5), np.arange(6).reshape(2, 3), x > 0]


def ran(function, box=None):
    given = arguments()
    return function(*(given if box is None else map(box, given))), given


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_an_in_place_operator_writes_arrays_only(case):
    text = f"def program(x, v, z, n, m):\n    r = {case}\n    other = r\n    r += 1\n    r *= 2\n    return r, other"
    names = {"np": np}
    exec(compile(text, f"<{case}>", "exec"), names)
    program = names["program"]
    expected, accelerated = ran(program), dlaccelerate(program)
    compare("eager", 0, ran(program, tj.dlarray), expected, arguments(), 1e-12)
    compare("dlfeval", 0, ran(lambda *args: tj.dlfeval(program, *args)), expected, arguments(), 1e-12)
    for call in range(3):
        compare("accelerated", call, ran(accelerated), expected, arguments(), 1e-12)


VIEWS = """
r.reshape(-1) | r.reshape(1, 1) | r[None] | r.ravel() | np.atleast_1d(r) | np.atleast_2d(r) | np.expand_dims(r, 0) | np.reshape(r, (1,)) | r[..., None]
r.reshape(1).T | np.ravel(r)[::-1] | r.reshape(1)[0, ...] | np.atleast_1d(r)[:1] | np.moveaxis(r[None, None], 0, 1) | np.split(r[None], 1)[0] | r.real[None]
np.require(r)
"""  # noqa: E501


@pytest.mark.sampled
@pytest.mark.parametrize("number", ["x.sum()", "v[0]", "z + 1", "np.zeros(3).sum()", "(v + 1j)[0].real"])
@pytest.mark.parametrize(
    "case", [case.strip() for case in VIEWS.replace("\n", "|").split("|") if case.strip()]
)
def test_an_array_made_of_a_number_has_an_element_of_its_own(case, number):
    text = (
        f"def program(x, v, z, n, m):\n    r = {number}\n    a = {case}\n    a += 1\n    a[...] *= 2\n"
        "    return r * 1, a, x * 1, v * 1"
    )
    names = {"np": np}
    exec(compile(text, f"<{case}>", "exec"), names)
    program = names["program"]
    expected, accelerated = ran(program), dlaccelerate(program)
    compare("dlfeval", 0, ran(lambda *args: tj.dlfeval(program, *args)), expected, arguments(), 1e-12)
    for call in range(3):
        compare("accelerated", call, ran(accelerated), expected, arguments(), 1e-12)
    if case != "np.require(r)":  # which reads the elements of a dlarray where nothing is recorded
        compare("eager", 0, ran(program, tj.dlarray), expected, arguments(), 1e-12)


@pytest.mark.parametrize("same", [tj.stripdims, tj.dlarray])
def test_a_number_under_another_name_is_not_written(same):
    def program(x):
        total = x.sum()
        other = same(total)
        other += 1
        return total, other

    accelerated, x = dlaccelerate(program), np.ones(3)
    for found in (tj.dlfeval(program, x), program(tj.dlarray(x)), *(accelerated(x) for _ in range(3))):
        assert [each.item() for each in found] == [3.0, 4.0]


def test_a_number_that_a_call_returned_is_not_written():
    total = dlaccelerate(lambda x: x.sum())
    for _ in range(3):
        first = second = total(np.ones(3))
        second += 1
        assert (first.item(), second.item()) == (3.0, 4.0)


def test_a_number_and_an_array_without_axes_have_traces_of_their_own():
    def added(total, x):
        total += x.sum()
        return total

    fun = dlaccelerate(added)
    number, array, history = tj.dlarray(np.ones(3)).sum(), np.array(3.0), []
    for _ in range(4):
        number = fun(number, np.ones(2))
        history.append(number)
        assert fun(array, np.ones(2)).item() == array == number.item()
    assert [each.item() for each in history] == [5.0, 7.0, 9.0, 11.0]
    assert fun.stats.traces == 2 and fun.stats.hits == 6


def test_an_index_assignment_to_a_number_is_refused():
    for evaluate in (lambda fun, x: fun(x), tj.dlfeval):
        with pytest.raises(TypeError, match="x is a number that an operation returned"):
            evaluate(lambda x: x.sum().__setitem__(..., 1.0), tj.dlarray([1.0, 2.0]))


def test_a_captured_array_that_is_written_and_returned():
    kept = tj.dlarray(np.arange(3.0))

    def fun(x):
        kept[1:] *= x
        return kept, kept[::-1]

    accelerated = dlaccelerate(fun)
    expected = np.arange(3.0)
    for factor in (2.0, 3.0, 0.5, 4.0):
        expected[1:] *= factor
        found = accelerated(np.array([factor]))
        assert [each.tolist() for each in (kept, *found)] == [expected.tolist()] * 2 + [
            expected[::-1].tolist()
        ]


def test_a_buffer_without_axes_stays_one():
    def fun(x):
        total = np.zeros(())
        other = total
        for value in x:
            total += value
            total[...] = total * 2
        return total, other, other[...]

    accelerated = dlaccelerate(fun)
    for factor in (1.0, 2.0, 3.0):
        x = factor * np.arange(1.0, 4.0)
        expected = [fun(x)[0].item()] * 3
        assert (
            [each.item() for each in accelerated(x)]
            == [each.item() for each in tj.dlfeval(fun, x)]
            == expected
        )
    assert accelerated.stats.hits == 2
