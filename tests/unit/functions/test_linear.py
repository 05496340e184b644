# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products and what is made of them: values against NumPy, labels, adjoints, messages, the kernel."""

import string

import numpy as np
import pytest
from tracejit.kernels.loops import gemm

from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError
from tracejit.functions import contraction, linear, reductions
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS
from tracejit.record.recorder import Recorder

PRODUCTS = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((2, 3), (5, 3, 2)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((4, 0, 3), (3, 2)),
]
SUBSCRIPTS = [
    "ij->ji", "ij->", "ii->i", "ii", "iij->j", "ijij->ij", "iii->i", "i,i->", "i,i->i", "i,j->ij", "ij,ij->i",
    "ij,jk->ik", "ij,jk", "ba", "ij,kj->ki", "ki,kj->ij", "ij,j->i", "ij,k->", "ijk,jil->kl", "bij,bjk->bik",
    "bij,jk->bik", "ab,abc->c", "abcd,ebad->ce", "ij,jk,kl->il", "i,ij,j->", "a,b,c->abc", "ij,ik,il->jkl",
    "...ij,...jk->...ik", "...i->...", "i...,i...->...", "...ii->...i", "...,...", " i j , j k -> k i ",
]  # fmt: skip


def draw(shape, dtype="float64", seed=0):
    """Return small integers in a dtype, so that products are exact in any order."""
    dtype = np.dtype(dtype)
    return np.random.default_rng(seed).integers(0 if dtype.kind in "bu" else -3, 4, shape).astype(dtype)


def same(expected, result):
    """Assert that a dlarray holds exactly the expected values, shape and dtype."""
    expected = np.asarray(expected)
    assert type(result) is dlarray
    assert result._data.shape == expected.shape
    assert result._data.dtype == expected.dtype
    np.testing.assert_array_equal(result._data, expected)


def operands_of(subscripts):
    """Return arrays for the terms of `subscripts`; the last operand has fewer axes for its '...'."""
    terms = subscripts.replace(" ", "").split("->")[0].split(",")
    arrays = []
    for number, term in enumerate(terms):
        further = (5,) if number and number == len(terms) - 1 else (1 + number, 5)
        shape = [2 + ord(letter) % 3 for letter in term.replace(".", "")]
        at = len(term.split("...")[0]) if "..." in term else 0
        shape[at:at] = further if "..." in term else ()
        arrays.append(draw(shape, seed=number))
    return arrays


def check_slopes(function, reference, arrays):
    """Compare the first derivatives with complex step, the second with differences of it."""
    generator = np.random.default_rng(7)
    arrays = [generator.normal(size=array.shape) for array in arrays]
    weight = generator.normal(size=np.shape(reference(*arrays)))
    directions = [generator.normal(size=array.shape) for array in arrays]

    def slopes(*xs):
        grads = dlgradient(reductions.sum(function(*xs) * weight), *xs)
        return grads if isinstance(grads, tuple) else (grads,)

    def curves(*xs):
        along = sum(reductions.sum(g * d) for g, d in zip(slopes(*xs), directions, strict=True))
        grads = dlgradient(along, *xs)
        return grads if isinstance(grads, tuple) else (grads,)

    def independent(xs):
        found = []
        for number, x in enumerate(xs):
            slope = np.empty_like(x)
            for place in np.ndindex(x.shape):
                moved = [array.astype(complex) for array in xs]
                moved[number][place] += 1e-30j
                slope[place] = np.sum(np.asarray(reference(*moved)).imag * weight) / 1e-30
            found.append(slope)
        return found

    for have, want in zip(dlfeval(slopes, *map(dlarray, arrays)), independent(arrays), strict=True):
        np.testing.assert_allclose(have._data, want, rtol=1e-12, atol=1e-12)
    step = 1e-4
    ahead, behind = (
        independent([x + sign * step * d for x, d in zip(arrays, directions, strict=True)])
        for sign in (1, -1)
    )
    for have, after, before in zip(dlfeval(curves, *map(dlarray, arrays)), ahead, behind, strict=True):
        np.testing.assert_allclose(have._data, (after - before) / (2 * step), rtol=1e-6, atol=1e-6)


# Values


@pytest.mark.sampled
@pytest.mark.parametrize(("first", "second"), PRODUCTS)
@pytest.mark.parametrize("dtypes", [("float64",) * 2, ("float32",) * 2, ("bool",) * 2, ("int32", "uint8"),
                                    ("int8", "float32"), ("bool", "float64")])  # fmt: skip
