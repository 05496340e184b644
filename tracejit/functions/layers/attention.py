# SPDX-License-Identifier: BSD-3-Clause
"""attention: for each query, the sum of the values weighted by how well their keys fit it."""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions.formats import describe, in_dtype
from tracejit.functions.halves import in_single
from tracejit.functions.layers.sequences import LabelledSequence, observed, sequence
from tracejit.functions.movement import expanded, permuted, relabel, reshaped
from tracejit.functions.random import dropout
from tracejit.util.arguments import flag, integer, is_option, is_real, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_WIDEST = 256  # channels of a head that the kernels have room for


class _Heads(NamedTuple):
    """Operands of attention as (batch, length, heads, width), the factor of queries, and the mask added to scores."""

    q: dlarray
    k: dlarray
    v: dlarray
    scale: Any  # (1,)
    mask: dlarray | None
    causal: bool

    @property
    def is_narrow(self) -> bool:
        return bool(max(self.q._data.shape[3], self.v._data.shape[3]) <= _WIDEST)


@in_single
def attention(
    q: Any,
    k: Any,
    v: Any,
    num_heads: int,
    *,
    scale: Any = "auto",
    attention_mask: Any = "none",
    padding_mask: Any = None,
    dropout_probability: float = 0.0,
    return_weights: bool = False,
    data_format: str | None = None,
) -> Any:
    """Return, for each query, the sum of the values weighted by softmax(scale q k' + mask), head by head.

    Args:
        q: queries; a dlarray with the labels C, T (or one S) and perhaps B in any order, or an unformatted array with
            `data_format`. Its channels are those of all heads, one head after the other.
        k: keys, of any length, as `q`. With fewer channels than `q` has, several heads of queries in a row share a
            head of keys: there are channels of k / (channels of q / num_heads) of these.
        v: values, of the length of `k` and as many heads, each of any width.
        num_heads: heads of queries.
        scale: factor of the scores, a number or a scalar dlarray; "auto" is 1 / sqrt(channels of a head).
        attention_mask: "none"; "causal": query i sees the keys up to i; or an array that broadcasts to (batch, heads,
            queries, keys): booleans, True where a key takes part, or floating-point numbers, which are added to
            scores.
        padding_mask: booleans or numbers (batch, keys), or labelled B and T; not 0 for the keys that take part.
        dropout_probability: of setting a weight to 0, as by dropout().
        return_weights: whether to return the weights as well.
        data_format: labels of unformatted operands, such as "CBT".

    Returns:
        dlarray with the labels and the length of `q`, and num_heads times the width of a value as channels;
        unformatted if `q` was. With return_weights a tuple of that and the weights before dropout: an unformatted
        (batch, heads, queries, keys). A query that sees no key has weights of 0 and the result 0.

    Raises:
        DimsError: if labels or sizes do not fit.
        ArgumentError: for an unknown option.
        DTypeError: for an attention_mask of integers.

    T. Dao et al., "FlashAttention", 2022: the scores of a block of queries and keys at a time are computed, and once
    more for the gradients, so that memory is linear in the lengths. With return_weights or dropout all weights are
    in memory, as they are for heads of more than 256 channels, for gradients of a mask of numbers, and for second
    derivatives. Masks take the memory that they have; attention_mask and padding_mask together that of
    (batch, 1, queries, keys), or more if attention_mask has heads. "causal" takes none.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.eye(2), "TC")
        >>> tj.attention(x, x, x, 1, attention_mask="causal")
        2(T) x 2(C) dlarray float64
        [[1.         0.        ]
         [0.33023845 0.66976155]]
    """
    heads, sequences = _operands(q, k, v, num_heads, data_format)
    heads = _scaled(heads, scale)
    heads = _masked(heads, attention_mask, padding_mask)
    if not is_real(dropout_probability) or not 0 <= dropout_probability < 1:
        raise ArgumentError(
            f"attention: dropout_probability must be a probability, 0 <= p < 1, not {brief(dropout_probability)}."
        )
    return_weights = flag("attention", "return_weights", return_weights)
    weights = None
    if return_weights or dropout_probability or not heads.is_narrow:
        weights, sees_none = _weights(heads)
        kept = dropout(weights, dropout_probability) if dropout_probability else weights
        out = _weighted(heads, kept, sees_none)
    else:
        mask = np.zeros((1, 1, 1, 1), heads.q.dtype) if heads.mask is None else heads.mask
        params = {"causal": heads.causal, "masked": heads.mask is not None}
        out, _ = apply("attention_forward", heads.q, heads.k, heads.v, mask, heads.scale, **params)
    batch, length, count, width = out._data.shape
    result = sequences[0].restored(reshaped(out, (batch, length, count * width), None))
    if weights is None or not return_weights:
        return result
    shape = (batch, count, length, heads.k._data.shape[1])
    return result, reshaped(weights, shape, None)


