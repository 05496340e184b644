# SPDX-License-Identifier: BSD-3-Clause
"""Connectionist temporal classification: how unlikely a target is, summed over all its alignments with the steps.

y is (batch, steps, classes), logarithms of probabilities. Labels are (batch, most) classes; label_lengths has the
number of labels of each observation, and lengths has the number of its steps. `blank` is the class that stands between
labels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import INT64, Aval
from tracejit.errors import BoundsError
from tracejit.ops.floats import one_float
from tracejit.ops.op import KernelCall, Kind, OnlyOnce, Op, RangeCut, Sample

UNIT = 16  # observations that one thread takes, at least
_NS_PER_STATE = 4.0  # of an observation at a step


def _promote(y: np.dtype, *rest: np.dtype) -> tuple[np.dtype, ...]:
    return (one_float(y)[0], INT64, INT64, INT64)


def _infer(y: Aval, labels: Aval, lengths: Aval, label_lengths: Aval, *, blank: int) -> tuple[Aval, Aval]:
    batch, steps, _ = y.shape
    dtype = one_float(y.dtype)[0]
    return Aval((batch,), None, dtype), Aval((steps, 2 * labels.shape[1] + 1, batch), None, dtype)


def _states(labels: np.ndarray, label_lengths: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of all states, (states, batch), and whether the state two before may be next to it."""
    batch, most = labels.shape
    classes = np.full((2 * most + 1, batch), blank, np.int64)
    classes[1::2] = np.where(np.arange(most)[:, None] < label_lengths, labels.T, blank)
    hops = np.zeros_like(classes, bool)
    hops[3::2] = (labels.T[1:] != labels.T[:-1]) & (np.arange(1, most)[:, None] < label_lengths)
    return classes, hops


def _check(
    y: np.ndarray, labels: np.ndarray, lengths: np.ndarray, label_lengths: np.ndarray, blank: int
) -> None:
    for argument, counted, numbers, most in (
        ("y_mask", "steps of y", lengths, y.shape[1]),
        ("target_mask", "labels of targets", label_lengths, labels.shape[1]),
    ):
        if ((numbers < 0) | (numbers > most)).any():
            raise BoundsError(
                f"ctc: {argument} counts {numbers.min()} to {numbers.max()} {counted}, of which there are {most}; the "
                f"numbers must be 0 to {most}."
            )
    used = labels[np.arange(labels.shape[1]) < label_lengths[:, None]]
    if ((used < 0) | (used >= y.shape[2])).any():
        raise BoundsError(
            f"ctc: targets are {used.min()} to {used.max()}, but there are {y.shape[2]} classes; they must be 0 to "
            f"{y.shape[2] - 1}."
        )
    if (used == blank).any():
        raise BoundsError(
            f"ctc: targets hold the blank class, {blank}, which no label is; leave padding out by target_mask, or "
            "choose another blank_index."
        )


def _log_sum(*terms: np.ndarray) -> np.ndarray:
    top = np.stack(terms).max(axis=0)
    top = np.where(top == -np.inf, 0, top)
    result: np.ndarray = top + np.log(sum(np.exp(term - top) for term in terms))
    return result


def _forward(
    y: np.ndarray, labels: np.ndarray, lengths: np.ndarray, label_lengths: np.ndarray, *, blank: int
) -> tuple[np.ndarray, np.ndarray]:
    y = y.astype(one_float(y.dtype)[0], copy=False)
    labels, lengths, label_lengths = (x.astype(np.int64) for x in (labels, lengths, label_lengths))
    _check(y, labels, lengths, label_lengths, blank)
    batch, steps, _ = y.shape
    classes, hops = _states(labels, label_lengths, blank)
    alpha = np.full((steps, len(classes), batch), -np.inf, y.dtype)
    lowest = y.dtype.type(-np.inf)
    shift = np.full((2, batch), lowest, y.dtype)
    for t in range(steps):
        own = y[np.arange(batch), t, classes]
        if t == 0:
            alpha[0, :2] = np.where(lengths > 0, own[:2], lowest)
            continue
        before = alpha[t - 1]
        moved = np.concatenate((shift[:1], before[:-1]))
        hopped = np.where(hops, np.concatenate((shift, before[:-2]))[: len(before)], lowest)
        alpha[t] = np.where(lengths > t, _log_sum(before, moved, hopped) + own, before)
    return _loss(alpha, lengths, label_lengths), alpha


def _loss(alpha: np.ndarray, lengths: np.ndarray, label_lengths: np.ndarray) -> np.ndarray:
    batch = alpha.shape[2]
    if not alpha.shape[0]:
        return np.where(label_lengths == 0, 0, np.inf).astype(alpha.dtype)
    end = 2 * label_lengths
    one = alpha[-1, end, np.arange(batch)]
    other = np.where(end > 0, alpha[-1, np.maximum(end - 1, 0), np.arange(batch)], -np.inf)
    loss = -_log_sum(one, other)
    return np.where(lengths > 0, loss, np.where(end == 0, 0, np.inf)).astype(alpha.dtype)


