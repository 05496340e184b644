# SPDX-License-Identifier: BSD-3-Clause
"""Keys, containers and constants as data: they round-trip, and invalid data are refused."""

import inspect
import json
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

from tracejit import tree
from tracejit.call.result import ArrayLeaf, NumberLeaf, ResultLayout
from tracejit.call.signature import ArrayPart, Key, NumberPart, ValuePart, key_call
from tracejit.exports import values


class Pair(NamedTuple):
    first: Any
    second: Any


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


def class_of(name: str, fields: tuple[str, ...]) -> type:
    assert (name, fields) == (f"{__name__}:Pair", ("first", "second"))
    return Pair


ATOMS = [
    0, -1, 1 << 100, True, False, None, "", "text", "\u2028ß\0", b"", b"\0\xff", 1.5, -0.0, float("inf"), 1e-320,
    1 + 2j,    np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), np.float16(0.1), np.float32(0.1), np.float64(-0.0),
    np.complex64(1j), np.dtype("float32"), np.dtype(">i4"), np.float32, np.bool_, bool, int, float, str,
    (), (1, ("a", None), np.int64(2)),
]  # fmt: skip


@pytest.mark.whole("a millisecond each")
@pytest.mark.parametrize("value", ATOMS, ids=repr)
def test_atoms_round_trip(value: Any) -> None:
    found = values.decode_atom(through_json(values.encode_atom(value)))
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value", [object(), print, [1], {1}, np.ones(2), type, tree, lambda: 0, np.str_("a")]
)
def test_values_that_are_no_atoms(value: Any) -> None:
    with pytest.raises(values.UnwritableError, match="which cannot be written to a file"):
        values.encode_atom(value)


@pytest.mark.parametrize(
    "args",
    [
        ((), {}),
        ((np.ones(2), [None, (), {}]), {"k": 1.5}),
        (({"b": 1, "a": np.ones((2, 3)).T},), {}),
        ((OrderedDict([(3, 1), ("a", float("nan"))]), Pair(np.float32(1), Pair(-0.0, 1j))), {}),
    ],
)
def test_keys_round_trip(args: Any) -> None:
    key = key_call("f", args, lambda *_: "x").key
    found = values.decode_key(through_json(values.encode_key(key, str)), class_of)
    assert found == key
    assert hash(found) == hash(key)
    varied = key._replace(parts=tuple([NumberPart(float) for _ in key.parts]))
    assert values.decode_key(through_json(values.encode_key(varied, str)), class_of) == varied


def test_results_round_trip() -> None:
    kept: dict[str, np.ndarray] = {}

    def keep(array: np.ndarray) -> str:
        kept[str(len(kept))] = array
        return str(len(kept) - 1)

    leaves, treedef = tree.flatten([{"b": ArrayLeaf, "a": NumberLeaf}, 3, np.arange(3.0)])
    leaves = [NumberLeaf(int), ArrayLeaf("SCB"), *leaves[2:]]
    data = through_json(values.encode_results(ResultLayout(leaves, treedef), keep))
    found, other = values.decode_results(data, kept, class_of)
    assert found[:3] == leaves[:3]
    assert found[3] is leaves[3]
    assert (other, other.orders, other.size) == (treedef, treedef.orders, 4)


ARGS = ["tuple", [["tuple", ["leaf"]], ["dict", [], []]]]