def _operands(
    q: Any, k: Any, v: Any, num_heads: Any, data_format: str | None
) -> tuple[_Heads, list[LabelledSequence]]:
    """Return the operands by heads, and as they came."""
    named = (("q", q), ("k", k), ("v", v))
    found = [sequence("attention", name, x, data_format, needs_length=True) for name, x in named]
    (batch, _, channels), (key_batch, keys, key_channels), (value_batch, values, value_channels) = [
        x.sizes for x in found
    ]
    heads = integer("attention", "num_heads", num_heads)
    if heads < 1 or channels % heads:
        raise DimsError(
            f"attention: q has {channels} channels, which do not divide into num_heads = {heads} equal heads."
        )
    if not batch == key_batch == value_batch:
        raise DimsError(
            f"attention: q, k and v have {batch}, {key_batch} and {value_batch} observations (B), which must be equal."
        )
    if keys != values:
        raise DimsError(f"attention: k has length {keys} and v length {values}; each key needs its value.")
    width = channels // heads
    key_heads = key_channels // width if width else heads
    if not key_heads or key_heads * width != key_channels or heads % key_heads:
        raise DimsError(
            f"attention: k has {key_channels} channels, but a head of q has {width}; k must have {channels}, or "
            f"{width} times a divisor of num_heads = {heads}."
        )
    if value_channels % key_heads:
        raise DimsError(
            f"attention: v has {value_channels} channels, which do not divide into the {key_heads} heads of k."
        )
    dtype = np.result_type(*[x.data.dtype for x in found])
    counts = (heads, key_heads, key_heads)
    parts = [
        reshaped(in_dtype(x.data, dtype), (*x.sizes[:2], count, x.sizes[2] // count), None)
        for x, count in zip(found, counts, strict=True)
    ]
    return _Heads(parts[0], parts[1], parts[2], None, None, causal=False), found


def _scaled(heads: _Heads, scale: Any) -> _Heads:
    """Return the operands with the scale; by an array of its own queries are multiplied here."""
    dtype = heads.q.dtype
    factor: Any = 1.0
    if is_option(scale, ("auto",)):
        factor = 1 / math.sqrt(max(1, heads.q._data.shape[3]))
    elif is_real(scale):
        factor = real("attention", "scale", scale)
    else:
        array = None if isinstance(scale, (str, bytes)) else as_array(scale, "attention", "scale")
        if array is None or array._data.ndim or array.dtype.kind not in "fiu":
            raise ArgumentError(f'attention: scale must be a number or "auto", not {brief(scale)}.')
        heads = heads._replace(q=apply("mul", heads.q, in_dtype(array, dtype)))
    if type(factor) in (int, float):
        return heads._replace(scale=np.full(1, factor, dtype))
    # A number that is an input of a trace is one of the arrays.
    return heads._replace(q=apply("mul", heads.q, factor), scale=np.ones(1, dtype))


def _masked(heads: _Heads, attention_mask: Any, padding_mask: Any) -> _Heads:
    """Return the operands with what their masks add to scores."""
    (batch, queries, count, _), (_, keys, *_) = heads.q._data.shape, heads.k._data.shape
    sizes = (batch, count, queries, keys)
    causal = is_option(attention_mask, ("causal",))
    mask = None
    if not causal and not is_option(attention_mask, ("none",)):
        if isinstance(attention_mask, (str, bytes)) or attention_mask is None:
            raise ArgumentError(
                f'attention: attention_mask must be "none", "causal" or an array, not {brief(attention_mask)}.'
            )
        given = as_array(attention_mask, "attention", "attention_mask")
        mask, labels = relabel(given, None), given._format or ""
        shape = mask._data.shape
        aligned = (1,) * (4 - len(shape)) + shape
        if "B" in labels.rjust(4, "U")[1:]:
            raise DimsError(
                f"attention: attention_mask is of {describe(given)}, but its axes are (batch, heads, queries, keys), "
                "aligned from the last one; pass a mask of observations and keys as padding_mask, or remove the labels "
                "with stripdims(attention_mask)."
            )
        if len(shape) > 4 or any(own not in (1, extent) for own, extent in zip(aligned, sizes, strict=True)):
            raise DimsError(
                f"attention: attention_mask is of {describe(mask)}, but must broadcast to (batch, heads, queries, "
                f"keys) = {sizes}."
            )
        if mask._data.dtype.kind in "iu":
            raise DTypeError(
                f"attention: attention_mask is an array of {mask._data.dtype}, which could mean two things; pass "
                "booleans (mask != 0) for the keys that take part, or floating-point numbers to be added to scores."
            )
        mask = _added(reshaped(mask, aligned, None), heads.q.dtype)
    if padding_mask is not None:
        seen = observed("attention", "padding_mask", padding_mask, batch, keys, "keys")
        padding = _added(reshaped(seen, (batch, 1, 1, keys), None), heads.q.dtype)
        mask = padding if mask is None else apply("add", mask, padding)
    if mask is not None:
        mask = expanded(mask, (*mask._data.shape[:3], keys))
    return heads._replace(mask=mask, causal=causal)


def _added(mask: dlarray, dtype: np.dtype) -> dlarray:
    """Return what a mask adds to scores: minus infinity where a boolean is False."""
    if mask._data.dtype != bool:
        return in_dtype(mask, dtype, "attention: attention_mask of")
    return apply("where", mask, dtype.type(0), dtype.type(-np.inf))


def _by_key_heads(heads: _Heads) -> tuple[dlarray, dlarray]:
    """Return queries (batch, key heads, group, queries, width) and values (batch, key heads, 1, keys, width)."""
    batch, length, count, width = heads.q._data.shape
    _, keys, key_heads, value_width = heads.v._data.shape
    q = reshaped(heads.q, (batch, length, key_heads, count // key_heads, width), None)
    v = reshaped(permuted(heads.v, (0, 2, 1, 3)), (batch, key_heads, 1, keys, value_width), None)
    return permuted(q, (0, 2, 3, 1, 4)), v


def _weights(heads: _Heads) -> tuple[dlarray, dlarray | None]:
    """Return all weights, (batch, key heads, group, queries, keys), and which queries see no key, None for none."""
    q = apply("mul", _by_key_heads(heads)[0], heads.scale)
    batch, key_heads, group, length, width = q._data.shape
    keys = heads.k._data.shape[1]
    turned = reshaped(permuted(heads.k, (0, 2, 3, 1)), (batch, key_heads, 1, width, keys), None)
    scores = apply("matmul", q, turned)
    if heads.mask is not None:
        shape = heads.mask._data.shape
        by_heads = (1, 1) if shape[1] == 1 else (key_heads, group)
        scores = apply("add", scores, reshaped(heads.mask, (shape[0], *by_heads, *shape[2:]), None))
    if heads.causal:
        scores = apply("where", np.tri(length, keys, dtype=bool), scores, -math.inf)
    if not scores._data.size:
        return scores, None
    largest = apply("stop_gradient", apply("max", scores, axes=(4,), keepdims=True))
    largest = apply("where", apply("greater", largest, -math.inf), largest, 0.0)
    powers = apply("exp", apply("sub", scores, largest))
    total = apply("sum", powers, axes=(4,), keepdims=True)
    # A query without keys has powers of 0 only.
    sees_none = apply("equal", total, 0.0)
    weights = apply("div", powers, apply("where", sees_none, 1.0, total))
    return weights, None if heads.mask is None else sees_none


def _weighted(heads: _Heads, weights: dlarray, sees_none: dlarray | None) -> dlarray:
    """Return the sums of values, (batch, queries, heads, width)."""
    batch, length, count, _ = heads.q._data.shape
    out = apply("matmul", weights, _by_key_heads(heads)[1])
    if sees_none is not None:  # a choice: 0 times a value that is NaN would not be 0
        out = apply("where", sees_none, 0.0, out)
    out = permuted(out, (0, 3, 1, 2, 4))
    return reshaped(out, (batch, length, count, heads.v._data.shape[3]), None)
