# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a step of training that all solvers have, loss, metrics and gradients; and the evaluation of networks.

Note [replays only]
The first two calls of an accelerated function with arrays of some sizes are recorded, uncompiled, and may differ from
replays in the last bit. A training that goes on from a checkpoint makes its first calls at another iteration, so it
would not be the same training. So the first call for each size is made three times, and the last one, a replay, is what
counts; the results of the others are dropped, and the random numbers that they drew are given back. For the same reason
nothing is recorded anew from time to time (audits).
"""

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from tracejit import tree
from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.functions.layers.class_losses import indexcrossentropy
from tracejit.functions.layers.losses import crossentropy, huber, l1loss, l2loss, mse
from tracejit.functions.random import rng
from tracejit.nn.network import dlnetwork
from tracejit.optim.updates import dlupdate
from tracejit.training.checkpoint import Checkpoint, Saved
from tracejit.training.options import TrainingOptions
from tracejit.util.text import brief, count

Function = Callable[..., Any]


def _mean_absolute_error(y: Any, targets: Any) -> dlarray:
    return l1loss(y, targets, normalization_factor="all-elements")


def _binary_crossentropy(y: Any, targets: Any) -> dlarray:
    return crossentropy(y, targets, classification_mode="multilabel")


LOSSES: dict[str, Function] = {
    "crossentropy": crossentropy,
    "index-crossentropy": indexcrossentropy,
    "binary-crossentropy": _binary_crossentropy,
    "mse": mse,
    "mean-squared-error": mse,
    "mae": _mean_absolute_error,
    "mean-absolute-error": _mean_absolute_error,
    "huber": huber,
    "l1loss": l1loss,
    "l2loss": l2loss,
}
"""The losses by name: functions of outputs and targets."""


def loss_of(given: Any) -> Function:
    """Return a loss that was given by its name or as a function.

    Raises:
        ArgumentError: it is neither.
    """
    if isinstance(given, str) and given in LOSSES:
        return _Named(given)
    if isinstance(given, (str, type)) or not callable(given):
        raise ArgumentError(
            f"trainnet: loss must be a function of outputs and targets, or one of {', '.join(map(repr, LOSSES))}, not "
            f"{brief(given)}."
        )
    return given  # type: ignore[no-any-return]


class _Named:
    """A loss by its name, which takes one output and its targets."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arrays: Any) -> Any:
        if len(arrays) != 2:
            raise ArgumentError(
                f"trainnet: the loss {self.name!r} takes one output and its targets, but the outputs of the network "
                f"and the targets in data are {len(arrays)} arrays together; pass a function of these as loss."
            )
        return LOSSES[self.name](*arrays)