def test_matmul_is_that_of_numpy(first, second, dtypes):
    """Vectors, batches that broadcast, empty axes; NumPy's promotion."""
    x, y = draw(first, dtypes[0]), draw(second, dtypes[1], 1)
    same(x @ y, linear.matmul(x, y))
    if len(second) < 3:
        same(np.dot(x, y), linear.dot(x, y))


def test_special_values_go_through_products():
    """NaN and infinities are not masked."""
    x = np.array([[np.nan, 0.0], [np.inf, 1.0]])
    y = np.array([[1.0, 2.0], [0.0, -1.0]])
    np.testing.assert_array_equal(linear.matmul(x, y)._data, [[np.nan, np.nan], [np.inf, np.inf]])
    assert np.isnan(linear.matmul(np.array([np.inf]), np.array([0.0]))._data)


def test_transposed_and_strided_operands():
    """The layout of an operand does not matter."""
    x, y = draw((4, 6)), draw((4, 6), seed=1)
    same(x.T @ y, linear.matmul(x.T, y))
    same(x[::-1, ::2] @ y[:3], linear.matmul(x[::-1, ::2], y[:3]))


def test_scalars_multiply():
    """dot and inner of a scalar are products; matmul refuses."""
    x = draw((2, 3))
    same(x * 3.0, linear.dot(x, 3.0))
    same(2.0 * x, linear.inner(2.0, x))
    same(np.vdot(2.0, 4.0), linear.vdot(2.0, 4.0))
    same(np.outer(2.0, x), linear.outer(2.0, x))


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_products_of_many_axes(dtype):
    """dot, inner, outer, vdot and tensordot as NumPy's."""
    x, y = draw((2, 3, 4), dtype), draw((5, 4, 2), dtype, 1)
    same(np.dot(x, y), linear.dot(x, y))
    same(np.inner(x, x), linear.inner(x, x))
    same(np.outer(x, y), linear.outer(x, y))
    same(np.vdot(x, np.transpose(x, (1, 2, 0))), linear.vdot(x, np.transpose(x, (1, 2, 0))))
    if dtype != "bool":  # np.tensordot of bools is np.dot of them, which has no batch
        for axes in (0, 1, 2, (-1, 1), ((0, 2), (2, 1)), ((2, 0), (1, 2)), ((), ())):
            other = draw((4, 2, 3) if axes == 1 else (3, 4, 2), dtype) if isinstance(axes, int) else y
            same(np.tensordot(x, other, axes), linear.tensordot(x, other, axes))


