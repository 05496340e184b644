# SPDX-License-Identifier: BSD-3-Clause
"""Functions and reductions of selections by a traced mask, without their sizes (Note [selections]).

The note stands in record/selections.py.
"""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, dlarray, wrap
from tracejit.aval import is_half
from tracejit.ops import Kind, Op
from tracejit.record import recorder, selections
from tracejit.record.guards import Decides
from tracejit.record.selections import SelectionMask, of

_MOST_OF_PRODUCT = 1 << 18  # multiplications of all rows, some 20 us; of a few rows NumPy takes a few
_LARGEST = {"f": np.inf, "b": True}


def selection(
    whole: dlarray,
    mask: SelectionMask,
    source: dlarray | None = None,
    axis: int | None = None,
    is_mixed: bool = False,
) -> dlarray:
    """Return an array that is a selection; the arguments are those of selections.new()."""
    array: dlarray = selections.new(wrap, whole, mask, source, axis, is_mixed)
    return array


def by_elements(array: dlarray) -> None:
    """Have all that was computed from a selection depend on its elements, by which a derivative is taken.

    The nodes that gather them, and those that put the whole together of them again, go behind that of the whole, and
    other nodes take the new whole.
    """
    current = recorder.recorder()
    assert current is not None
    elements = current.value(array)
    settled = current.settled.pop(elements, None)
    if settled is None or settled.whole._value.node is None:
        return
    nodes, old, mask = current.graph.nodes, settled.whole, settled.mask
    begin, ndim = len(nodes), mask.array._data.ndim
    rest = old._data.shape[ndim:]
    rows = apply("reshape", old, shape=(mask.array._data.size, *rest))
    place = next(node.output for node in settled.nodes if node.op.name == "true_places")  # among all elements
    rows = apply("put", rows, wrap(place.data, None, place), wrap(elements.data, None, elements), axis=0)
    new: Any = apply("reshape", rows, shape=old._data.shape)._value
    moved = [*settled.nodes, *nodes[begin:]]
    idents = {id(node) for node in moved}
    others = [node for node in nodes if id(node) not in idents]
    at = next(number for number, node in enumerate(others) if node is old._value.node) + 1
    for node in others[at:]:
        node.inputs = tuple([new if value is old._value else value for value in node.inputs])
    before = [*nodes]
    nodes[:] = [*others[:at], *moved, *others[at:]]
    places = {id(node): number for number, node in enumerate(nodes)}
    moved_guards = [
        guard._replace(at=places[id(before[guard.at - 1])] + 1) if guard.at else guard
        for guard in current.guards
    ]
    current.guards = sorted(moved_guards, key=lambda guard: guard.at)
    old._value = new


def may_select(array: dlarray) -> bool:
    """Return whether selections from an array are recorded without their sizes where it is used."""
    current = recorder.recorder()
    if current is None or not current.accelerating or current.maps or current.assumed or current.backwards:
        return False
    return current.memories.begun is None and array._format is None and not is_half(array._data.dtype)


def is_traced(mask: dlarray) -> bool:
    """Return whether a mask is traced by the recording of this thread, and neither a constant nor a selection."""
    value = mask._value
    if value is None or of(mask) is not None:
        return False
    return value.owner is recorder.recorder() and not value.is_constant


def places(mask: dlarray) -> tuple[dlarray, ...] | None:
    """Return the places where a mask is true, for each axis, without their number; None where that is not possible."""
    current = recorder.recorder()
    if current is None or not may_select(mask) or not is_traced(mask) or not mask._data.size:
        return None
    shape = mask._data.shape
    known = _known(current, mask)
    results = []
    for axis, size in enumerate(shape):
        whole = np.arange(size).reshape(size, *(1,) * (len(shape) - 1 - axis))
        number = wrap(whole, None, current.builder.constant(whole))
        number = apply("broadcast_to", number, shape=shape) if len(shape) > 1 else number
        flat = apply("reshape", number, shape=(mask._data.size,))
        first = apply("take", flat, known.first, axis=0)
        results.append(selection(apply("where", known.array, number, first), known, number, axis))
    return tuple(results)


