# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of data for training: a call, the error, its text."""

import contextlib
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tracejit as tj
from tracejit import nn
from tracejit.errors import ArgumentError, ArgumentValueError, BoundsError, DimsError, DTypeError, TraceError

X = np.ones((5, 3, 2))
Y = tj.dlarray(np.ones((5, 2), np.float32), "BC")
NET = tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(2)], seed=0)
T = np.arange(5)


def queue(*data: object, **options: object) -> tj.minibatchqueue:
    """Return a queue of two observations at a time."""
    return tj.minibatchqueue(*(data or (X, T)), mini_batch_size=2, **options)  # type: ignore[arg-type]


def train(data: object = (Y, Y), net: object = NET, loss: object = "mse", **options: object) -> object:
    """Train a network."""
    given = tj.trainingoptions("sgdm", max_epochs=1, verbose=False, **options)  # type: ignore[arg-type]
    return tj.trainnet(data, net, loss, given)  # type: ignore[arg-type]


def resumed(net: tj.dlnetwork = NET, solver: str = "sgdm", folder: str = "runs", **options: object) -> object:
    """Train a network that has a checkpoint in the folder "runs", and go on from a folder."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("empty").mkdir()
        Path("file").touch()
        train(checkpoint_path="runs")
        np.savez("file.npz", training=np.array("[]"))
        given = tj.trainingoptions(solver, max_epochs=2, verbose=False, **options)  # type: ignore[arg-type]
        return tj.trainnet((Y, Y), net, "mse", given, resume=folder)


def resumed_without_changes() -> object:
    """Train by L-BFGS, and go on from a checkpoint that lacks an array."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        given = tj.trainingoptions("lbfgs", max_iterations=1, verbose=False, checkpoint_path=".")
        tj.trainnet((Y, Y), NET, "mse", given)
        content = dict(np.load("checkpoint_1.npz"))
        del content["changes"]
        np.savez("part.npz", **content)  # type: ignore[arg-type]
        return tj.trainnet((Y, Y), NET, "mse", given, resume="part.npz")


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
        lambda: queue({"x": 3}),
        ArgumentError,
        "minibatchqueue: data must be an array, a list of observations, or an object with a length whose items are "
        "observations, not {'x': 3}.",
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
        "minibatchqueue: data is a size () without an axis of observations.",
    ),
    (
        lambda: queue(tj.dlarray(X, "SSC")),
        DimsError,
        "minibatchqueue: data of size 5(S) x 3(S) x 2(C) has no axis of observations (B); label one, or pass an "
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
        DTypeError,
        "minibatchqueue: data of type <U3 is not supported as result 0; use float64, float32, float16, bfloat16 (of "
        "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
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
    (
        lambda: tj.trainingoptions("lbfgs", mini_batch_size=8),
        ArgumentError,
        'trainingoptions: mini_batch_size is no option of the solver "lbfgs"; leave it out. It is one of "sgdm", '
        '"adam" or "rmsprop".',
    ),
    (
        lambda: tj.trainingoptions("adam", momentum=0.5),
        ArgumentError,
        'trainingoptions: momentum is no option of the solver "adam"; leave it out. It is one of "sgdm".',
    ),
    (
        lambda: tj.trainnet(queue(Y, Y), NET, "mse", tj.trainingoptions("lbfgs")),
        ArgumentError,
        'trainnet: the solver "lbfgs" takes all observations at once, but data has 3 mini-batches of 2; set '
        "mini_batch_size to 5.",
    ),
    (
        resumed_without_changes,
        ArgumentError,
        "trainnet: resume: part.npz is no checkpoint: it has no array changes.",
    ),
    (
        lambda: train(net="net"),
        ArgumentError,
        "trainnet: net must be a dlnetwork, not 'net'.",
    ),
    (
        lambda: train(3),
        ArgumentError,
        "trainnet: data must be a tuple of inputs and targets, or a minibatchqueue, not 3.",
    ),
    (
        lambda: train((Y[:0], Y[:0])),
        ArgumentError,
        "trainnet: data has 0 observations and no mini-batch of 128.",
    ),
    (
        lambda: train(validation_data=3),
        ArgumentError,
        "trainnet: validation_data must be a tuple of inputs and targets, or a minibatchqueue, not 3.",
    ),
    (
        lambda: train(loss="nll"),
        ArgumentError,
        "trainnet: loss must be a function of outputs and targets, or one of 'crossentropy', 'index-crossentropy', "
        "'binary-crossentropy', 'mse', 'mean-squared-error', 'mae', 'mean-absolute-error', 'huber', 'l1loss', "
        "'l2loss', not 'nll'.",
    ),
    (
        lambda: train(loss=math.sqrt),
        ArgumentError,
        "trainnet: loss is <built-in function sqrt>, which does not take 1 output and 1 target (too many positional "
        "arguments).",
    ),
    (
        lambda: train((Y, Y, Y)),
        ArgumentError,
        "trainnet: the loss 'mse' takes one output and its targets, but the outputs of the network and the targets in "
        "data are 3 arrays together; pass a function of these as loss.",
    ),
    (
        lambda: train(metrics={"all": lambda y, t: "none"}),
        ArgumentError,
        "trainnet: all is 'none', expected one number; reduce it, as mean() does.",
    ),
    (
        lambda: tj.trainnet((Y, Y), NET, "mse", {"max_epochs": 3}),  # type: ignore[arg-type]
        ArgumentError,
        "trainnet: options must be those that trainingoptions() returns, not {'max_epochs': 3}.",
    ),
    (
        lambda: tj.trainnet((Y, Y), NET, "mse", resume=3),
        ArgumentError,
        "trainnet: resume must be the path of a checkpoint or of a folder with some, not 3.",
    ),
    (
        lambda: tj.trainnet((Y, Y), NET, "mse", resume="no/such.npz"),
        ArgumentError,
        "trainnet: resume: no/such.npz cannot be read (No such file or directory).",
    ),
    (
        lambda: tj.trainingoptions("sgd"),
        ArgumentError,
        'trainingoptions: solver must be "sgdm", "adam", "rmsprop" or "lbfgs", not \'sgd\'.',
    ),
    (
        lambda: tj.trainingoptions("adam", shuffle="always"),
        ArgumentError,
        'trainingoptions: shuffle must be "once", "never" or "every-epoch", not \'always\'.',
    ),
    (
        lambda: tj.trainingoptions("adam", learn_rate_schedule="linear"),
        ArgumentError,
        'trainingoptions: learn_rate_schedule must be "none", "piecewise" or "cosine", or a function, not \'linear\'.',
    ),
    (
        lambda: tj.trainingoptions("adam", max_epochs=0),
        ArgumentValueError,
        "trainingoptions: max_epochs must be at least 1, not 0.",
    ),
    (
        lambda: tj.trainingoptions("adam", momentum=1.0),
        ArgumentValueError,
        "trainingoptions: momentum must be from 0 to less than 1, not 1.0.",
    ),
    (
        lambda: tj.trainingoptions("adam", epsilon=-1.0),
        ArgumentValueError,
        "trainingoptions: epsilon must be 0 or more, not -1.0.",
    ),
    (
        lambda: tj.trainingoptions("adam", gradient_threshold=0),
        ArgumentValueError,
        "trainingoptions: gradient_threshold must be more than 0, not 0.",
    ),
    (
        lambda: tj.trainingoptions("adam", metrics={"loss": max}),
        ArgumentError,
        'trainingoptions: metrics must be a dict with a function for each name other than "iteration", "epoch", '
        '"learn_rate", "loss", "gradient_norm" or "step_norm", not {\'loss\': <built-in function max>}.',
    ),
    (
        lambda: tj.trainingoptions("adam", output_fcn=3),  # type: ignore[arg-type]
        ArgumentError,
        "trainingoptions: output_fcn must be a function or None, not 3.",
    ),
    (
        lambda: tj.trainingoptions("adam", checkpoint_path=3),  # type: ignore[arg-type]
        ArgumentError,
        "trainingoptions: checkpoint_path must be the path of a folder or None, not 3.",
    ),
    (
        lambda: resumed(folder="empty"),
        ArgumentError,
        "trainnet: resume: the folder empty has no checkpoint.",
    ),
    (
        lambda: resumed(solver="adam"),
        ArgumentError,
        "trainnet: resume: runs/checkpoint_1.npz is of another training: its solver is 'sgdm', not 'adam'.",
    ),
    (
        lambda: resumed(tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(3)], seed=0)),
        ArgumentError,
        "trainnet: resume: runs/checkpoint_1.npz is of another network: for fc/weights of (3, 2) float32 it has one of "
        "(2, 2) float32. Pass the network that was trained.",
    ),
    (
        lambda: resumed(checkpoint_path="file"),
        ArgumentError,
        "trainnet: the checkpoint file/checkpoint_2.npz cannot be written (File exists); set checkpoint_path to a "
        "folder of your own.",
    ),
    (
        lambda: resumed(folder="file.npz"),
        ArgumentError,
        "trainnet: resume: file.npz cannot be read (it is no checkpoint).",
    ),
    (
        lambda: train(loss=lambda y, t: np.arange(2)),
        ArgumentError,
        "trainnet: loss is array([0, 1]), expected one number; reduce it, as mean() does.",
    ),
    (
        lambda: queue([(1, 2), (3,)]).next(),
        DimsError,
        "minibatchqueue: observations 0 and 1 have 2 parts and 1; the tuples of a list or data set must have the same "
        "parts.",
    ),
)
