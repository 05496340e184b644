# SPDX-License-Identifier: BSD-3-Clause
"""Sums of products by subscripts: einsum, and its use by the other products of linear.py."""

import math
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions.diagonals import diagonal_view
from tracejit.functions.formats import describe_sizes, in_dtype
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.ops.linear import check_unique, join_labels
from tracejit.util.arguments import is_option
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> dlarray:
    """Return a sum of products by Einstein's convention, as ``numpy.einsum``.

    Args:
        subscripts: one letter for each axis of each operand, operands separated by commas, then "->" and
            the letters of the result: "bij,bjk->bik". Letters that are not in the result are summed over. A
            letter that an operand has twice means its diagonal. "..." stands for further axes, which
            broadcast.
            Without "->" the result has "..." and the letters that occur once, in alphabetical order.
        operands: dlarrays, ndarrays or lists, one for each comma-separated term.
        optimize: accepted for compatibility; the order is always optimized.

    Returns:
        dlarray; the label of each axis is that of the axes with its letter, U where they have none.

    Raises:
        ArgumentError: `subscripts` is malformed or does not have a term for each operand.
        DimsError: letters and axes do not fit, or labels clash.

    It is computed as matrix products where two operands share letters that are summed over; three and more
    operands are taken in the order that ``numpy.einsum_path`` finds.

    >>> import numpy as np
    >>> import tracejit as tj
    >>> tj.einsum("ij,kj->ki", np.ones((2, 3)), np.ones((1, 3)))
    1x2 dlarray float64
    [[3. 3.]]
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(
            "einsum: subscripts come first, as a string such as 'ij,jk->ik', not "
            f"{type(subscripts).__name__}; write lists of axis numbers as letters."
        )
    if not isinstance(optimize, (bool, list, tuple)) and not is_option(optimize, ("greedy", "optimal")):
        raise ArgumentError(
            "einsum: optimize must be True, False, 'greedy', 'optimal' or a path of numpy.einsum_path, not "
            f"{brief(optimize)}."
        )
    arrays = [as_array(operand, "einsum", f"operands[{number}]") for number, operand in enumerate(operands)]
    terms, result = _parse(subscripts, arrays)
    return sum_of_products("einsum", arrays, terms, result)


def _parse(subscripts: str, arrays: Sequence[Any]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters in the place of "..."."""
    text = subscripts.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    for term in (*terms, result):
        rest = term.replace("...", "", 1)
        if not (rest.isascii() and (rest.isalpha() or not rest)):
            raise ArgumentError(
                f"einsum: {term!r} in subscripts {subscripts!r} is not made of letters with at most one "
                "'...'."
            )
    if len(terms) != len(arrays):
        raise ArgumentError(
            f"einsum: subscripts {subscripts!r} have {len(terms)} terms for {len(arrays)} operands; separate "
            "one term for each operand by commas."
        )
    unused = [letter for letter in string.ascii_letters if letter not in text]
    widest = 0
    for number, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        named = len(term.replace("...", "", 1))
        extra = array._data.ndim - named
        if extra < 0 or (extra and "..." not in term):
            raise DimsError(
                f"einsum: the term {term!r} names {named} axes, but operand {number} is of "
                f"{describe_sizes(array)}, with {array._data.ndim} axes; write one letter for each axis, or "
                "'...' for further ones."
            )
        if "..." in term:
            widest = max(widest, extra)
    if widest > len(unused):
        raise ArgumentError(
            f"einsum: subscripts {subscripts!r} and its '...' need more letters than there are."
        )
    ellipsis = "".join(unused[:widest])
    expanded = []
    for term, array in zip(terms, arrays, strict=True):
        extra = array._data.ndim - len(term.replace("...", "", 1))
        expanded.append(term.replace("...", ellipsis[widest - extra :]))
    if not arrow:
        named_once = sorted(letter for letter in set(left) if letter.isalpha() and left.count(letter) == 1)
        return expanded, ellipsis + "".join(named_once)
    if widest and "..." not in result:
        raise ArgumentError(
            f"einsum: '...' stands for {widest} axes in the operands of {subscripts!r}, but the result has "
            "none; add '...' to the result, or name the axes to sum over them."
        )
    for letter in result.replace("...", ""):
        if result.count(letter) > 1 or letter not in left:
            problem = "occurs twice in the result" if letter in left else "is in no operand"
            raise ArgumentValueError(f"einsum: the letter {letter!r} of subscripts {subscripts!r} {problem}.")
    return expanded, result.replace("...", ellipsis)


class _Term(NamedTuple):
    """An unformatted array and a letter for each of its axes."""

    array: dlarray
    letters: str

    def size(self, letter: str) -> int:
        return self.array.shape[self.letters.index(letter)]