@pytest.mark.sampled
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_is_that_of_numpy(subscripts):
    """Explicit and implicit results, diagonals, sums, products, '...', three operands."""
    arrays = operands_of(subscripts)
    same(np.einsum(subscripts, *arrays), contraction.einsum(subscripts, *arrays))
    same(np.einsum(subscripts, *arrays), contraction.einsum(subscripts, *arrays, optimize="optimal"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float32"])
def test_einsum_keeps_the_common_dtype(dtype):
    """Sums are not widened, as in NumPy; bools are or of ands."""
    x, y = draw((2, 3), dtype), draw((3, 2), dtype, 1)
    for subscripts, arrays in (
        ("ij->", (x,)),
        ("ij,jk", (x, y)),
        ("ij,ji->", (x, y)),
        ("ij,ki,ij->k", (x, y, x)),
    ):
        same(np.einsum(subscripts, *arrays), contraction.einsum(subscripts, *arrays))


def test_einsum_broadcasts_axes_of_size_1():
    """An axis of size 1 meets any size of its letter, and empty axes sum to 0."""
    for first, second in (
        ((2, 1), (3, 4)),
        ((2, 3), (1, 4)),
        ((2, 0), (0, 4)),
        ((2, 0), (1, 4)),
        ((1, 1), (1, 1)),
    ):
        x, y = draw(first), draw(second, seed=1)
        same(np.einsum("ij,jk->ik", x, y), contraction.einsum("ij,jk->ik", x, y))
    chain = [np.ones((2, 0)), np.ones((0, 4)), np.ones((4, 3))]
    same(np.zeros((2, 3)), contraction.einsum("ij,jk,kl->il", *chain))


def ops_of(function, *arrays):
    """Return the names of the ops that `function` records."""
    with Recorder("test") as recorder:
        function(*[recorder.input(dlarray(array)) for array in arrays])
    return [node.op.name for node in recorder.graph.nodes]


def test_contractions_are_matrix_products():
    """Shared letters that are summed become one product; terms without such letters stay elementwise."""
    x, y = np.ones((2, 3)), np.ones((3, 4))
    assert ops_of(lambda x, y: contraction.einsum("ij,jk->ik", x, y), x, y) == ["matmul"]
    assert ops_of(lambda x, y: contraction.einsum("ij,kj->ik", x, y), x, y.T) == ["transpose", "matmul"]
    assert ops_of(lambda x, y: contraction.einsum("ij,ij->i", x, y), x, x) == ["mul", "sum"]
    assert ops_of(linear.matmul, x[0], x[1]) == ["mul", "sum"]
    chain = ops_of(lambda x, y, z: contraction.einsum("ij,jk,k->i", x, y, z), x, y, np.ones(4))
    assert chain.count("matmul") == 2


def test_matrix_of_many_rows_is_one_product():
    """Batch axes are rows where the second operand has none, so that its adjoint is one product, too."""
    x, y = np.ones((5, 2, 3)), np.ones((3, 4))
    assert ops_of(linear.matmul, x, y) == ["reshape", "matmul", "reshape"]


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (0, 3), (1, 1), (4,), (0,)])
@pytest.mark.parametrize("k", [-4, -2, -1, 0, 1, 2, 4])
def test_diagonals_and_triangles(shape, k):
    """diag, trace, tril and triu as NumPy's, for diagonals within and without."""
    x = draw(shape)
    same(np.diag(x, k), linear.diag(x, k))
    if len(shape) == 2:
        same(np.trace(x, k), linear.trace(x, k))
        same(np.tril(x, k), linear.tril(x, k))
        same(np.triu(x, k), linear.triu(x, k))


def test_diagonals_of_further_axes():
    """trace takes the first two axes, triangles the last two; integers keep what NumPy keeps."""
    x = draw((3, 3, 4), "int32")
    same(np.trace(x), linear.trace(x))
    same(np.tril(x), linear.tril(x))
    same(np.triu(draw((2, 3), "bool")), linear.triu(draw((2, 3), "bool")))
    same(np.diag(draw((3,), "int8"), 1), linear.diag(draw((3,), "int8"), 1))


# Labels


@pytest.mark.parametrize(
    ("first", "second", "format"),
    [
        (((2, 3), "BC"), ((3, 4), None), "BU"),
        (((2, 3), None), ((3, 4), "CB"), "UB"),
        (((2, 3), "CB"), ((3, 4), "BT"), "CT"),
        (((2, 3), None), ((3, 4), None), None),
        (((5, 2, 3), "BSC"), ((3, 4), None), "BSU"),
        (((5, 2, 3), "BSU"), ((5, 3, 4), "BUC"), "BSC"),
        (((5, 2, 3), "UTS"), ((5, 3, 4), "BSC"), "BTC"),
        (((2, 3), "SU"), ((5, 3, 4), "BUC"), "BSC"),
        (((3,), "C"), ((3, 4), None), "U"),
        (((3,), "C"), ((3, 4), "CB"), "B"),
        (((2, 3), "BC"), ((3,), None), "B"),
        (((2, 3), "BC"), ((3,), "C"), "B"),
        (((3,), "C"), ((3,), "C"), None),
    ],
)
def test_labels_of_a_product(first, second, format):
    """Rows from the first, columns from the second, batch axes from both; U where there is none."""
    x, y = (dlarray(draw(*operand[:1]), operand[1]) for operand in (first, second))
    result = linear.matmul(x, y)
    same(x._data @ y._data, result)
    assert result._format == format
    if y._data.ndim < 3:
        assert linear.dot(x, y)._format == format


def test_labels_of_einsum():
    """The label of a letter is that of the axes that have it."""
    x, y = dlarray(draw((2, 3)), "BC"), dlarray(draw((3, 4)), "UT")
    assert contraction.einsum("ij,jk->ki", x, y)._format == "TB"
    assert contraction.einsum("ij,jk->j", x, y)._format == "C"
    assert contraction.einsum("ij,jk->", x, y)._format is None
    assert contraction.einsum("ij,jk->ik", x, y._data)._format == "BU"
    assert contraction.einsum("ii->i", dlarray(np.ones((2, 2)), "UC"))._format == "C"
    assert contraction.einsum("i...->...", x)._format == "C"
    assert linear.tensordot(x, y, ("C", 0))._format == "BT"
    assert linear.outer(dlarray(np.ones(2), "B"), dlarray(np.ones(3), "C"))._format == "BC"
    assert linear.inner(x, dlarray(np.ones((5, 3)), "TC"))._format == "BT"


