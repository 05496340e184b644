# SPDX-License-Identifier: BSD-3-Clause
"""The key of a call, which selects a trace: the signature of its arguments.

An array counts by size, format, dtype and memory layout, never by its values; containers by their structure,
dicts with the order of their keys; everything else by type and value. NaN equals NaN, and values that compare equal
count as different where Python code can tell them apart: {1} and {True}, ranges, attributes of objects.
"""

import enum
import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import NUMBERS, NUMPY_NUMBERS, describe_shape, is_int64
from tracejit.errors import ArgumentError, TraceJitError
from tracejit.functions.rng import Generator
from tracejit.ops import Layout
from tracejit.record import monitor
from tracejit.record.argument_containers import containers_of
from tracejit.record.generator_states import is_generator
from tracejit.util.devices import OnDevice, is_same_memory
from tracejit.util.distinct import Detail, Same
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import module_of, name_of, shown

CONTIGUOUS_AND_ALIGNED = 0x101  # flags of an ndarray
_ATOMS = frozenset((int, bool, str, bytes))
_INEXACT = (float, complex, np.inexact)


# Types of objects that compare by identity and do not change, or are read at each call.
_KNOWN_BY_IDENTITY = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.EllipsisType, types.NotImplementedType,
    functools.partial, np.ufunc, type(np.sum), type, Generator,
)  # fmt: skip


class ArrayPart(NamedTuple):
    """The part of a key for an array. Strides count elements; None is C order. No device is the host."""

    shape: tuple[int, ...]
    format: str | None
    dtype: np.dtype
    strides: tuple[int, ...] | None
    device: str | None = None

    def __str__(self) -> str:
        layout = "" if self.strides is None else f" with strides {self.strides}"
        place = "" if self.device is None else f" on {self.device}"
        return f"{describe_shape(self.shape, self.format)} {self.dtype}{layout}{place}"


class ValuePart(NamedTuple):
    """The part of a key for any other value, or for its Detail where values that are equal can be told apart."""

    kind: type
    value: Any

    @property
    def given(self) -> Any:
        """The value as it was passed; of an inexact number what stands for it in keys."""
        return self.value.value if type(self.value) in (Detail, Same) else self.value

    def __str__(self) -> str:
        if type(self.value) is Detail:
            return " ".join(shown(self.value.value).split())
        if type(self.value) is Same:
            return f"the {self.kind.__name__} at {id(self.value.value):#x}"
        if getattr(self.kind, "evaluates_itself", False):
            return f"<accelerated {name_of(self.value)}>"
        return str(self.value[0]) if issubclass(self.kind, _INEXACT) else shown(self.value)


class NumberPart(NamedTuple):
    """The part of a key for a number that varies, and is an input of the trace."""

    kind: type

    def __str__(self) -> str:
        return f"{self.words} that varies"

    @property
    def words(self) -> str:
        """The type with its article."""
        name = self.kind.__name__
        return f"{'an' if name.startswith('int') else 'a'} {name}"


class Key(NamedTuple):
    """The key of a call: the structure of its containers, the parts in them, and the orders of the keys of dicts.

    A function can iterate over a dict, so the order of its keys counts (None: they are sorted). A call without arrays
    runs on a device if `runs_on` names it.
    """

    structure: Any
    parts: tuple[ArrayPart | ValuePart | NumberPart, ...]
    orders: tuple[Any, ...] = ()
    runs_on: str | None = None

    @property
    def device(self) -> str | None:
        """The device that the call runs on, None for the CPU."""
        devices = (part.device for part in self.parts if type(part) is ArrayPart and part.device)
        return next(devices, self.runs_on)


class Call(NamedTuple):
    """The flattened arguments of a call; arrays among the leaves are dlarrays.

    originals   the caller's arrays by the number of their leaf, where the leaf is a copy: unaligned, or in foreign byte
                order
    arguments   as the caller gave them
    """

    key: Key
    leaves: list[Any]
    arrays: list[dlarray]
    treedef: tree.TreeDef
    originals: Mapping[int, np.ndarray] = MappingProxyType({})
    arguments: Any = None

    @property
    def containers(self) -> list[Any]:
        """The caller's containers that the function can change (Note [containers of arguments])."""
        return containers_of(self.treedef, self.arguments)

    @property
    def memory(self) -> list[np.ndarray]:
        """The caller's memory, for each input of a trace among the arguments."""
        numbers = [
            i for i, part in enumerate(self.key.parts) if type(part) is ArrayPart or type(part) is NumberPart
        ]
        return [self.originals.get(i, a._data) for i, a in zip(numbers, self.arrays, strict=True)]


