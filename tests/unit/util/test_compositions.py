# SPDX-License-Identifier: BSD-3-Clause
"""What messages say to write in place of functions and attributes: computed, and compared with NumPy and SciPy."""

import importlib
import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import ArgumentError, GradientError, TraceError, dlarray
from tracejit.functions.numpy_api import in_python, table
from tracejit.util import compositions
from tracejit.util.compositions import ADVICE, ANY, ATTRIBUTES, COMPOSITIONS, advice

VALUES: dict[str, Any] = {
    "x": np.array([0.9, 0.4, 2.6]),
    "y": np.array([0.7, 1.5, 0.6]),
    "p": np.array([0.2, 0.9, 0.5]),
    "s": np.array([0.3, 1.0, 4.0]),
    "A": np.array([[2.0, 0.3, -1.0], [0.4, 1.5, 0.2], [-0.6, 0.1, 3.0]]),
    "B": np.array([[0.3, 1.3, 0.2], [-1.4, 0.5, 0.9], [0.8, -0.2, 0.4]]),
    "n": np.array([2, 8, 5]),
    "b": np.array([True, False, True]),
    "a": np.array(0.5),
    "h": np.array(1.7),
}
CONSTANTS: dict[str, Any] = {
    "M": VALUES["A"], "np": np, "tj": tj,
}  # fmt: skip


def computed(text: str, names: dict[str, Any]) -> Any:
    """Return the value of an expression of the table, after what stands behind ", where"."""
    expression, _, where = text.partition("; ")[0].partition(", where ")
    scope = dict(names)
    for definition in re.split(r", (?=\w+ = )", where) if where else []:
        name, _, value = definition.partition(" = ")
        scope[name] = eval(value, scope)
    return eval(expression, scope)


def names_of(row: str, call: str) -> dict[str, Any]:
    """Return the arrays that a row is computed with."""
    values = VALUES
    if "scipy" in call:
        package = call.partition("(")[0].rpartition(".")[0]
        importlib.import_module(re.match(r"scipy\.\w+(\.distance)?", package)[0])  # type: ignore[index]
        return values | CONSTANTS | {"scipy": importlib.import_module("scipy")}
    return values | CONSTANTS


def wrapped(names: dict[str, Any]) -> dict[str, Any]:
    """Return names with dlarrays in place of the arrays that are no constants."""
    return {name: dlarray(x) if name in VALUES else x for name, x in names.items()}


def available(call: str) -> bool:
    """Return whether this release of NumPy or SciPy has what a row calls."""
    parts = call.partition("(")[0].split(".")
    if parts[0] == "scipy":
        pytest.importorskip("scipy")
        package = importlib.import_module(".".join(parts[:2]))
        return len(parts) == 4 or hasattr(package, parts[2])
    found: Any = np
    for part in parts[1:]:
        found = getattr(found, part, None)
    return found is not None


ROWS = {**COMPOSITIONS, **{f"x.{name}": row for name, row in ATTRIBUTES.items()}}


@pytest.mark.sampled
@pytest.mark.parametrize("row", ROWS)
def test_an_expression_gives_what_the_call_gives(row: str) -> None:
    call, text = ROWS[row]
    if row in COMPOSITIONS and not available(call):
        pytest.skip(f"this release has no {row}")
    names = names_of(row, call)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # a release tells users of np.fix to write np.trunc, too
        expected = computed(call, names)
    for result in (computed(text, wrapped(names)), recorded(row, text, names)):
        if isinstance(expected, bytes):
            assert result == expected
            continue
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-12, atol=1e-15)


def recorded(row: str, text: str, names: dict[str, Any]) -> Any:
    """Return the value of an expression while it is recorded."""
    arrays = {name: names[name] for name in VALUES}
    return tj.dlfeval(lambda values: computed(text, {**names, **values}), arrays)


@pytest.mark.whole("messages")
@pytest.mark.parametrize("row", COMPOSITIONS)
def test_the_message_names_the_function_and_the_expression(row: str) -> None:
    call, text = COMPOSITIONS[row]
    if not available(call):
        pytest.skip(f"this release has no {row}")
    names = names_of(row, call)
    arrays = {name: names[name] for name in VALUES}
    refused: list[str] = []

    def step(values: Any) -> None:
        scope = {**names, **values}
        try:
            result = computed(call, scope)
            tj.dlgradient(result.sum(), values["A"])
        except (ArgumentError, GradientError, TraceError) as error:
            refused.append(str(error))

    tj.dlfeval(step, arrays)
    if refused:
        assert refused[0].startswith(f"{row}: ") and f"; {call} is {text}." in refused[0]
    else:
        assert is_answered(row)