def test_labels_of_diagonals():
    """trace keeps the other labels, triangles keep all, diag none."""
    x = dlarray(draw((3, 3, 4)), "SSB")
    assert linear.trace(x)._format == "B"
    assert linear.tril(x)._format == "SSB"
    assert linear.triu(x)._format == "SSB"
    assert linear.diag(dlarray(draw((3, 3)), "SC"))._format is None


# Adjoints


@pytest.mark.parametrize(("first", "second"), PRODUCTS)
def test_matmul_gradients(first, second):
    """First and second derivatives of products, batch axes summed."""
    check_slopes(linear.matmul, np.matmul, [draw(first), draw(second)])


@pytest.mark.sampled
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_gradients(subscripts):
    """First and second derivatives of every kind of term."""
    check_slopes(
        lambda *xs: contraction.einsum(subscripts, *xs),
        lambda *xs: np.einsum(subscripts, *xs),
        operands_of(subscripts),
    )


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("dot", ((2, 3), (2, 3, 4))), ("inner", ((2, 3), (4, 3))), ("outer", ((2,), (3, 2))),
     ("tensordot", ((2, 3, 4), (3, 4))), ("trace", ((3, 3, 2),)), ("diag", ((3,),)), ("diag", ((2, 3),)),
     ("tril", ((2, 3),)), ("triu", ((2, 3, 3),))],
)  # fmt: skip
def test_other_gradients(name, shapes):
    """First and second derivatives of the other functions."""
    check_slopes(getattr(linear, name), getattr(np, name), [draw(shape) for shape in shapes])


def test_masked_elements_have_the_slope_0_at_infinity():
    """Triangles and diagonals are selected, not multiplied by 0."""
    x = np.array([[1.0, np.inf], [2.0, 3.0]])
    same([[1.0, 0.0], [2.0, 3.0]], linear.tril(x))
    same([[np.inf, 0.0], [0.0, 1.0]], linear.diag([np.inf, 1.0]))


# Messages

LETTERS = string.ascii_letters
W = np.ones((4, 3))
B = dlarray(np.ones((4, 8)), "CB")


