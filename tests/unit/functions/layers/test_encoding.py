# SPDX-License-Identifier: BSD-3-Clause
"""onehotencode and onehotdecode: classes as numbers and names, axes by number and label, traces, messages."""

import numpy as np
import pytest
from programs import program_of

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, DTypeError


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_new_axis_by_number(axis, rng):
    labels = rng.integers(0, 4, (2, 3))
    expected = np.moveaxis(np.eye(4, dtype=np.float32)[labels], -1, axis)
    for given in (labels, labels.tolist(), labels.astype(float), tj.dlarray(labels)):
        result = tj.onehotencode(given, axis, 4)
        assert (result.format, result.dtype) == (None, np.float32)
        np.testing.assert_array_equal(result._data, expected)


def test_labels_of_the_new_axis():
    x = tj.dlarray([[2, 0, 1]], "BT")
    assert tj.onehotencode(x, 0, 3).format == "CBT"
    assert tj.onehotencode(x, -1, 3).format == "BTC"
    assert tj.onehotencode(x, "C", 3).format == "BTC"
    assert tj.onehotencode(tj.dlarray([[2], [1]], "BC"), 2, 3).format == "BCU"
    assert tj.onehotencode([2, 1], "C", 3).format is None
    assert tj.onehotencode(tj.dlarray(2), "C", 3).format == "C"
    in_place = tj.onehotencode(tj.dlarray([[2, 0, 2]], "CB"), "C", 3)
    assert in_place.format == "CB"
    np.testing.assert_array_equal(in_place._data, [[0, 1, 0], [0, 0, 0], [1, 0, 1]])


def test_classes_in_any_order():
    np.testing.assert_array_equal(tj.onehotencode([5, -1], 1, [-1, 3, 5])._data, [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(tj.onehotencode([5, -1], 1)._data, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(tj.onehotencode([0.5], 1, tj.dlarray([0.5, 1.5]))._data, [[1, 0]])
    np.testing.assert_array_equal(tj.onehotencode([True, False], 1, [False, True])._data, [[0, 1], [1, 0]])
    names = np.array(["low", "high", "low"])
    np.testing.assert_array_equal(tj.onehotencode(names, 0, ["low", "high"])._data, [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(tj.onehotencode(names, 0)._data, [[0, 1, 0], [1, 0, 1]])
    assert tj.onehotencode([1], 0, 2, dtype=bool).dtype == bool


@pytest.mark.parametrize("format", ["BC", "CB", "TCB"])
def test_decoding_inverts_encoding(format, rng):
    shape = (2, 3, 4)[: len(format) - 1]
    labels = tj.dlarray(rng.integers(0, 5, shape), format.replace("C", ""))
    encoded = tj.onehotencode(labels, format.index("C"), 5)
    assert encoded.format == format
    for axis in ("C", format.index("C")):
        decoded = tj.onehotdecode(encoded, 5, axis)
        assert (decoded.format, decoded.dtype) == (labels.format, np.int64)
        np.testing.assert_array_equal(decoded._data, labels._data)
    values = tj.onehotdecode(encoded, [0.5, 1.5, 2.5, 3.5, 4.5])
    assert values.format == labels.format
    np.testing.assert_array_equal(values._data, labels._data + 0.5)
    words = tj.onehotdecode(encoded, list("abcde"))
    assert type(words) is np.ndarray
    np.testing.assert_array_equal(words, np.array(list("abcde"))[labels._data])


def test_decoding_takes_the_first_of_equal_scores():
    assert tj.onehotdecode([[0.5, 0.5], [0.1, 0.9]], [7, 8], 1).tolist() == [7, 8]


def test_programs():
    def step(labels, scores):
        return tj.onehotencode(labels, "C", 3), tj.onehotdecode(scores, [4, 5, 6])

    program_of(step, tj.dlarray([2, 0], "B"), tj.dlarray([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]], "BC"))


def test_while_a_trace_is_recorded(accelerating):
    labels = accelerating.input(tj.dlarray([0, 9]))
    np.testing.assert_array_equal(tj.onehotencode(labels, 1, 2)._data, [[1, 0], [0, 0]])
    np.testing.assert_array_equal(tj.onehotencode(labels, 1)._data, [[1, 0], [0, 1]])
    assert tj.onehotdecode(accelerating.input(tj.dlarray([0.5, 1.0])), ["a", "b"], 0).tolist() == "b"
    assert tj.onehotdecode([0.5, 1.0], accelerating.input(tj.dlarray([0, 9])), 0)._data == 9
    whats = ["onehotencode without class_names", "onehotdecode to strings", "class_names of onehotdecode"]
    assert [guard.what for guard in accelerating.guards] == whats


def test_messages():
    with pytest.raises(
        ArgumentError,
        match=r"^onehotencode: labels contains 3, which is not one of the 3 classes \[0, 1, 2\]",
    ):
        tj.onehotencode([0, 3], 1, 3)
    with pytest.raises(
        ArgumentError, match=r"^onehotencode: labels contains 'eel', which is not one of the 2 classes"
    ):
        tj.onehotencode(["cat", "eel"], 1, ["cat", "dog"])
    with pytest.raises(
        ArgumentError, match=r"^onehotencode: labels are numbers \(int64\), but class_names are str"
    ):
        tj.onehotencode([0, 1], 1, ["cat", "dog"])
    with pytest.raises(ArgumentError, match=r"^onehotencode: class_names contains 2 more than once"):
        tj.onehotencode([2], 1, [2, 1, 2])
    for classes in (0, [], [[1, 2]], True, [None]):
        with pytest.raises(
            ArgumentError, match=r"^onehotdecode: class_names must be a number of classes or a seq"
        ):
            tj.onehotdecode([0.1, 0.9], classes, 0)
    with pytest.raises(
        DimsError, match=r"^onehotdecode: y \(2\(C\)\) has size 2 along axis='C', but there are 3 cl"
    ):
        tj.onehotdecode(tj.dlarray([0.1, 0.9], "C"), 3)
    with pytest.raises(
        DimsError, match=r"^onehotdecode: axis='C' names axes by label, but the array of 2 is unform"
    ):
        tj.onehotdecode([0.1, 0.9], 2)
    with pytest.raises(
        DimsError, match=r"^onehotencode: axis='X' is not a label; expected a number or one of"
    ):
        tj.onehotencode([0], "X", 2)
    with pytest.raises(
        DimsError, match=r"^onehotencode: labels of size 2\(C\) x 1\(B\) have an axis C of size 2; it must"
    ):
        tj.onehotencode(tj.dlarray([[0], [1]], "CB"), "C", 2)
    with pytest.raises(DimsError, match=r"^onehotencode: axis 2 is out of range"):
        tj.onehotencode([0, 1], 2, 2)
    with pytest.raises(DTypeError, match=r"^onehotencode: data of type timedelta64.* is not supported"):
        tj.onehotencode([0], 0, 2, dtype="m8[s]")
    with pytest.raises(ArgumentError, match=r"^onehotencode: dtype must be a NumPy dtype .*, not 'wide'"):
        tj.onehotencode([0], 0, 2, dtype="wide")