def sum_of_products(function: str, arrays: Sequence[Any], letters: Sequence[str], result: str) -> dlarray:
    """Return the sum of products of arrays over the letters that are not in `result`."""
    sizes = _sizes(function, arrays, letters)
    format = _result_format(function, arrays, letters, result)
    dtype = np.result_type(*[array._data.dtype for array in arrays])
    terms = []
    for array, names in zip(arrays, letters, strict=True):
        term = _diagonals(_Term(in_dtype(relabel(array, None), dtype), names))
        # An axis of size 1 that meets a larger one is left out: the product broadcasts it.
        kept = "".join(n for n in term.letters if term.size(n) == sizes[n])
        terms.append(_Term(reshaped(term.array, tuple(sizes[n] for n in kept), None), kept))
    for places in _path(terms, result):
        chosen = [terms[place] for place in places]
        terms = [term for place, term in enumerate(terms) if place not in places]
        product = chosen[0]
        for number, other in enumerate(chosen[1:], start=2):
            needed = set(result).union(*[t.letters for t in terms], *[t.letters for t in chosen[number:]])
            product = _product(product, other, needed)
        terms.append(product)
    final = _sum_out(terms[0], set(result))
    array = permuted(final.array, tuple(final.letters.index(n) for n in result))
    return relabel(array, format)


def _sizes(function: str, arrays: Sequence[Any], letters: Sequence[str]) -> dict[str, int]:
    """Return the size of each letter, or raise a DimsError where axes of one letter do not fit."""
    sizes: dict[str, int] = {}
    for array, names in zip(arrays, letters, strict=True):
        own: dict[str, int] = {}
        for name, extent in zip(names, array._data.shape, strict=True):
            have = sizes.get(name, 1)
            if own.setdefault(name, extent) != extent or (extent != have and 1 not in (extent, have)):
                raise DimsError(
                    f"{function}: axes of sizes {own[name] if own[name] != extent else have} and {extent} "
                    f"have the letter {name!r} in operands of {' and '.join(map(describe_sizes, arrays))} with "
                    f"the letters {','.join(letters)}; axes of one letter must be equal in size."
                )
            sizes[name] = extent if have == 1 else have
    return sizes


def _result_format(function: str, arrays: Sequence[Any], letters: Sequence[str], result: str) -> str | None:
    if all(array._format is None for array in arrays):
        return None
    text = " and ".join(map(describe_sizes, arrays))
    labels = dict.fromkeys(result, "U")
    for array, names in zip(arrays, letters, strict=True):
        for name, label in zip(names, array._format or "", strict=False):
            if name in labels:
                labels[name] = join_labels(function, labels[name], label, text)
    return check_unique(function, "".join(labels[name] for name in result), text) or None


def _path(terms: Sequence[_Term], result: str) -> Iterable[tuple[int, ...]]:
    """Return which terms to multiply, step by step; a product goes to the end of the list."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    subscripts = f"{','.join(term.letters for term in terms)}->{result}"
    shapes = [np.broadcast_to(np.float64(0), term.array._data.shape) for term in terms]
    path: list[tuple[int, ...]] = np.einsum_path(subscripts, *shapes, optimize="greedy")[0][1:]
    return path


def _diagonals(term: _Term) -> _Term:
    """Return a term in which every letter occurs once, by taking diagonals."""
    array, names = term
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            array = diagonal_view(array, first, second, 0)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return _Term(array, names)


def _sum_out(term: _Term, needed: set[str]) -> _Term:
    """Return a term summed over the letters that are not in `needed`."""
    axes = tuple(axis for axis, name in enumerate(term.letters) if name not in needed)
    if not axes:
        return term
    total = apply("sum", term.array, axes=axes, keepdims=False)
    return _Term(
        in_dtype(total, term.array._data.dtype), "".join(name for name in term.letters if name in needed)
    )


def _product(x: _Term, y: _Term, needed: set[str]) -> _Term:
    """Return the product of two terms, summed over the letters that are not in `needed`."""
    x = _sum_out(x, needed | set(y.letters))
    y = _sum_out(y, needed | set(x.letters))
    summed = "".join(n for n in x.letters if n in y.letters and n not in needed)
    batch = "".join(n for n in x.letters if n in y.letters and n in needed)
    rows = "".join(n for n in x.letters if n not in y.letters)
    columns = "".join(n for n in y.letters if n not in x.letters)
    if not summed or not (rows or columns):
        # No matrix product is in it, and elementwise code fuses with what is around.
        letters = x.letters + columns
        return _sum_out(_Term(apply("mul", _spread(x, letters), _spread(y, letters)), letters), needed)
    lead = tuple(x.size(n) for n in batch)
    outer_sizes = tuple(x.size(n) for n in rows), tuple(y.size(n) for n in columns)
    inner_size = math.prod(x.size(n) for n in summed)
    first = reshaped(_ordered(x, batch + rows + summed), (*lead, math.prod(outer_sizes[0]), inner_size), None)
    second = reshaped(
        _ordered(y, batch + summed + columns), (*lead, inner_size, math.prod(outer_sizes[1])), None
    )
    product = reshaped(apply("matmul", first, second), (*lead, *outer_sizes[0], *outer_sizes[1]), None)
    return _Term(product, batch + rows + columns)


def _ordered(term: _Term, letters: str) -> dlarray:
    return permuted(term.array, tuple(term.letters.index(name) for name in letters))


def _spread(term: _Term, letters: str) -> dlarray:
    """Return a term's array with an axis for each of `letters`, of size 1 where the term lacks it."""
    array = _ordered(term, "".join(name for name in letters if name in term.letters))
    return reshaped(array, tuple(term.size(name) if name in term.letters else 1 for name in letters), None)