@pytest.mark.whole("messages")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linear.matmul(W, B), DimsError,
         "matmul: x has 3 columns but y has 4(C) rows in operands of 4x3 and 4(C) x 8(B); these must be "
         "equal. Transpose x (x.T @ y)?"),
        (lambda: linear.matmul(B, np.ones((5, 8))), DimsError,
         "matmul: x has 8(B) columns but y has 5 rows in operands of 4(C) x 8(B) and 5x8; these must be "
         "equal. Transpose y (x @ y.T)?"),
        (lambda: linear.matmul(np.ones((2, 3)), np.ones((7, 2))), DimsError,
         "matmul: x has 3 columns but y has 7 rows in operands of 2x3 and 7x2; these must be equal. "
         "Swap the operands (y @ x)?"),
        (lambda: linear.matmul(np.ones((2, 3)), np.ones((7, 5))), DimsError,
         "matmul: x has 3 columns but y has 7 rows in operands of 2x3 and 7x5; these must be equal. "
         "Check the sizes of both."),
        (lambda: linear.matmul(np.ones((6, 2, 3)), np.ones((6, 2, 5))), DimsError,
         "matmul: x has 3 columns but y has 2 rows in operands of 6x2x3 and 6x2x5; these must be equal. "
         "Transpose x (x.swapaxes(-1, -2) @ y)?"),
        (lambda: linear.matmul(np.ones((6, 2, 3)), np.ones((6, 5, 3))), DimsError,
         "matmul: x has 3 columns but y has 5 rows in operands of 6x2x3 and 6x5x3; these must be equal. "
         "Transpose y (x @ y.swapaxes(-1, -2))?"),
        (lambda: linear.matmul(np.ones((6, 2, 3)), np.ones((5, 3, 2))), DimsError,
         "matmul: the batch axes (all but the last two) of operands of 6x2x3 and 5x3x2 do not align; aligned "
         "from the last, their sizes must be equal or 1."),
        (lambda: linear.matmul(2.0, W), DimsError,
         "matmul: x is a scalar, but a product of matrices needs axes; use x * y."),
        (lambda: linear.matmul(W, np.ones(5)), DimsError,
         "matmul: x (4x3) has 3 columns, but y (5) has 5 elements; these must be equal."),
        (lambda: linear.matmul(dlarray(np.ones(5), "C"), W), DimsError,
         "matmul: x (5(C)) has 5 elements, but y (4x3) has 4 rows; these must be equal."),
        (lambda: linear.matmul(dlarray(np.ones((2, 2)), "BC"), dlarray(np.ones((2, 2)), "CB")), DimsError,
         "matmul: the result of operands of 2(B) x 2(C) and 2(C) x 2(B) would be labelled 'BB', with B 2 "
         "times, but C, B and T occur once; drop the labels of one operand with stripdims."),
        (lambda: linear.matmul(dlarray(np.ones((2, 2, 2)), "BSS"), dlarray(np.ones((2, 2, 2)), "TSS")),
         DimsError,
         "matmul: an axis labelled B meets an axis labelled T in operands of 2(B) x 2(S) x 2(S) and "
         "2(T) x 2(S) x 2(S); transpose one of them, or drop the labels with stripdims."),
        (lambda: OPS["matmul"].infer(Aval((3,), "C", np.dtype("f8")), Aval((3, 2), None, np.dtype("f8"))),
         DimsError,
         "matmul: x (3(C)) has 1 axes, but a matrix has at least 2; reshape it to one row or one column."),
        (lambda: linear.dot(W, np.ones((5, 4, 2))), DimsError,
         "dot: axis 1 of x (4x3) has size 3, but axis 1 of y (5x4x2), over which they are multiplied and "
         "summed, has size 4; these must be equal."),
        (lambda: linear.vdot(W, np.ones(11)), DimsError,
         "vdot: axis 0 of x (12) has size 12, but axis 0 of y (11), over which they are multiplied and "
         "summed, has size 11; these must be equal."),
        (lambda: linear.tensordot(W, W, (0, 1, 2)), ArgumentError,
         "tensordot: axes must be a number or a pair (axes of x, axes of y), not (0, 1, 2)."),
        (lambda: linear.tensordot(W, W, "C"), ArgumentError,
         "tensordot: axes must be a number or a pair (axes of x, axes of y), not 'C'."),
        (lambda: linear.tensordot(W, W, 3), BoundsError,
         "tensordot: axes=3, but the operands of 4x3 and 4x3 have 2 and 2 axes; give a number from 0 to the "
         "smaller."),
        (lambda: linear.tensordot(W, W, ((0, 0), (0, 1))), DimsError,
         "tensordot: axes=((0, 0), (0, 1)) pairs the axes (0, 0) of x with (0, 1) of y; name the same "
         "number of each, none twice."),
        (lambda: contraction.einsum(W, "ij->i"), ArgumentError,
         "einsum: subscripts come first, as a string such as 'ij,jk->ik', not ndarray; write lists of axis "
         "numbers as letters."),
        (lambda: contraction.einsum("i1->i", W), ArgumentError,
         "einsum: 'i1' in subscripts 'i1->i' is not made of letters with at most one '...'."),
        (lambda: contraction.einsum("ij->i->j", W), ArgumentError,
         "einsum: 'i->j' in subscripts 'ij->i->j' is not made of letters with at most one '...'."),
        (lambda: contraction.einsum("ij,jk->ik", W), ArgumentError,
         "einsum: subscripts 'ij,jk->ik' have 2 terms for 1 operands; separate one term for each operand by "
         "commas."),
        (lambda: contraction.einsum("ijk->i", W), DimsError,
         "einsum: the term 'ijk' names 3 axes, but operand 0 is of 4x3, with 2 axes; write one letter for "
         "each axis, or '...' for further ones."),
        (lambda: contraction.einsum("i->i", B), DimsError,
         "einsum: the term 'i' names 1 axes, but operand 0 is of 4(C) x 8(B), with 2 axes; write one letter "
         "for each axis, or '...' for further ones."),
        (lambda: contraction.einsum(f"{LETTERS[:51]}...->...", np.ones((1,) * 53)), ArgumentError,
         f"einsum: subscripts '{LETTERS[:51]}...->...' and its '...' need more letters than there are."),
        (lambda: contraction.einsum("...i->i", W), ArgumentError,
         "einsum: '...' stands for 1 axes in the operands of '...i->i', but the result has none; add '...' "
         "to the result, or name the axes to sum over them."),
        (lambda: contraction.einsum("ij->ii", W), ArgumentError,
         "einsum: the letter 'i' of subscripts 'ij->ii' occurs twice in the result."),
        (lambda: contraction.einsum("ij->k", W), ArgumentError,
         "einsum: the letter 'k' of subscripts 'ij->k' is in no operand."),
        (lambda: contraction.einsum("ij,jk->ik", B, W), DimsError,
         "einsum: axes of sizes 8 and 4 have the letter 'j' in operands of 4(C) x 8(B) and 4x3 with the "
         "letters ij,jk; axes of one letter must be equal in size."),
        (lambda: contraction.einsum("ii->i", W), DimsError,
         "einsum: axes of sizes 4 and 3 have the letter 'i' in operands of 4x3 with the letters ii; axes of "
         "one letter must be equal in size."),
        (lambda: contraction.einsum("ii->i", np.ones((1, 3))), DimsError,
         "einsum: axes of sizes 1 and 3 have the letter 'i' in operands of 1x3 with the letters ii; axes of "
         "one letter must be equal in size."),
        (lambda: linear.trace(np.ones(3)), DimsError,
         "trace: x of 3 has 1 axes, but a matrix has at least 2."),
        (lambda: linear.diag(np.ones((2, 2, 2))), DimsError,
         "diag: x of 2x2x2 must be a vector or a matrix."),
    ],
)  # fmt: skip
def test_messages(call, error, message):
    """Every message names function, sizes with labels, and what to do."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_what_a_product_is_added_to_is_as_large_as_it():
    """matmul_add is made by the compiler, and does not broadcast."""
    x, y = Aval((2, 3), None, np.dtype("f4")), Aval((3, 4), None, np.dtype("f4"))
    for z in (Aval((1, 4), None, np.dtype("f4")), Aval((2, 4), None, np.dtype("f8"))):
        with pytest.raises(DimsError) as caught:
            OPS["matmul_add"].infer(x, y, z)
        assert str(caught.value) == (
            f"matmul_add: z is {z.dtype} of size {z.shape[0]}x4, but the product that is added to it is float32 of "
            "size 2x4; sizes and dtypes must be equal. Use matmul and add, which broadcasts."
        )


def test_types_without_a_product():
    """A type that NumPy has no product of is refused in our words."""
    with pytest.raises(DTypeError, match="matmul: not defined for datetime64"):
        OPS["matmul"].infer(Aval((1, 1), None, np.dtype("M8[s]")), Aval((1, 1), None, np.dtype("M8[s]")))


# What the code generator reads


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
@pytest.mark.parametrize(
    ("first", "second"), [((2, 3), (3, 4)), ((2, 2, 3), (2, 3, 1)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]
)
def test_kernel_computes_what_the_reference_does(first, second, dtype):
    """The loop in kernels/, run as plain Python over flat memory."""
    x, y = draw(first, dtype), draw(second, dtype, 1)
    avals = [Aval(array.shape, None, array.dtype) for array in (x, y)]
    aval = OPS["matmul"].infer(*avals)
    out = np.full(aval.size, 99, aval.dtype)
    gemm.matmul(*OPS["matmul"].emit.numbers(aval, *avals), x.ravel(), y.ravel(), out)
    np.testing.assert_array_equal(out.reshape(aval.shape), OPS["matmul"].numpy(x, y))


def test_record_in_a_graph():
    """Each sample of the record makes a legal graph whose value is the reference's, casts included."""
    for sample in OPS["matmul"].samples:
        for dtypes in (("float64", "float64"), ("int8", "float32")):
            arrays = [draw(shape, dtype) for shape, dtype in zip(sample.shapes, dtypes, strict=True)]
            graph = Graph()
            b = Builder(graph)
            graph.outputs.append(b.matmul(*[b.input(Aval(a.shape, None, a.dtype)) for a in arrays]))
            verify(graph)
            (result,) = evaluate(graph, arrays)
            np.testing.assert_array_equal(result, arrays[0] @ arrays[1])
