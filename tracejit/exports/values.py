# SPDX-License-Identifier: BSD-3-Clause
"""Keys, containers and constants as JSON data, and back; objects that are known by identity only are refused."""

import importlib
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit import containers, tree
from tracejit.aval import NUMBERS, NUMPY_NUMBERS, NUMPY_SCALARS, SUPPORTED_DTYPES, check_format
from tracejit.call.result import ArrayLeaf, NumberLeaf, ResultLayout
from tracejit.call.signature import ArrayPart, Key, NumberPart, ValuePart
from tracejit.errors import ExportError
from tracejit.exports.program_json import MOST_BYTES, aval_of, whole
from tracejit.tree import LEAF, Structure
from tracejit.util.distinct import keys_of
from tracejit.util.text import shown

_CONTAINERS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "list": list, "tuple": tuple}
_DICTS = ("dict", "OrderedDict")
_KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (int, float, complex, bool, str, bytes, type(None))
}
_NUMPY: dict[str, type] = {
    f"numpy.{kind.__name__}": kind
    for kind in (*[dtype.type for dtype in SUPPORTED_DTYPES], np.float16, np.complex64, np.complex128)
}
_OF_RESULTS = NUMBERS | NUMPY_SCALARS | {complex}
_NO_DEFAULT = inspect.Parameter.empty


class UnwritableError(Exception):
    """A value cannot be exported; the message describes it."""


# Atoms: a value is a list of its kind and its content.


def _kind_name(kind: type) -> str:
    for kinds in (_KINDS, _NUMPY):
        for name, value in kinds.items():
            if value is kind:
                return name
    raise UnwritableError(f"a {kind.__module__}.{kind.__qualname__}, which cannot be written to a file")


def _kind_of(name: Any) -> type:
    kind = _KINDS.get(name) or _NUMPY.get(name)
    if kind is None:
        raise ValueError(f"the kind of a value is {name!r:.40}")
    return kind


def _number_kind(name: Any, kinds: frozenset[type] = NUMBERS) -> type:
    kind = _kind_of(name)
    if kind not in kinds:
        raise ValueError(f"the kind of a number is {name!r:.40}")
    return kind


def encode_atom(value: Any) -> list[Any]:
    """Return a value without parts as data.

    Raises:
        UnwritableError: if the value cannot be exported.
    """
    kind = type(value)
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if kind is tuple:
        return ["tuple", [encode_atom(part) for part in value]]
    name = _kind_name(value if kind is type else kind)
    if kind is type:
        return ["type", name]
    if issubclass(kind, np.generic):
        return [name, np.asarray(value).tobytes().hex()]
    if kind is bytes:
        return [name, value.hex()]
    try:
        return [name, value if kind in (str, bool) else repr(value)]
    except ValueError:
        raise UnwritableError(f"an {name} with more digits than Python converts to text") from None


def decode_atom(data: Any) -> Any:
    """Return the value that encode_atom() wrote."""
    name, content = data
    if name == "dtype":
        return np.dtype(checked_text(content))
    if name == "tuple":
        return tuple([decode_atom(part) for part in content])
    if name == "type":
        return _kind_of(content)
    kind = _kind_of(name)
    if kind is type(None):
        return None
    if kind is bool or kind is str:
        if type(content) is not kind:
            raise ValueError(f"a {name} that is {content!r:.40}")
        return content
    if kind is bytes:
        return bytes.fromhex(content)
    if issubclass(kind, np.generic):
        (value,) = np.frombuffer(bytes.fromhex(content), kind)
        return value
    parse: Any = kind
    return parse(checked_text(content))


# Containers.


def encode_structure(structure: Structure) -> Any:
    """Return the structure of a tree as data.

    Raises:
        UnwritableError: if a key or a class in it cannot be exported.
    """
    return tree.fold(structure, None, lambda: LEAF, _encode_container)