def select(array: dlarray, mask: dlarray) -> dlarray | None:
    """Return what a mask selects from an array, without its size; None where that is not possible."""
    current = recorder.recorder()
    if not may_select(array) or current is None:
        return None
    inner, of_mask = of(array), of(mask)
    if inner is not None:
        if of_mask is None or of_mask.mask is not inner.mask or mask._data.ndim != 1:
            return None
        mask = apply("bitwise_and", of_mask.whole, inner.mask.array)
        array = inner.whole
    elif not is_traced(mask):
        return None
    ndim = mask._data.ndim
    if not ndim or mask._data.shape != array._data.shape[:ndim] or not mask._data.size:
        return None
    known = _known(current, mask)
    if (
        inner is None
    ):  # what is selected is not written later; by_elements() has to find the whole of a selection
        value = current.value(array)
        array = wrap(value.data, None, value)
    rest = array._data.shape[ndim:]
    rows = apply("reshape", array, shape=(mask._data.size, *rest))
    # Which has no derivative: that of an element that is not selected goes nowhere.
    first = apply("stop_gradient", apply("take", rows, known.first, axis=0))
    return selection(apply("where", over(known, rest), array, first), known, array)


def _known(current: Any, mask: dlarray) -> SelectionMask:
    """Return a mask that equals one given, with its first place; any place if it selects nothing."""
    assert mask._value is not None
    for known in current.masks:
        if selections.same(known.array._value, mask._value):
            return known  # type: ignore[no-any-return]
    flat = apply("reshape", mask, shape=(mask._data.size,))
    first = apply("argmax", flat, axis=0, keepdims=False)
    known = SelectionMask(wrap(mask._data, None, mask._value), first)
    current.masks.append(known)
    return known


def has_any(mask: SelectionMask) -> bool:
    """Return whether a mask selects anything, which is a guard."""
    if mask.selects is None:
        flat = apply("reshape", mask.array, shape=(mask.array._data.size,))
        is_true = apply("take", flat, mask.first, axis=0)
        mask.selects = bool(recorder.need_value(is_true, "any() of the mask of a selection", Decides.TRUTH))
    return mask.selects


def over(mask: SelectionMask, rest: tuple[int, ...]) -> dlarray:
    """Return a mask with axes for those of the array behind its own."""
    return (
        apply("reshape", mask.array, shape=(*mask.array._data.shape, *(1,) * len(rest)))
        if rest
        else mask.array
    )


def lift(op: Op, operands: Any, params: dict[str, Any]) -> Any:
    """Return what an op gives of selections, without their size; None where it needs it, or there are none."""
    found = [x for x in operands if type(x) is dlarray and of(x) is not None]
    if not found or op.kind is not Kind.ELEMENTWISE:
        return None
    parts = [part for part in map(of, found) if part is not None]
    mask = parts[0].mask
    rest = found[0]._data.ndim - 1
    if any(part.mask is not mask for part in parts) or any(x._data.ndim != rest + 1 for x in found):
        return None
    is_mixed = any(part.is_mixed for part in parts) or any(map(is_parameter, operands))
    if is_mixed and op.name not in _SUMS and not has_any(mask):
        return None
    wholes = []
    for x in operands:
        part = of(x) if type(x) is dlarray else None
        whole = part.whole if part is not None else _broadcast(x, rest, mask)
        if whole is None:
            return None
        wholes.append(whole)
    results: Any = apply(op.name, *wholes, **params)
    if type(results) is tuple:
        return tuple(selection(result, mask, is_mixed=is_mixed) for result in results)
    return selection(results, mask, is_mixed=is_mixed)


_SUMS = ("add", "sub")  # whose derivatives are those of no operand's value


def is_parameter(x: Any) -> bool:
    """Return whether an operand beside a selection may have a derivative, which adds up that of all elements."""
    if recorder.is_number(x):
        return x._sources is None
    if type(x) is not dlarray or of(x) is not None or x._data.dtype.kind not in "fc":
        return False
    if x._value is not None:
        return True
    current = recorder.recorder()  # one of self, or of another object; by an ndarray no derivative is taken
    return current is not None and recorder.is_captured(x) and not current.is_ndarray(x._data)