class _Replayed:
    """An accelerated function of which replays alone count (Note [replays only])."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._seen: set[Hashable] = set()

    def __call__(self, net: Any, *arguments: Any) -> Any:
        # With the state: its dtype after the first step may be another one, for which the function is recorded again.
        leaves, treedef = tree.flatten((net.state, arguments))
        sizes = treedef, tuple([(leaf.shape, leaf.dtype, leaf.format) for leaf in leaves])
        for _ in range(0 if sizes in self._seen else 2):
            with rng():
                self._function(net, *arguments)
        self._seen.add(sizes)
        return self._function(net, *arguments)


class TrainingStep:
    """A step of training by one of the solvers, and the evaluation of a network, with a loss and options.

    Args:
        loss: function of outputs and targets.
        options: of the training.
        inputs: the number of inputs of the network; the other arrays of a mini-batch are targets.
    """

    def __init__(self, loss: Function, options: TrainingOptions, inputs: int) -> None:
        self._loss = loss
        self.options = options
        self._inputs = inputs
        self._evaluate = self.compiled(self._evaluated)

    def compiled(self, function: Function) -> Function:
        """Return the function accelerated, or evaluated uncompiled if that is what the options say."""
        if self.options.acceleration == "auto":
            return _Replayed(dlaccelerate(function, audit=False))
        return lambda *arguments: dlfeval(function, *arguments)

    def begin(self, net: dlnetwork) -> Any:
        """Return the state of the solver before the first step."""
        raise NotImplementedError

    def train(
        self, net: dlnetwork, state: Any, batch: tuple[Any, ...], rate: float, iteration: int
    ) -> tuple[dlnetwork, Any, dict[str, float]]:
        """Return the network and the state of the solver after a step, and the row of the history."""
        raise NotImplementedError

    def ended(self, net: dlnetwork, state: Any) -> str | None:
        """Return why the solver ends the training, or None."""
        return None

    def saved(self, state: Any) -> Saved:
        """Return what a checkpoint has of the state of the solver."""
        raise NotImplementedError

    def restored(self, checkpoint: Checkpoint, net: dlnetwork) -> Any:
        """Return the state of the solver in a checkpoint."""
        raise NotImplementedError

    def evaluate(self, net: dlnetwork, batch: tuple[Any, ...]) -> dict[str, float]:
        """Return the loss and the metrics of a network for a mini-batch, as after training."""
        return numbers_of(self._evaluate(net, batch))

    def differentiated(self, net: Any, batch: Any) -> tuple[dict[str, Any], Any, Any]:
        """Return the loss and the metrics, the gradients with those of regularisation, and the network's next state."""
        *outputs, state = net.forward(*batch[: self._inputs])
        loss = self._number("loss", self._loss, outputs, batch)
        gradients = self._regularized(net, dlgradient(loss, net.learnables))
        values = self._values(loss, outputs, batch)  # metrics have no derivative, so math.sqrt may be one
        return values, gradients, state

    def _evaluated(self, net: Any, batch: Any) -> Any:
        outputs = net.predict(*batch[: self._inputs])
        outputs = [*outputs] if isinstance(outputs, tuple) else [outputs]
        return self._values(self._number("loss", self._loss, outputs, batch), outputs, batch)

    def _values(self, loss: Any, outputs: list[Any], batch: Any) -> dict[str, Any]:
        metrics = self.options.metrics
        return {"loss": loss} | {
            name: self._number(name, metric, outputs, batch) for name, metric in metrics.items()
        }

    def _number(self, name: str, function: Function, outputs: list[Any], batch: Any) -> Any:
        """Return the loss, or a metric, of outputs and of the targets of a mini-batch."""
        targets = batch[self._inputs :]
        _check_takes(name, function, len(outputs), len(targets))
        value = function(*outputs, *targets)
        if getattr(value, "size", 1) != 1:
            raise _no_number(name, value)
        return value

    def _regularized(self, net: Any, gradients: Any) -> Any:
        rate = self.options.l2_regularization
        if not rate:
            return gradients
        return dlupdate(lambda g, w, factor: g + rate * factor * w, gradients, net.learnables, net.l2_factors)


def _check_takes(name: str, function: Function, outputs: int, targets: int) -> None:
    """Check that a function can be called with so many outputs and targets, as far as it tells."""
    try:
        inspect.signature(function).bind(*range(outputs + targets))
    except TypeError as error:
        raise ArgumentError(
            f"trainnet: {name} is {brief(function)}, which does not take {count(outputs, 'output')} and "
            f"{count(targets, 'target')} ({error})."
        ) from None
    except ValueError:  # a function of C may have no signature
        return


def numbers_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return values of one element as numbers of Python.

    Raises:
        ArgumentError: one has several elements, or is no number.
    """
    found = {}
    for name, value in values.items():
        try:
            found[name] = float(value)
        except (TypeError, ValueError):
            raise _no_number(name, value) from None
    return found


def _no_number(name: str, value: Any) -> ArgumentError:
    return ArgumentError(
        f"trainnet: {name} is {brief(value)}, expected one number; reduce it, as mean() does."
    )