def _encode_container(kind: type, names: Any, children: list[Any]) -> list[Any]:
    if kind is type(None):
        return ["None"]
    if kind in _CONTAINERS.values():
        if kind.__name__ in _DICTS:
            return [kind.__name__, [encode_atom(name) for name in names], children]
        return [kind.__name__, children]
    if isinstance(names, containers.Outline):
        raise UnwritableError(
            f"{names.title}, of a class that is not written; pass its arrays in a dict or a list"
        )
    if issubclass(kind, tree.TreeNode):
        raise UnwritableError(
            f"{names.title}, whose layers are not written; pass its arrays in dicts (a table's to_dict())"
        )
    name = f"{kind.__module__}:{kind.__qualname__}"
    if "<locals>" in name:
        raise UnwritableError(
            f"a {kind.__qualname__}, a class that is defined in a function, so that no other process finds it by name"
        )
    return ["class", name, list(names), children]


def decode_structure(data: Any, class_of: Callable[[str, tuple[str, ...]], type]) -> Structure:
    """Return the structure that encode_structure() wrote.

    Args:
        data: the structure as data.
        class_of: gives the named tuple or dataclass of a name and its fields.
    """
    if data == LEAF:
        return LEAF
    kind, *rest = data
    if kind == "None":
        return (type(None), None, ())
    if kind == "class":
        name, fields, parts = rest
        names = tuple([checked_text(field) for field in fields])
        children = tuple([decode_structure(part, class_of) for part in parts])
        if len(names) != len(children):
            raise ValueError(f"{len(children)} values of the fields of a class, expected {len(names)}")
        return (class_of(checked_text(name), names), names, children)
    container = _CONTAINERS[kind]
    keys = None
    if kind in _DICTS:
        given, parts = rest
        keys = tuple([decode_atom(key) for key in given])
        if len(set(keys)) != len(keys) or len(keys) != len(parts):
            raise ValueError(f"{len(set(keys))} different keys of a dict, expected {len(parts)}")
    else:
        (parts,) = rest
    return (container, keys, tuple([decode_structure(part, class_of) for part in parts]))


class Classes:
    """The named tuples and dataclasses of an exported folder, by name.

    Args:
        given: classes by the name of the class, or by module and name with a colon between.
    """

    def __init__(self, given: Mapping[str, type]) -> None:
        self._given = given

    def __call__(self, name: str, fields: tuple[str, ...]) -> type:
        """Return the class of a name.

        Raises:
            ExportError: if there is none with these fields.
        """
        module, _, qualified = name.partition(":")
        cls: Any = self._given.get(name, self._given.get(qualified))
        if cls is None:
            try:
                cls = sys.modules.get(module) or importlib.import_module(module)
                for step in qualified.split("."):
                    cls = getattr(cls, step)
            except (ImportError, AttributeError, ValueError):
                raise ExportError(
                    f"load: the arguments or results have instances of {qualified} of the module {module}, which "
                    f"cannot be imported. Make it importable, or give the class: "
                    f'load(path, classes={{"{qualified}": ...}}).'
                ) from None
        names = tree._fields(cls) if isinstance(cls, type) else None
        if names != fields:
            raise ExportError(
                f"load: {qualified} had the fields {', '.join(fields)} when it was exported, and now "
                f"{'has ' + ', '.join(names) if isinstance(names, tuple) else 'is not a named tuple or dataclass'}. "
                "Export the function again."
            )
        return cls  # type: ignore[no-any-return]


def encode_orders(orders: Sequence[Any]) -> list[Any]:
    """Return the orders of the keys of dicts as data."""
    return [None if order is None else [encode_atom(key) for key in order] for order in orders]


def decode_orders(data: Any) -> list[Any]:
    """Return the orders that encode_orders() wrote."""
    return [None if order is None else keys_of(tuple([decode_atom(key) for key in order])) for order in data]


