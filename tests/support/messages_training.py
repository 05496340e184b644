# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of data for training: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, ArgumentValueError, BoundsError, DimsError, TraceError

X = np.ones((5, 3, 2))
T = np.arange(5)


def queue(*data: object, **options: object) -> tj.minibatchqueue:
    """Return a queue of two observations at a time."""
    return tj.minibatchqueue(*(data or (X, T)), mini_batch_size=2, **options)  # type: ignore[arg-type]


def empty() -> tj.minibatchqueue:
    """Return a queue whose mini-batches were taken."""
    taken = queue()
    list(taken)
    return taken


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        tj.minibatchqueue,
        ArgumentError,
        "minibatchqueue: data is missing; pass one or more arrays or lists of observations.",
    ),
    (
        lambda: queue({"x": X}),
        ArgumentError,
        "minibatchqueue: data must be an array, a list of observations, or an object with a length whose items are "
        "observations, not {'x': array([[[1., 1.], [1., 1.], [1., 1.]], [[1., 1.], [1., 1.], [1., 1....",
    ),
    (
        lambda: queue(X, 3),
        ArgumentError,
        "minibatchqueue: data[1] must be an array, a list of observations, or an object with a length whose items are "
        "observations, not 3.",
    ),
    (
        lambda: queue(np.array(1.0)),
        DimsError,
        "minibatchqueue: data is a scalar float64 without an axis of observations.",
    ),
    (
        lambda: queue(tj.dlarray(X, "SSC")),
        DimsError,
        "minibatchqueue: data of 5(S) x 3(S) x 2(C) float64 has no axis of observations (B); label one, or pass an "
        "array without labels, whose observations lie along the first axis.",
    ),
    (
        lambda: queue(X, T[:3]),
        DimsError,
        "minibatchqueue: data[0] has 5 observations and data[1] 3; the numbers must be equal.",
    ),
    (
        lambda: tj.minibatchqueue(X, mini_batch_size=0),
        ArgumentValueError,
        "minibatchqueue: mini_batch_size must be at least 1, not 0.",
    ),
    (
        lambda: queue(mini_batch_fcn="pad"),
        ArgumentError,
        "minibatchqueue: mini_batch_fcn must be a function or None, not 'pad'.",
    ),
    (
        lambda: queue(mini_batch_format=["BSC", "B"]),
        ArgumentError,
        "minibatchqueue: mini_batch_format must be labels, a tuple with labels or None for each result, or None, not "
        "['BSC', 'B'].",
    ),
    (
        lambda: queue(output_cast="single precision"),
        ArgumentError,
        "minibatchqueue: output_cast: dtype must be a NumPy dtype such as np.float32, not 'single precision'.",
    ),
    (
        lambda: queue(partial_mini_batch="drop"),
        ArgumentError,
        'minibatchqueue: partial_mini_batch must be "return" or "discard", not \'drop\'.',
    ),
    (
        lambda: queue(mini_batch_format=("BSC",)).next(),
        ArgumentError,
        "minibatchqueue: mini_batch_format has 1 entry for 2 results of a mini-batch; give one for each.",
    ),
    (
        lambda: queue(mini_batch_format="BC").next(),
        DimsError,
        "minibatchqueue: mini_batch_format 'BC' labels 2 axes, but the data has 3; give one label for each axis (U "
        "where an axis has no meaning).",
    ),
    (
        lambda: queue([np.ones(2), np.ones(3)]).next(),
        DimsError,
        "minibatchqueue: observations of result 0 have sizes 2 and 3; pad them to one size in mini_batch_fcn, which "
        "gets a list.",
    ),
    (
        lambda: queue(["cat", "dog"]).next(),
        ArgumentError,
        "minibatchqueue: observations of result 0 are 'cat' and the like, not numbers; make arrays of them in "
        "mini_batch_fcn.",
    ),
    (
        lambda: empty().next(),
        BoundsError,
        "minibatchqueue.next: all 3 mini-batches were taken; call reset or shuffle, or ask hasdata first.",
    ),
    (
        lambda: tj.dlfeval(lambda x, taken: x * taken.next()[0], tj.dlarray(1.0), queue()),
        TraceError,
        "minibatchqueue.next: a function is being recorded, and each of its replays would take the same mini-batch. "
        "Take it outside, and pass its arrays.",
    ),
    (
        lambda: queue().shuffle(5),  # type: ignore[arg-type]
        ArgumentError,
        "minibatchqueue.shuffle: generator must be a Generator or None, not 5.",
    ),
    (
        lambda: queue().partition(2, 2),
        ArgumentValueError,
        "minibatchqueue.partition: index must be from 0 to num_partitions - 1, not 2 of 2.",
    ),
    (
        lambda: queue().restore({"position": 4, "shuffle": None}),
        ArgumentError,
        "minibatchqueue.restore: state must be that of a queue of 3 mini-batches, not {'position': 4, 'shuffle': "
        "None}.",
    ),
)