def _broadcast(x: Any, rest: int, mask: SelectionMask) -> Any:
    """Return an operand beside a selection as one beside its whole; None if its size depends on that of the selection.

    Args:
        x: a number, or an array that is the same for all that is selected.
        rest: the axes of the selection behind the first.
        mask: of the selection.
    """
    if not isinstance(x, (dlarray, np.ndarray)):
        return x if isinstance(x, (int, float, complex, np.generic)) or recorder.is_number(x) else None
    if getattr(x, "_format", None) is not None or is_half(x.dtype) or x.ndim > rest + 1:
        return None
    if x.ndim <= rest:
        return x
    more = mask.array._data.ndim - 1
    return None if x.shape[0] != 1 else apply("reshape", x, shape=(*(1,) * more, *x.shape)) if more else x


def reduced(op: str, array: dlarray, axes: tuple[int, ...], keepdims: bool) -> dlarray | None:
    """Return what a reduction of a selection gives, given its axes; None where it needs the size."""
    part = of(array)
    assert part is not None
    ndim = part.mask.array._data.ndim
    behind = tuple(axis + ndim - 1 for axis in axes if axis)
    if 0 not in axes:
        if part.is_mixed and op != "sum" and not has_any(part.mask):
            return None
        whole = apply(op, part.whole, axes=behind, keepdims=keepdims)
        return selection(whole, part.mask, is_mixed=part.is_mixed)
    neutral = _neutral(op, array._data.dtype)
    if neutral is None or (op in ("max", "min") and not has_any(part.mask)):
        return None
    whole = apply("where", over(part.mask, part.whole._data.shape[ndim:]), part.whole, neutral)
    result = apply(op, whole, axes=(*range(ndim), *behind), keepdims=keepdims)
    return apply("reshape", result, shape=result._data.shape[ndim - 1 :]) if keepdims and ndim > 1 else result


def product(x: dlarray, y: dlarray) -> dlarray | None:
    """Return the matrix product where `x` is a selection, without its size; None where that is not possible.

    Both are selections by one mask, and vectors; or `x` has rows, and `y` is a matrix or a vector for all of them.
    """
    first, second = of(x), of(y)
    if first is None or (second is not None and second.mask is not first.mask):
        return None
    if second is None:
        return _product_of_rows(x, y)
    if x._data.ndim != 1 or y._data.ndim != 1:
        return None
    if x._data.dtype.kind not in "fc" or y._data.dtype.kind not in "fc":
        return None
    return reduced("sum", apply("mul", x, y), (0,), keepdims=False)


def _product_of_rows(x: dlarray, y: dlarray) -> dlarray | None:
    part, ndim = of(x), y._data.ndim
    assert part is not None
    whole, shape = part.whole, part.mask.array._data.shape
    if x._data.ndim != 2 or ndim not in (1, 2) or y._format is not None or is_half(y._data.dtype):
        return None
    columns = whole._data.shape[-1]
    if y._data.shape[0] != columns or whole._data.size * math.prod(y._data.shape[1:]) > _MOST_OF_PRODUCT:
        return None
    is_mixed = part.is_mixed or is_parameter(y)
    if is_mixed and not has_any(part.mask):  # 0 times NaN in the derivative by the matrix
        return None
    rows = apply("reshape", whole, shape=(part.mask.array._data.size, columns)) if len(shape) > 1 else whole
    found = apply("matmul", rows, y if ndim == 2 else apply("reshape", y, shape=(columns, 1)))
    found = apply("reshape", found, shape=(*shape, *y._data.shape[1:]))
    return selection(found, part.mask, is_mixed=is_mixed)


def _neutral(op: str, dtype: np.dtype) -> Any:
    if op in ("sum", "prod", "any", "all"):
        return dtype.type(op in ("prod", "all"))
    if dtype.kind == "c":
        return None
    if dtype.kind in "fb":
        largest = dtype.type(_LARGEST[dtype.kind])
        return largest if op == "min" else (-largest if dtype.kind == "f" else dtype.type(False))
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)


def count(array: dlarray, axes: tuple[int, ...], like: dlarray) -> Any:
    """Return how many elements a reduction of a selection over axes takes, in the dtype of an array."""
    part = of(array)
    assert part is not None
    ndim = part.mask.array._data.ndim
    number = apply("sum", part.mask.array, axes=tuple(range(ndim)), keepdims=False)
    number = (
        apply("cast", number, dtype=like._data.dtype) if number._data.dtype != like._data.dtype else number
    )
    behind = 1
    for axis in axes:
        behind *= part.whole._data.shape[axis + ndim - 1] if axis else 1
    return apply("mul", number, behind) if behind != 1 else number


recorder.lift_with(lift)