def _check_orders(structure: Structure, orders: Sequence[Any]) -> None:
    """Check that each dict has an order, of its own keys."""
    dicts: list[tuple[Any, ...]] = []

    def container(_: None, kind: type, names: Any, length: int) -> list[None]:
        if kind in (dict, OrderedDict):
            dicts.append(names)
        return [None] * length

    tree.walk(structure, None, None, lambda _: None, container)
    if len(orders) != len(dicts):
        raise ValueError(f"{len(orders)} orders of the keys of dicts, expected {len(dicts)}")
    for order, names in zip(orders, dicts, strict=True):
        if order is not None and (len(order) != len(names) or set(order) != set(names)):
            raise ValueError("the order of the keys of a dict does not have its keys")


def _leaves(structure: Structure) -> int:
    return tree.fold(structure, None, lambda: 1, lambda kind, names, counts: sum(counts))


# Keys.


def encode_part(part: Any) -> list[Any]:
    """Return the part of a key as data.

    Raises:
        UnwritableError: if the value cannot be exported.
    """
    if isinstance(part, ArrayPart):
        if part.device is not None:
            raise UnwritableError(
                f'an array on {part.device}; call the function with arrays of the host, or export with target="cuda"'
            )
        strides = None if part.strides is None else list(part.strides)
        return ["array", list(part.shape), part.format, str(part.dtype), strides]
    if isinstance(part, NumberPart):
        return ["number", _kind_name(part.kind)]
    if issubclass(part.kind, (float, complex, np.inexact)) and type(part.value) is tuple:
        return ["inexact", _kind_name(part.kind), part.value[0]]
    return ["value", encode_atom(part.given)]


def decode_part(data: Any) -> Any:
    """Return the part that encode_part() wrote."""
    kind, *rest = data
    if kind == "array":
        *sizes, strides = rest
        aval = aval_of(sizes, "an argument")
        if strides is not None:
            strides = tuple([whole(step, -MOST_BYTES, MOST_BYTES, "a stride") for step in strides])
            if len(strides) != aval.ndim:
                raise ValueError(f"{len(strides)} strides of an array, expected {aval.ndim}")
        return ArrayPart(aval.shape, aval.format, aval.dtype, strides)
    if kind == "number":
        (name,) = rest
        return NumberPart(_number_kind(name))
    if kind == "inexact":
        name, text = rest
        kind = _kind_of(name)
        number: Any = 0.0
        if kind is float or kind in NUMPY_NUMBERS:
            # As in "np.float64(0.5)".
            number = kind(float(checked_text(text).rpartition("(")[2].rstrip(")")))
        # As a call's key has it: NaN equals NaN.
        return ValuePart(kind, (text, 0.0 if number != number else number))  # noqa: PLR0124
    if kind == "value":
        (value,) = rest
        atom = decode_atom(value)
        return ValuePart(type(atom), atom)
    raise ValueError(f"the kind of an argument is {kind!r:.40}")


def encode_key(key: Key, name_of: Callable[[int], str]) -> dict[str, Any]:
    """Return a key as data.

    Args:
        key: of a call.
        name_of: gives the name of an argument.

    Raises:
        UnwritableError: if a value in it cannot be exported; the message names it.
    """
    parts = []
    for i, part in enumerate(key.parts):
        try:
            parts.append(encode_part(part))
        except UnwritableError as error:
            raise UnwritableError(f"{name_of(i)} is {error}") from None
    try:
        return {
            "structure": encode_structure(key.structure),
            "parts": parts,
            "orders": encode_orders(key.orders),
        }
    except UnwritableError as error:
        raise UnwritableError(f"the arguments hold {error}") from None


def decode_key(data: Any, class_of: Callable[[str, tuple[str, ...]], type]) -> Key:
    """Return the key that encode_key() wrote."""
    structure = decode_structure(data["structure"], class_of)
    parts = tuple([decode_part(part) for part in data["parts"]])
    orders = tuple(decode_orders(data["orders"]))
    _check_orders(structure, orders)
    if len(parts) != _leaves(structure):
        raise ValueError(f"{len(parts)} descriptions of arguments, expected {_leaves(structure)}")
    if structure is LEAF or structure[0] is not tuple or len(structure[2]) != 2:
        raise ValueError("a key whose structure is not that of arguments")
    return Key(structure, parts, orders)


