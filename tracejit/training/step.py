# SPDX-License-Identifier: BSD-3-Clause
"""A step of training in one accelerated function, loss, gradients and update; and what validation computes.

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
from tracejit.optim import adamupdate, clipgradients, dlupdate, rmspropupdate, sgdmupdate
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
        leaves, treedef = tree.flatten(arguments)
        sizes = treedef, tuple([(leaf.shape, leaf.dtype, leaf.format) for leaf in leaves])
        for _ in range(0 if sizes in self._seen else 2):
            with rng():
                self._function(net, *arguments)
        self._seen.add(sizes)
        return self._function(net, *arguments)


class TrainingStep:
    """One step of training, and the evaluation of a network, with the loss and the options of a training.

    Args:
        loss: function of outputs and targets.
        options: of the training.
        inputs: the number of inputs of the network; the other arrays of a mini-batch are targets.
    """

    def __init__(self, loss: Function, options: TrainingOptions, inputs: int) -> None:
        self._loss = loss
        self._options = options
        self._inputs = inputs
        if options.acceleration == "auto":
            self._train: Function = _Replayed(dlaccelerate(self._trained, audit=False))
            self._evaluate: Function = _Replayed(dlaccelerate(self._evaluated, audit=False))
        else:
            self._train = lambda *arguments: dlfeval(self._trained, *arguments)
            self._evaluate = lambda *arguments: dlfeval(self._evaluated, *arguments)

    def moments(self, net: dlnetwork) -> tuple[Any, ...]:
        """Return the moving averages of the solver before the first step."""
        zeros = dlupdate(lambda w: w * 0.0, net.learnables)
        return (zeros, zeros) if self._options.solver == "adam" else (zeros,)

    def train(
        self, net: dlnetwork, moments: tuple[Any, ...], batch: tuple[Any, ...], rate: float, iteration: int
    ) -> tuple[dlnetwork, tuple[Any, ...], dict[str, float]]:
        """Return the network and the moving averages after a step, and its loss and metrics."""
        net, moments, values = self._train(
            net, moments, batch, dlarray(float(rate)), dlarray(float(iteration))
        )
        return net, moments, numbers_of(values)

    def evaluate(self, net: dlnetwork, batch: tuple[Any, ...]) -> dict[str, float]:
        """Return the loss and the metrics of a network for a mini-batch, as after training."""
        return numbers_of(self._evaluate(net, batch))

    def _trained(self, net: Any, moments: Any, batch: Any, rate: Any, iteration: Any) -> Any:
        *outputs, state = net.forward(*batch[: self._inputs])
        loss = self._number("loss", self._loss, outputs, batch)
        gradients = self._limited(self._regularized(net, dlgradient(loss, net.learnables)))
        values = self._values(loss, outputs, batch)  # metrics have no derivative, so math.sqrt may be one
        options = self._options
        net = net._with_state_for_others(state)  # the next mini-batch has sequences of its own
        if options.solver == "adam":
            net, *moments = adamupdate(
                net, gradients, moments[0], moments[1], iteration, rate, options.gradient_decay_factor,
                options.squared_gradient_decay_factor, options.epsilon,
            )  # fmt: skip
        elif options.solver == "rmsprop":
            net, *moments = rmspropupdate(
                net, gradients, moments[0], rate, options.squared_gradient_decay_factor, options.epsilon
            )
        else:
            net, *moments = sgdmupdate(net, gradients, moments[0], rate, options.momentum)
        return net, tuple(moments), values

    def _evaluated(self, net: Any, batch: Any) -> Any:
        outputs = net.predict(*batch[: self._inputs])
        outputs = [*outputs] if isinstance(outputs, tuple) else [outputs]
        return self._values(self._number("loss", self._loss, outputs, batch), outputs, batch)

    def _values(self, loss: Any, outputs: list[Any], batch: Any) -> dict[str, Any]:
        metrics = self._options.metrics
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
        rate = self._options.l2_regularization
        if not rate:
            return gradients
        return dlupdate(lambda g, w, factor: g + rate * factor * w, gradients, net.learnables, net.l2_factors)

    def _limited(self, gradients: Any) -> Any:
        options = self._options
        return clipgradients(gradients, options.gradient_threshold, options.gradient_threshold_method)


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