def _infer_backward(y: Aval, labels: Aval, *rest: Aval, blank: int) -> tuple[Aval, Aval]:
    dtype = one_float(y.dtype)[0]
    return Aval(y.shape, None, dtype), Aval((2 * labels.shape[1] + 1, y.shape[0]), None, dtype)


def _promote_backward(y: np.dtype, *rest: np.dtype) -> tuple[np.dtype, ...]:
    dtype = one_float(y)[0]
    return (dtype, INT64, INT64, INT64, dtype, dtype, dtype)


def _backward(*arrays: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cotangent of y, and what is left of the last pass over the states: beta of the first step, plus y."""
    dtypes = _promote_backward(*[x.dtype for x in arrays])
    y, labels, lengths, label_lengths, alpha, loss, ct = (
        x.astype(dtype, copy=False) for x, dtype in zip(arrays, dtypes, strict=True)
    )
    batch, steps, _ = y.shape
    classes, hops = _states(labels, label_lengths, blank)
    states = len(classes)
    lowest = y.dtype.type(-np.inf)
    dy = np.zeros_like(y)
    work = np.full((states, batch), lowest, y.dtype)
    shift = np.full((2, batch), lowest, y.dtype)
    number = np.arange(states)[:, None]
    begun = np.where((number == 2 * label_lengths) | (number == 2 * label_lengths - 1), 0, lowest)
    cost = np.where(loss == np.inf, lowest, loss)
    for t in reversed(range(steps)):
        own = y[np.arange(batch), t, classes]
        moved = np.concatenate((work[1:], shift[:1]))
        hopped = np.concatenate((np.where(hops, work, lowest)[2:], shift))[:states]
        beta = np.where(lengths == t + 1, begun, _log_sum(work, moved, hopped))
        share = np.where(lengths > t, np.exp(alpha[t] + beta + cost) * ct, 0)
        at: Any = (np.arange(batch), t, classes)
        np.subtract.at(dy, at, share.astype(y.dtype))
        work = np.where(lengths > t, beta + own, lowest).astype(y.dtype)
    return dy, work


def _vjp(b: Any, node: Any, cts: Any) -> Any:
    if cts[0] is None:
        return (None,) * 4
    loss, alpha = node.outputs
    dy, _ = b.ctc_backward(*node.inputs, alpha, loss, cts[0], **node.params)
    return dy, None, None, None


def _numbers(outs: Any, y: Aval, labels: Aval, *rest: Aval, blank: int) -> tuple[int, ...]:
    batch, steps, classes = y.shape
    return (0, -(-batch // UNIT), batch, steps, classes, labels.shape[1], blank)


def _ns(numbers: Sequence[int]) -> float:
    _, _, batch, steps, classes, most, _ = numbers
    return batch * steps * ((2 * most + 1) * _NS_PER_STATE + classes / 8)


_CUT = RangeCut(_ns, lambda numbers: numbers[1])


def _sample(batch: int, steps: int, most: int, classes: int, dtype: str) -> Sample:
    """Return a sample with random lengths and labels, including some that do not fit and cost infinity.

    Its dtype is given, so that differences, which do not exist there, are not taken."""
    shapes = ((batch, steps, classes), (batch, most), (batch,), (batch,))
    kinds = (dtype, "int64", "int64", "int64")
    return Sample(shapes, {"blank": classes - 1}, -2.0, -0.5, kinds, min(most, steps, classes - 1) + 1)


def _backward_sample(sample: Sample) -> Sample:
    (batch, steps, _), (_, most), *_ = sample.shapes
    own = ((steps, 2 * most + 1, batch), (batch,), (batch,))
    kinds = sample.dtypes or ()
    return sample._replace(shapes=(*sample.shapes, *own), dtypes=(*kinds, *kinds[:1] * 3))


_SAMPLES = (_sample(5, 4, 2, 4, "float64"), _sample(2, 2, 3, 5, "float32"))

OPS = (
    Op(name="ctc_forward", doc="minus the logarithm of the probability of the labels, and those of all states at all "
       "steps, saved for the adjoint, which is ctc_backward; infinity for labels that do not fit", kind=Kind.KERNEL,
       infer=_infer, numpy=_forward, promote=_promote, vjp=_vjp, analytic=False, saved=1, samples=_SAMPLES,
       emit=KernelCall("ctc_forward", _numbers, checked=True, cut=_CUT)),
    Op(name="ctc_backward", doc="the cotangent of y: minus ct times the probability of each class at each step; 0 "
       "where the loss is infinite; and scratch memory; no derivative", kind=Kind.KERNEL, infer=_infer_backward,
       numpy=_backward, promote=_promote_backward, vjp=OnlyOnce("ctc"), analytic=False,
       samples=tuple(map(_backward_sample, _SAMPLES)),
       emit=KernelCall("ctc_backward", _numbers, cut=_CUT)),
)  # fmt: skip
