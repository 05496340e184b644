# SPDX-License-Identifier: BSD-3-Clause
"""kernel: loops of users, compared with Python's, with their checks of indices."""

import linecache
import re

import numpy as np
import pytest
from user_loops import CASES, WEIGHT, X, smooth, taken

import tracejit as tj
from tracejit.errors import ArgumentError, BoundsError, GradientError


def expected_of(kernel, arguments):
    """Return what the function itself writes, as Python runs it."""
    found = kernel(*map(tj.dlarray, arguments))
    outputs = [np.zeros(y.shape, y.dtype) for y in (found if isinstance(found, tuple) else (found,))]
    kernel.function(*arguments, *outputs)
    return outputs


@pytest.mark.whole("each is a program of its own")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_loops(name, dtype):
    kernel, arguments = CASES[name]
    arguments = [np.asarray(x).astype(dtype) if np.asarray(x).dtype.kind == "f" else x for x in arguments]
    numbers = [x[()] if not np.ndim(x) else x for x in arguments]
    expected = expected_of(kernel, numbers)

    @tj.dlaccelerate
    def fun(*given):
        found = kernel(*given)
        return found if isinstance(found, tuple) else (found,)

    for _ in range(4):
        for found, right in zip(fun(*map(np.asarray, arguments)), expected, strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_allclose(np.asarray(found), right, rtol=1e-5 if dtype == "float32" else 1e-12)
    assert fun.stats.hits == 2 and fun.stats.launches == 1


def test_one_text_serves_all_sizes():
    fun = tj.dlaccelerate(lambda x: smooth(x) * 2)
    for n in (5, 8):
        for _ in range(3):
            fun(np.arange(float(n)))
    assert fun.stats.programs == 2 and fun.stats.kernels == 2
    assert fun.source().count("checked_index") == 4  # y[0], x[0], y[-1], x[n - 1]


def test_names_are_constants_from_the_definition_on():
    factor = 2.0

    @tj.kernel
    def scaled(x, y):
        for i in range(len(x)):
            y[i] = x[i] * factor

    factor = 5.0
    fun = tj.dlaccelerate(lambda x: scaled(x))
    for _ in range(3):
        assert fun(np.ones(2)).tolist() == [2.0, 2.0]


def test_indices_are_checked():
    fun = tj.dlaccelerate(lambda x, index: taken(x, index))
    x = np.array([1.0, 2.0, 3.0])
    for index in ([0, 1, 2], [2, -1, -3], [1, 1, 1], [2, 0, 2]):
        assert fun(x, np.array(index)).tolist() == x[index].tolist()
    for index in ([0, 3, 1], [-4, 0, 0], [10**12, 0, 0]):
        with pytest.raises(BoundsError):
            fun(x, np.array(index))
        with pytest.raises(BoundsError):
            taken(x, np.array(index))
    assert fun(x, np.array([0, 0, 0])).tolist() == [1.0] * 3


def test_gradients():
    @tj.kernel
    def smooth_back(dy, dx):
        n = dy.shape[0]
        dx[0] += dy[0]
        dx[n - 1] += dy[n - 1]
        for i in range(1, n - 1):
            for j in range(i - 1, i + 2):
                dx[j] += dy[i] / WEIGHT

    @tj.custom_gradient
    def smoothed(x):
        return smooth(x), None

    @smoothed.backward
    def _(_, dy):
        return smooth_back(dy)

    tj.testing.check_gradients(lambda x: (smoothed(x) ** 2).sum(), X)
    fun = tj.dlaccelerate(lambda x: tj.dlgradient((smoothed(x) ** 2).sum(), x))
    expected = tj.dlfeval(fun.function, X)
    for _ in range(3):
        assert np.allclose(fun(X), expected)
    with pytest.raises(GradientError, match=r"smooth: a kernel has no derivative"):
        tj.dlfeval(lambda x: tj.dlgradient(smooth(x).sum(), x), X)


def bodies():
    """Return statements that no kernel can have, with what the message says of them."""
    return {
        "y[:] = 1": "'y[:]'",
        "y[0] = x": "the whole array 'x'",
        "y[0] = x[0, 0]": "no element of x",
        "y = x[0]": "an assignment to the array 'y'",
        "x[0] = y[0]": "an assignment to the input 'x'",
        "y[0] = sum(1, 2)": "'sum(1, 2)'",
        "y[0] = unknown": "'unknown'",
        "for v in x: y[0] = v": "a loop over 'x'",
        "return x[0]": "a result",
        "raise ValueError": "'raise'",
        "with x: pass": "'with'",
        "y[0] = [1][0]": "'[1][0]'",
        "y[0] = np.inf": "not finite",
        "y[0] = 1j": "'1j'",
        "assert x[0]": "'assert'",
        "y[0] = (lambda: 1)()": "lambda",
    }


@pytest.mark.whole("messages")
@pytest.mark.parametrize("body", bodies())
def test_what_a_kernel_cannot_have(body, tmp_path):
    file = tmp_path / "loops.py"
    file.write_text(f"import numpy as np\n\n\ndef loops(x, y):\n    {body}\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    kernel = tj.kernel(names["loops"])
    with pytest.raises(ArgumentError, match=re.escape(bodies()[body])) as caught:
        kernel(np.ones(3))
    assert f"{file}:5" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["neg", "transpose", "reshape", "matmul", "cast", "pad", "cond", "sort", "scan", "sum"]
)
def test_a_kernel_whose_name_an_op_has(name, tmp_path):
    """No pass takes it for that op: x - neg(y) is x + y for the op alone."""
    file = tmp_path / "loops.py"
    file.write_text(f"def {name}(x, y):\n    for i in range(x.shape[0]):\n        y[i] = 3 * x[i] + 1\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    kernel = tj.kernel(names[name])
    fun = tj.dlaccelerate(lambda x: (x - kernel(x), kernel(kernel(x)), kernel(x + 1).sum()))
    x = np.arange(4.0)
    for _ in range(4):
        first, second, third = fun(x)
        np.testing.assert_array_equal(first, x - (3 * x + 1))
        np.testing.assert_array_equal(second, 3 * (3 * x + 1) + 1)
        assert third.item() == (3 * (x + 1) + 1).sum()
    assert fun.stats.hits == 2


def test_a_file_that_changed(tmp_path):
    """The text that is compiled is that of the function, or there is an error."""
    file = tmp_path / "loops.py"
    loops = "    def loops(x, y):\n        for i in range(len(x)):\n            y[i] = x[i] + k\n"
    text = f"def around(k):\n{loops}    return loops\n"
    file.write_text(text)
    names = {}
    exec(compile(text, str(file), "exec"), names)
    assert tj.kernel(names["around"](2.0))(np.ones(2)).tolist() == [3, 3]
    file.write_text(text.replace("+", "-"))
    linecache.checkcache(str(file))
    with pytest.raises(ArgumentError) as caught:
        tj.kernel(names["around"](2.0))
    assert str(caught.value).startswith(
        f"kernel: function: around.<locals>.loops is not what {file} has in line 2: the file changed after it was "
        "read, or the function comes from exec; run it anew, or define it in a file or a notebook."
    )