def bind_arguments(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return arguments as a signature orders them.

    Raises:
        TypeError: if they do not fit it, with the function's name as Python has it.
    """
    bound = _bound_by_names(signature, args, kwargs)
    if bound is not None:
        return bound
    try:
        arguments = signature.bind(*args, **kwargs)
    except TypeError as error:
        text = str(error)
        raise TypeError(f"{name}() {'got ' if text.startswith('multiple') else ''}{text}") from None
    return arguments.args, arguments.kwargs


class _ParameterNames(NamedTuple):
    """The names of a function's parameters.

    by_place    those that arguments without a name have, in order
    by_name     those that arguments with a name may have, in order, and their places among all
    required    those without a default, and their places
    """

    by_place: tuple[str, ...]
    by_name: dict[str, int]
    required: tuple[tuple[str, int], ...]


def _bound_by_names(signature: inspect.Signature, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    """Return what signature.bind() does, in a tenth of its time; None where it raises an error, or for ``*args``."""
    known = _parameters.get(id(signature))
    if known is None or known[0] is not signature:
        if len(_parameters) >= _MOST_SIGNATURES:
            _parameters.clear()
        known = _parameters[id(signature)] = signature, _parameters_of(signature)
    parameters, given = known[1], len(args)
    if parameters is None or given > len(parameters.by_place):
        return None
    by_name = parameters.by_name
    for name in kwargs:
        if by_name.get(name, -1) < given:
            return None
    for name, place in parameters.required:
        if place >= given and (name not in kwargs or name not in by_name):
            return None
    places, rest = [*args], dict(kwargs)
    for name in parameters.by_place[given:]:
        if name not in rest:
            break
        places.append(rest.pop(name))
    return tuple(places), rest if len(rest) < 2 else {name: rest[name] for name in by_name if name in rest}


_parameters: dict[int, tuple[inspect.Signature, _ParameterNames | None]] = {}
_MOST_SIGNATURES = 1024


def _parameters_of(signature: inspect.Signature) -> _ParameterNames | None:
    every = [*signature.parameters.values()]
    kinds = inspect.Parameter
    if any(part.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for part in every):
        return None
    by_place = tuple([part.name for part in every if part.kind is not kinds.KEYWORD_ONLY])
    nameless = sum(part.kind is kinds.POSITIONAL_ONLY for part in every)
    by_name = {part.name: place for place, part in enumerate(every) if place >= nameless}
    required = [(part.name, place) for place, part in enumerate(every) if part.default is kinds.empty]
    return _ParameterNames(by_place, by_name, tuple(required))


def key_call(function: str, args: Any, path_of: Callable[[int, tree.TreeDef], str]) -> Call:
    """Return the arguments of a call flattened, with their key; `path_of` names a leaf for error messages.

    Raises:
        ArgumentError: if a leaf is neither an array nor hashable.
    """
    leaves, treedef = tree.flatten(args, function=function)
    parts: list[ArrayPart | ValuePart] = []
    arrays: list[dlarray] = []
    originals: dict[int, np.ndarray] = {}
    for i, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is not dlarray:
            if kind is float:
                parts.append(ValuePart(float, _float_key(leaf)))
                continue
            if kind in _ATOMS:
                parts.append(ValuePart(kind, leaf))
                continue
            if kind is not np.ndarray and not (
                hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__")
            ):
                parts.append(_value_part(function, leaf, i, treedef, path_of))
                continue
            given = leaf
            leaf = leaves[i] = _array(function, leaf, i, treedef, path_of)
            if isinstance(given, np.ndarray) and not given.dtype.isnative:
                originals[i] = given.view(np.ndarray)  # of any derived class too, such as np.memmap
            if not leaf._data.ndim:
                leaf = leaves[i] = dlarray._wrap(leaf._data[...], None, None)
        data = leaf._data
        # Without axes, an array is written and a number is not (is_scalar in record/views.py).
        strides: tuple[int, ...] | None = None if data.ndim or data.base is None else ()
        if data.flags.num & CONTIGUOUS_AND_ALIGNED != CONTIGUOUS_AND_ALIGNED:
            strides = _strides(data)
            # What is written into an array on a tape is written into that array, which the tape knows.
            if strides is None and leaf._value is None:
                originals.setdefault(i, data)
                data = _packed(data)
                if not data.ndim:  # an array, and no number, remains one
                    data, strides = data[...], ()
                leaf = leaves[i] = dlarray._wrap(data, leaf._format, leaf._value)
        if i in originals:
            leaf = leaves[i] = _as_before(i, leaves, originals)
            data = leaf._data
        parts.append(ArrayPart(data.shape, leaf._format, data.dtype, strides, _device_of(data)))
        arrays.append(leaf)
    key = Key(treedef.structure, tuple(parts), tuple(treedef.orders))
    return Call(key, leaves, arrays, treedef, originals, args)


def _as_before(number: int, leaves: list[Any], originals: dict[int, np.ndarray]) -> dlarray:
    """Return a leaf that is a copy; two copies of the same memory are one, which is written once."""
    leaf: dlarray = leaves[number]
    for other, original in originals.items():
        if other != number and is_same_memory(original, originals[number]):
            return dlarray._wrap(leaves[other]._data, leaf._format, leaf._value)
    return leaf


def _array(
    function: str, leaf: Any, number: int, treedef: tree.TreeDef, path_of: Callable[[int, tree.TreeDef], str]
) -> dlarray:
    try:
        return as_array(leaf, function, "data")
    except TraceJitError:  # once more, with the argument's name
        return as_array(leaf, f"{function}: {path_of(number, treedef)}", "data")


def _float_key(number: float) -> tuple[str, float]:
    # NaN equals NaN, and -0.0 differs from 0.0: the shortest text that reads back as the number.
    return (repr(number), 0.0 if math.isnan(number) else number)


def _value_part(
    function: str, leaf: Any, number: int, treedef: tree.TreeDef, path_of: Callable[[int, tree.TreeDef], str]
) -> ValuePart:
    if isinstance(leaf, _INEXACT):
        value: Any = leaf
        kind = type(leaf)
        if kind in NUMPY_NUMBERS:
            return ValuePart(kind, _float_key(value))
        is_plain = kind is complex or module_of(kind) == "numpy"
        return ValuePart(kind, (repr(leaf), 0.0) if is_plain else Detail(leaf))
    try:
        hash(leaf)
    except (TypeError, ValueError):
        if monitor.is_user_class(type(leaf)):
            return ValuePart(type(leaf), Same(leaf))  # as below
        raise ArgumentError(
            f"{function}: {path_of(number, treedef)} is a {type(leaf).__name__}, which is neither an array, a "
            f"container nor hashable, so it cannot select a trace. {_parts_of(type(leaf))}."
        ) from None
    kind = type(leaf)
    if runs_functions(kind):
        return ValuePart(kind, leaf)
    hashed_by: Any = kind.__hash__
    if (
        hashed_by is object.__hash__
        and (monitor.is_user_class(kind) or is_generator(leaf))
        and not isinstance(leaf, _KNOWN_BY_IDENTITY)
    ):
        return ValuePart(kind, Same(leaf))  # what the function reads of it is captured state
    if hashed_by is object.__hash__ and not isinstance(leaf, _KNOWN_BY_IDENTITY) and kind is not object:
        raise ArgumentError(
            f"{function}: {path_of(number, treedef)} is a {kind.__name__}, an object of a library, and changes in it "
            "would go unnoticed. Pass its arrays and numbers instead, in a dict, a named tuple or a dataclass."
        )
    is_told_by_value = isinstance(leaf, (*_KNOWN_BY_IDENTITY, np.generic, enum.Enum)) or kind is object
    if is_told_by_value or (isinstance(leaf, np.dtype) and leaf.metadata is None):
        return ValuePart(kind, leaf)
    detail = Detail(leaf)
    if not detail.is_whole:
        raise ArgumentError(
            f"{function}: {path_of(number, treedef)} is a {kind.__name__} with more attributes and elements than can "
            "be compared at each call. Pass its arrays and numbers instead, in a dict, a named tuple or a dataclass."
        )
    return ValuePart(kind, detail)


def _parts_of(kind: type) -> str:
    """Return what to pass in place of an object that is no container."""
    if module_of(kind).startswith("scipy.sparse"):
        return "Pass A.data, A.indices and A.indptr of it as A.tocsr() instead"
    return "Pass its arrays and numbers instead, or make its class a container (tj.tree.register)"


def runs_functions(kind: type) -> bool:
    """Return whether objects of a class run functions of the user's that they hold, which are read at each call.

    They are accelerated functions, and those with a backward function of their own.
    """
    return bool(getattr(kind, "evaluates_itself", False)) or hasattr(kind, "traced_functions")


def object_of(part: Any) -> Any:
    """Return the object of a part of a key that is known by its identity, or None."""
    return part.value.value if type(part) is ValuePart and type(part.value) is Same else None


def array_part(data: Any) -> ArrayPart:
    """Return the part of a key for an unformatted array, or for the copy that packed() makes of it."""
    strides = None if is_contiguous(data) else _strides(data)
    return ArrayPart(data.shape, None, data.dtype, strides, _device_of(data))


def _device_of(data: Any) -> str | None:
    return data.device if isinstance(data, OnDevice) else None


def other_format(variable: str, format: str | None) -> str:
    """Return the expression for whether the dlarray in a variable has other labels; ``is`` is faster."""
    return f"{variable}._format {'is not None' if format is None else f'!= {format!r}'}"


def packed(data: np.ndarray) -> np.ndarray:
    """Return an array with strides in whole elements: the array itself, or a copy."""
    return data if is_packed(data) else _packed(data)


def is_packed(data: np.ndarray) -> bool:
    """Return whether an array is aligned and has strides in whole elements, as programs take arrays."""
    return is_contiguous(data) or _strides(data) is not None


def is_contiguous(data: Any) -> bool:
    """Return whether an array is aligned, with its elements one after the other in C order."""
    return bool(data.flags.num & CONTIGUOUS_AND_ALIGNED == CONTIGUOUS_AND_ALIGNED)


def _strides(data: np.ndarray) -> tuple[int, ...] | None:
    """Return strides in elements, or None if the data must be copied to have such strides."""
    itemsize = data.itemsize
    if not data.flags.aligned or any(stride % itemsize for stride in data.strides) or data.size == 0:
        return None
    return tuple([stride // itemsize for stride in data.strides])


def _packed(data: np.ndarray) -> np.ndarray:
    if isinstance(data, OnDevice):
        return data.copy()
    packed = np.empty(data.shape, data.dtype)
    packed[...] = data
    return packed


def layouts(key: Key) -> list[Layout | None]:
    """Return the layout of each array of a key, None if it is contiguous; numbers that vary count as arrays."""
    inputs: list[Layout | None] = []
    for part in key.parts:
        if isinstance(part, NumberPart):
            inputs.append(None)
        elif isinstance(part, ArrayPart):
            inputs.append(Layout(0, part.shape, part.strides) if part.strides else None)
    return inputs


def differences(old: Key, new: Key) -> list[int] | None:
    """Return the numbers of the parts that differ, or None if the structures differ."""
    if old.structure != new.structure:
        return None
    return [i for i, (before, after) in enumerate(zip(old.parts, new.parts, strict=True)) if before != after]


def may_vary(key: Key) -> bool:
    """Return whether a key has the value of a number, for which a trace may take any value later."""
    return any(type(part) is ValuePart and part.kind in NUMBERS for part in key.parts)


def part_fits(wanted: Any, given: Any) -> bool:
    """Return whether a part of a call's key equals that of a trace, or is a number where the trace lets one vary."""
    if wanted == given:
        return True
    if type(wanted) is not NumberPart or type(given) is not ValuePart or given.kind is not wanted.kind:
        return False
    return wanted.kind is not int or is_int64(given.value)


def key_fits(wanted: Key, given: Key) -> bool:
    """Return whether a trace with the key `wanted` serves a call with the key `given`."""
    return (
        wanted.structure == given.structure
        and wanted.orders == given.orders
        and all(map(part_fits, wanted.parts, given.parts))
    )
