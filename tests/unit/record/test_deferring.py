# SPDX-License-Identifier: BSD-3-Clause
"""Operands that answer an operator themselves, beside NumPy."""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

# The functions below note what they see.
pytestmark = pytest.mark.filterwarnings("ignore::tracejit.errors.LostChangeWarning")
_REFLECTED = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "divmod", "and", "or", "xor", "lshift",
    "rshift",
)  # fmt: skip
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
_IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "imatmul", "iand", "ilshift")
_OF_INTEGERS = frozenset({"and", "or", "xor", "lshift", "rshift", "iand", "ilshift"})


def _answering(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: (type(self).__name__, name, np.asarray(other).tolist())


_METHODS = {
    f"__{name}__": _answering(name)
    for name in (*_REFLECTED, *_COMPARED, *[f"r{name}" for name in _REFLECTED])
}


def _by_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    shown = [type(x).__name__ if x is self else np.asarray(x).tolist() for x in inputs]
    return (type(self).__name__, ufunc.__name__, method, shown, "out" in options)


def _elements(self: Any, dtype: Any = None, copy: Any = None) -> np.ndarray:
    return np.array([1.0, 2.0])


Placeless = type("Placeless", (), {**_METHODS, "__array_ufunc__": None})
Bare = type("Bare", (), {"__array_ufunc__": None})
Overriding = type("Overriding", (), {"__array_ufunc__": _by_ufunc})
Prior = type("Prior", (), {**_METHODS, "__array_priority__": 10.0})
PriorArray = type("PriorArray", (), {**_METHODS, "__array_priority__": 10.0, "__array__": _elements})
Plain = type("Plain", (), _METHODS)


def _operation(name: str) -> Callable[[Any, Any], Any]:
    return divmod if name == "divmod" else getattr(operator, f"__{name}__")  # type: ignore[no-any-return]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        result = call()
    except TypeError:
        return TypeError
    return result if isinstance(result, (tuple, bool)) else np.asarray(result).tolist()


def _outcomes(operation: Callable[[Any], Any], x: np.ndarray, is_number: bool) -> list[Any]:
    """Return the outcomes with a dlarray, and in a function that is evaluated, recorded and replayed."""
    found = []

    def noted(x: Any) -> Any:
        found.append(_outcome(lambda: operation(x[0] if is_number else x)))
        return x * 1

    plain = tj.dlarray(x.copy())
    outcomes = [_outcome(lambda: operation(plain[0] if is_number else plain))]
    tj.dlfeval(noted, x.copy())
    fast = tj.dlaccelerate(noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)  # it keeps numbers that vary
        for _ in range(2):
            fast(x.copy())
    return outcomes + found


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "is_number"),
    [
        (name, is_number)
        for name in (*_REFLECTED, *_COMPARED, *_IN_PLACE)
        for is_number in (False, True)
        if not (is_number and "matmul" in name)  # numbers of NumPy have no @
    ],
)
@pytest.mark.parametrize("kind", [Placeless, Bare, Overriding, Prior, PriorArray])
def test_operands_answer_as_with_numpy(kind: type, name: str, is_number: bool) -> None:
    x = np.array([3, 2]) if name in _OF_INTEGERS else np.array([3.0, 2.0])
    other, operation = kind(), _operation(name)
    expected = _outcome(lambda: operation(x[0] if is_number else x.copy(), other))
    for found in _outcomes(lambda x: operation(x, other), x, is_number):
        assert found == expected
    if name not in _IN_PLACE and (kind is Overriding or name in dir(kind)):
        reflected = _outcome(lambda: operation(other, x[0] if is_number else x.copy()))
        for found in _outcomes(lambda x: operation(other, x), x, is_number):
            assert found == reflected


@pytest.mark.parametrize("name", ["add", "truediv", "pow", "iadd"])
def test_an_object_that_is_no_array_answers_for_a_number(name: str) -> None:
    x, operation = np.array([3.0, 2.0]), _operation(name)
    for found in _outcomes(lambda x: operation(x, Plain()), x, is_number=True):
        assert found == operation(x[0], Plain())
    with pytest.raises(tj.ArgumentError, match="expected an array, a number or"):
        operation(tj.dlarray(x), Plain())


def test_a_function_of_numpy_asks_the_other_operand() -> None:
    expected = ("Overriding", "multiply", "__call__", [[3.0, 2.0], "Overriding"], False)
    for found in _outcomes(lambda x: np.multiply(x, Overriding()), np.array([3.0, 2.0]), is_number=False):
        assert found == expected


def test_in_place_operators_name_the_operand_that_has_no_place() -> None:
    x = tj.dlarray(np.ones(2))
    with pytest.raises(tj.ArgumentError, match=r"not .*Placeless"):
        x += Placeless()


def test_products_with_sparse_matrices_are_those_of_scipy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix, x = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])), np.array([1.0, 2.0])
    np.testing.assert_array_equal(tj.dlarray(x) @ matrix, x @ matrix)


def test_a_class_is_no_operand_although_its_objects_may_answer() -> None:
    for kind in (tj.dlarray, type("Answering", (), {"__array_priority__": 5000.0})):
        for call in (lambda kind=kind: tj.dlarray([1.0]) + kind, lambda kind=kind: kind * tj.dlarray([1.0])):
            with pytest.raises(tj.ArgumentError, match="expected an array, a number"):
                call()


@pytest.mark.parametrize(
    "repeated",
    [
        lambda x: [0] * (x > 0).sum(),
        lambda x: (x > 0).sum() * [x[0], None],
        lambda x: (1, 2) * x.argmax() + ("a",) * x.argmax(),
        lambda x: "ab" * x.argmax(),
        lambda x: operator.imul((x > 0).sum(), [1, 2]),
    ],
)
def test_integers_that_are_computed_repeat_sequences(repeated: Callable[[Any], Any]) -> None:
    function = tj.dlaccelerate(repeated, max_variants=20)
    for x in [np.array([1.0, 3.0, -1.0]), np.array([1.0, 2.0, 3.0])] * 3:
        want = repeated(x)
        for found in (function(tj.dlarray(x)), tj.dlfeval(repeated, tj.dlarray(x))):
            assert type(found) is type(want) and found == want


def test_arrays_and_other_numbers_multiply_sequences() -> None:
    for x, k in ((np.array([1.0, 2.0]), [3, 4]), (np.array(2), [3, 4]), (np.array([2]), (3,))):
        assert (tj.dlfeval(lambda x, k: k * x, tj.dlarray(x), k)).tolist() == (k * x).tolist()