def is_answered(row: str) -> bool:
    """Return whether a function works on dlarrays, here, by what it calls, or in Python."""
    package, _, name = row.rpartition(".")
    found = getattr(importlib.import_module(package.replace("np", "numpy", 1)), name, None)
    return found in table.FUNCTIONS or row in ANSWERED_BY_OTHERS or in_python.is_pure(found, row)


ANSWERED_BY_OTHERS: set[str] = set()


def test_attributes_of_an_ndarray_exist_or_say_what_works() -> None:
    x = dlarray([[1.0, 2.0]])
    for name in dir(np.ndarray):
        if name.startswith("_") or hasattr(x, name):
            continue
        with pytest.raises(
            AttributeError, match=rf"^'dlarray' object has no attribute '{name}': .+\.$"
        ) as caught:
            getattr(x, name)
        text = f"{' is '.join(ATTRIBUTES[name])}" if name in ATTRIBUTES else ADVICE[name]
        assert text in str(caught.value)
        assert name not in dir(x) and not hasattr(dlarray, name)


def test_there_is_advice_about_what_is_not_there_only() -> None:
    assert not set(ATTRIBUTES) & set(ADVICE)
    assert not {name for name in (*ATTRIBUTES, *ADVICE) if hasattr(dlarray([[1.0]]), name)}


def test_a_function_without_a_row() -> None:
    assert advice("np.linalg.eig") == ANY


@pytest.mark.whole("messages")
def test_functions_of_the_same_name_are_named() -> None:
    """All that tracejit has under a name of SciPy's that is no ufunc, and nothing else."""
    for name in ("fft", "integrate", "interpolate", "linalg", "signal", "special"):
        theirs, ours = importlib.import_module(f"scipy.{name}"), getattr(tj, name)
        want = {key for key in ours.__all__ if not isinstance(getattr(theirs, key, np.exp), np.ufunc)}
        listed = compositions._SAME[f"scipy.{name}"].split()
        assert want <= set(listed) <= set(ours.__all__) and sorted(listed) == listed
    functions = [name for name in tj.stats.__all__ if inspect.isfunction(getattr(tj.stats, name))]
    assert compositions._SAME["scipy.stats"].split() == functions
    assert advice("scipy.signal.lfilter") == "tj.signal.lfilter does the same on dlarrays, with derivatives"
    assert advice("scipy.fft.fft2") == "tj.fft.fft2 does the same on dlarrays, with derivatives"


@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix"])
def test_what_sparse_matrices_do_not_do_has_a_remedy(kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = getattr(sparse, kind)(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    x = np.array([0.5, 1.0, -2.0])
    with pytest.raises(TraceError) as caught:
        tj.dlfeval(lambda x: matrix.multiply(x), x)
    assert str(caught.value).endswith(f"; {compositions.OF_SPARSE}.")
    with pytest.raises(ArgumentError) as refused:
        tj.dlfeval(lambda x: x + matrix, x)
    assert str(refused.value).partition("\n")[0] == (
        f"add: y is a {kind} of SciPy, not an array; {compositions.OF_SPARSE}."
    )


class TestSciPy:
    def test_methods_of_distributions(self) -> None:
        stats = pytest.importorskip("scipy.stats")
        with pytest.raises(
            TraceError, match=r"; tj\.stats has distributions under SciPy's names, such as tj\.stats\.norm"
        ):
            tj.dlfeval(lambda x: stats.wishart.logpdf(x, 3, np.eye(2)), np.eye(2))

    def test_a_method_of_a_class_has_the_name_of_the_package(self) -> None:
        interpolate = pytest.importorskip("scipy.interpolate")
        line = interpolate.PPoly(np.ones((2, 1)), np.array([0.0, 1.0]))
        with pytest.raises(
            TraceError, match=r"^(a function of )?scipy\.interpolate.*: not supported on traced dlarrays"
        ):
            tj.dlfeval(lambda x: line.extend(np.ones((2, 1)), x), np.array([2.0]))

    def test_a_class_handed_to_us_is_at_our_users_line(self) -> None:
        interpolate = pytest.importorskip("scipy.interpolate")
        with pytest.raises(TraceError, match=r"test_compositions\.py:\d+\); compose it"):
            tj.dlfeval(interpolate.RBFInterpolator, np.ones((3, 1)), np.ones(3))