# Results.


def encode_results(result: ResultLayout, keep: Callable[[np.ndarray], str]) -> dict[str, Any]:
    """Return the leaves and the structure of a result as data.

    Args:
        result: the structure of the result.
        keep: stores an array and returns its name.

    Raises:
        UnwritableError: if a constant or a class cannot be exported; the message names it.
    """
    leaves: list[Any] = []
    for leaf, place in zip(result.leaves, tree.paths(result.treedef, "result"), strict=True):
        if type(leaf) is ArrayLeaf:
            leaves.append(["array", leaf.format])
        elif type(leaf) is NumberLeaf:
            leaves.append(["number", _kind_name(leaf.kind), leaf.format])
        elif type(leaf) is np.ndarray and leaf.dtype.kind in "fiubc":
            leaves.append(["ndarray", keep(leaf)])
        else:
            try:
                leaves.append(["constant", encode_atom(leaf)])
            except UnwritableError as error:
                raise UnwritableError(f"{place} is {error}") from None
    try:
        return {
            "structure": encode_structure(result.treedef.structure),
            "orders": encode_orders(result.treedef.orders),
            "leaves": leaves,
        }
    except UnwritableError as error:
        raise UnwritableError(f"the result holds {error}") from None


def decode_results(
    data: Any, arrays: Mapping[str, np.ndarray], class_of: Callable[[str, tuple[str, ...]], type]
) -> ResultLayout:
    """Return the structure that encode_results() wrote."""
    structure = decode_structure(data["structure"], class_of)
    orders = decode_orders(data["orders"])
    _check_orders(structure, orders)
    leaves: list[Any] = []
    for kind, *rest in data["leaves"]:
        if kind == "array":
            (format,) = rest
            leaves.append(ArrayLeaf(_format(format)))
        elif kind == "number":
            name, format = rest
            leaves.append(NumberLeaf(_number_kind(name, _OF_RESULTS), _format(format)))
        elif kind == "ndarray":
            (name,) = rest
            leaves.append(arrays[name])
        elif kind == "constant":
            (value,) = rest
            leaves.append(decode_atom(value))
        else:
            raise ValueError(f"the kind of a result is {kind!r:.40}")
    if len(leaves) != _leaves(structure):
        raise ValueError(f"{len(leaves)} descriptions of results, expected {_leaves(structure)}")
    return ResultLayout(leaves, tree.TreeDef(structure, orders, len(leaves)))


def _format(value: Any) -> str | None:
    return None if value is None else check_format("load", value, len(checked_text(value)))


# Parameters.


class Default:
    """A stand-in for the default of a parameter, whose value is part of the exported program."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def encode_signature(signature: inspect.Signature | None) -> Any:
    """Return the parameters of a function as data, defaults as text."""
    if signature is None:
        return None
    return [
        [
            name,
            parameter.kind.name,
            None if parameter.default is _NO_DEFAULT else f"{shown(parameter.default):.80}",
        ]
        for name, parameter in signature.parameters.items()
    ]


def decode_signature(data: Any) -> inspect.Signature | None:
    """Return the parameters that encode_signature() wrote."""
    if data is None:
        return None
    parameter = inspect.Parameter
    kinds = {
        kind.name: kind
        for kind in (
            parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL,
            parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD,
        )
    }  # fmt: skip
    return inspect.Signature(
        [
            inspect.Parameter(
                checked_text(name),
                kinds[kind],
                default=_NO_DEFAULT if default is None else Default(checked_text(default)),
            )
            for name, kind, default in data
        ]
    )


def checked_text(value: Any) -> str:
    """Return text.

    Raises:
        TypeError: for a value of any other type.
    """
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a string")
    return value