@pytest.mark.parametrize(
    ("decode", "data", "text"),
    [
        (values.decode_atom, ["cake", 1], "the kind of a value is 'cake'"),
        (values.decode_atom, ["type", "object"], "the kind of a value is 'object'"),
        (values.decode_atom, ["str", 3], "a str that is 3"),
        (values.decode_atom, ["bool", 1], "a bool that is 1"),
        (values.decode_atom, ["int", 1], "1 is not a string"),
        (values.decode_atom, ["int", "9" * 5000], "Exceeds the limit"),
        (values.decode_atom, ["numpy.int8", "0000"], "too many values"),
        (values.decode_atom, ["bytes", "xx"], "non-hexadecimal"),
        (values.decode_part, ["cake"], "the kind of an argument is 'cake'"),
        (values.decode_part, ["array", [2, 3], None, "float64", [1]], "1 strides of an array, expected 2"),
        (values.decode_part, ["array", [2], None, "float64", [1 << 60]], "a stride is 1152921504606846976"),
        (values.decode_part, ["number", "bool"], "bool"),
        (values.decode_part, ["inexact", "float", 1.5], "1.5 is not a string"),
    ],
)
def test_invalid_data(decode: Any, data: Any, text: str) -> None:
    with pytest.raises(Exception, match=text) as caught:
        decode(data)
    assert isinstance(caught.value, (ValueError, TypeError, KeyError, RuntimeError))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            ["class", f"{__name__}:Pair", ["first", "second"], ["leaf"]],
            "1 values of the fields of a class, expected 2",
        ),
        (["dict", [["int", "1"], ["int", "1"]], ["leaf", "leaf"]], "1 different keys of a dict, expected 2"),
        (["dict", [["int", "1"]], ["leaf", "leaf"]], "1 different keys of a dict, expected 2"),
        (["set", ["leaf"]], "set"),
    ],
)
def test_invalid_structures(data: Any, text: str) -> None:
    with pytest.raises((ValueError, KeyError), match=text):
        values.decode_structure(data, class_of)


PART = ["value", ["int", "1"]]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"parts": []}, "0 descriptions of arguments, expected 1"),
        ({"structure": "leaf", "orders": []}, "a key whose structure is not that of arguments"),
        ({"structure": ["tuple", ["leaf"]], "orders": []}, "a key whose structure is not that of arguments"),
        ({"orders": []}, "0 orders of the keys of dicts, expected 1"),
        ({"orders": [None, None]}, "2 orders of the keys of dicts, expected 1"),
        ({"orders": [[["str", "a"]]]}, "the order of the keys of a dict does not have its keys"),
    ],
)
def test_invalid_keys(changes: Any, text: str) -> None:
    whole = {"structure": ARGS, "parts": [PART], "orders": [None]}
    assert values.decode_key(whole, class_of) == Key(
        (tuple, None, ((tuple, None, ("leaf",)), (dict, (), ()))), (ValuePart(int, 1),), (None,)
    )
    with pytest.raises(ValueError, match=text):
        values.decode_key(whole | changes, class_of)


@pytest.mark.parametrize(
    ("leaves", "text"),
    [
        ([], "0 descriptions of results, expected 1"),
        ([["cake"]], "the kind of a result is 'cake'"),
        ([["array", "SC", 1]], "too many values"),
        ([["array", 3]], "3 is not a string"),
        ([["ndarray", "nowhere"]], "nowhere"),
    ],
)
def test_invalid_results(leaves: Any, text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError), match=text):
        values.decode_results({"structure": "leaf", "orders": [], "leaves": leaves}, {}, class_of)


def test_signatures_round_trip() -> None:
    def function(a: Any, /, b: Any = np.ones(2), *c: Any, d: Any, e: Any = 3, **f: Any) -> Any: ...  # noqa: B008

    signature = inspect.signature(function)
    found = values.decode_signature(through_json(values.encode_signature(signature)))
    assert found is not None
    assert [(each.name, each.kind) for each in found.parameters.values()] == [
        (each.name, each.kind) for each in signature.parameters.values()
    ]
    assert str(found) == "(a, /, b=array([1., 1.]), *c, d, e=3, **f)"
    assert values.decode_signature(values.encode_signature(None)) is None


def test_an_array_part_keeps_its_layout() -> None:
    part = ArrayPart((2, 0, 3), "SCB", np.dtype(np.uint8), (-3, 1, 0))
    assert values.decode_part(through_json(values.encode_part(part))) == part
