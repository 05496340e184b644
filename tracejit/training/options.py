# SPDX-License-Identifier: BSD-3-Clause
"""trainingoptions: how trainnet trains, checked when it is said."""

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.util.arguments import flag, integer, is_option, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_FUNCTION = "trainingoptions"
SOLVERS = {"sgdm": 0.01, "adam": 0.001, "rmsprop": 0.001}
"""The initial learning rates by solver."""
_CHOICES = {
    "learn_rate_schedule": ("none", "piecewise", "cosine"),
    "gradient_threshold_method": ("l2norm", "global-l2norm", "absolute-value"),
    "shuffle": ("once", "never", "every-epoch"),
    "output_network": ("last-iteration", "best-validation"),
    "checkpoint_frequency_unit": ("epoch", "iteration"),
    "acceleration": ("auto", "none"),
}


class TrainingOptions(NamedTuple):
    """The options of a training, as trainingoptions() checked them; its arguments tell what they mean."""

    solver: str
    max_epochs: int
    mini_batch_size: int
    initial_learn_rate: float
    learn_rate_schedule: Any
    learn_rate_drop_period: int
    learn_rate_drop_factor: float
    l2_regularization: float
    gradient_threshold: float
    gradient_threshold_method: str
    momentum: float
    gradient_decay_factor: float
    squared_gradient_decay_factor: float
    epsilon: float
    shuffle: str
    validation_data: Any
    validation_frequency: int
    validation_patience: float
    output_network: str
    metrics: Mapping[str, Callable[..., Any]]
    output_fcn: Callable[[dict[str, Any]], Any] | None
    verbose: bool
    verbose_frequency: int
    checkpoint_path: str | None
    checkpoint_frequency: int
    checkpoint_frequency_unit: str
    acceleration: str

    def rate(self, epoch: int, iteration: int, iterations: int) -> float:
        """Return the learning rate of an iteration.

        Args:
            epoch: from 1 on.
            iteration: from 1 on.
            iterations: number of all iterations.

        Raises:
            ArgumentError: a function that is the schedule returns no number, or one less than 0.
        """
        schedule, rate = self.learn_rate_schedule, self.initial_learn_rate
        if schedule == "piecewise":
            return float(rate * self.learn_rate_drop_factor ** ((epoch - 1) // self.learn_rate_drop_period))
        if schedule == "cosine":
            return rate * 0.5 * (1.0 + math.cos(math.pi * (iteration - 1) / iterations))
        if schedule == "none":
            return rate
        return _number("the result of learn_rate_schedule", schedule(rate, epoch, iteration))


def trainingoptions(
    solver: str,
    *,
    max_epochs: int = 30,
    mini_batch_size: int = 128,
    initial_learn_rate: float | None = None,
    learn_rate_schedule: str | Callable[[float, int, int], float] = "none",
    learn_rate_drop_period: int = 10,
    learn_rate_drop_factor: float = 0.1,
    l2_regularization: float = 1e-4,
    gradient_threshold: float = math.inf,
    gradient_threshold_method: str = "l2norm",
    momentum: float = 0.9,
    gradient_decay_factor: float = 0.9,
    squared_gradient_decay_factor: float | None = None,
    epsilon: float = 1e-8,
    shuffle: str = "once",
    validation_data: Any = None,
    validation_frequency: int = 50,
    validation_patience: float = math.inf,
    output_network: str = "last-iteration",
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    output_fcn: Callable[[dict[str, Any]], Any] | None = None,
    verbose: bool = True,
    verbose_frequency: int = 50,
    checkpoint_path: str | os.PathLike[str] | None = None,
    checkpoint_frequency: int = 1,
    checkpoint_frequency_unit: str = "epoch",
    acceleration: str = "auto",
) -> TrainingOptions:
    """Return the options of a training for trainnet.

    Args:
        solver: "sgdm", "adam" or "rmsprop".
        max_epochs: number of passes over the data.
        mini_batch_size: number of observations in a step, unless the data are a minibatchqueue.
        initial_learn_rate: by default 0.01 for "sgdm", else 0.001.
        learn_rate_schedule: "none"; "piecewise", which multiplies the rate by `learn_rate_drop_factor` after each
            `learn_rate_drop_period` epochs; "cosine", half a period down to 0; or a function of the initial rate, the
            epoch and the iteration, both from 1 on.
        learn_rate_drop_period: epochs.
        learn_rate_drop_factor: number from 0 to 1.
        l2_regularization: factor of the weights that is added to their gradients, times their own (net.l2_factors).
        gradient_threshold: larger gradients are made smaller.
        gradient_threshold_method: what is compared with it: the "l2norm" of each gradient, the "global-l2norm" of all
            of them, or each "absolute-value".
        momentum: of "sgdm".
        gradient_decay_factor: of "adam".
        squared_gradient_decay_factor: by default 0.999 for "adam", 0.9 for "rmsprop".
        epsilon: of "adam" and "rmsprop".
        shuffle: when to put the observations in a random order: "once" before training, "never", or "every-epoch".
        validation_data: data that the network is not trained with, as those of trainnet, or None.
        validation_frequency: number of iterations between two validations; the last iteration has one too.
        validation_patience: how many times in a row the loss of validation may be no smaller than the smallest one,
            before training stops.
        output_network: "last-iteration", or "best-validation" for the network with the smallest loss of validation.
        metrics: functions of the outputs and the targets, by name, such as {"error": lambda y, t: abs(y - t).mean()}.
        output_fcn: function that gets each row of the history as a dict; training stops where it returns True.
        verbose: whether to print rows of the history.
        verbose_frequency: number of iterations between two rows.
        checkpoint_path: folder for checkpoints, from each of which training can go on; None for none.
        checkpoint_frequency: number of epochs, or iterations, between two checkpoints.
        checkpoint_frequency_unit: "epoch" or "iteration".
        acceleration: "auto", or "none" to run each step uncompiled.

    Raises:
        ArgumentError: an option is not valid.

    Examples:
        >>> import tracejit as tj
        >>> options = tj.trainingoptions("adam", max_epochs=5, learn_rate_schedule="piecewise", verbose=False)
        >>> options.initial_learn_rate, options.rate(epoch=11, iteration=1, iterations=1)
        (0.001, 0.0001)
    """
    return _checked(locals())


def _checked(given: dict[str, Any]) -> TrainingOptions:
    solver = given["solver"]
    if not is_option(solver, SOLVERS):
        raise ArgumentError(f"{_FUNCTION}: solver must be {_listed(tuple(SOLVERS))}, not {brief(solver)}.")
    chosen = {name: _choice(name, given[name]) for name in _CHOICES}
    counts: dict[str, Any] = {
        name: _count(name, given[name])
        for name in (
            "max_epochs", "mini_batch_size", "learn_rate_drop_period", "validation_frequency", "verbose_frequency",
            "checkpoint_frequency",
        )
    }  # fmt: skip
    decay, rate = given["squared_gradient_decay_factor"], given["initial_learn_rate"]
    numbers = {
        "initial_learn_rate": SOLVERS[solver] if rate is None else rate,
        "squared_gradient_decay_factor": (0.9 if solver == "rmsprop" else 0.999) if decay is None else decay,
        **{
            name: given[name]
            for name in (
                "learn_rate_drop_factor", "l2_regularization", "gradient_threshold", "momentum",
                "gradient_decay_factor", "epsilon", "validation_patience",
            )
        },
    }  # fmt: skip
    found: dict[str, Any] = {name: _number(name, number) for name, number in numbers.items()}
    return TrainingOptions(
        solver=solver,
        **counts,
        **found,
        **chosen,
        validation_data=given["validation_data"],
        metrics=_metrics(given["metrics"]),
        output_fcn=_function("output_fcn", given["output_fcn"]),
        verbose=flag(_FUNCTION, "verbose", given["verbose"]),
        checkpoint_path=_path(given["checkpoint_path"]),
    )


def _listed(options: tuple[str, ...]) -> str:
    quoted = [f'"{option}"' for option in options]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _choice(name: str, value: Any) -> Any:
    if is_option(value, _CHOICES[name]) or (name == "learn_rate_schedule" and callable(value)):
        return value
    function = ", or a function" if name == "learn_rate_schedule" else ""
    raise ArgumentError(
        f"{_FUNCTION}: {name} must be {_listed(_CHOICES[name])}{function}, not {brief(value)}."
    )


def _count(name: str, value: Any) -> int:
    number = integer(_FUNCTION, name, value)
    if number < 1:
        raise ArgumentValueError(f"{_FUNCTION}: {name} must be at least 1, not {number}.")
    return number


def _number(name: str, value: Any) -> float:
    number = float(real(_FUNCTION, name, value))
    if name in ("gradient_threshold", "validation_patience") and not number > 0.0:
        raise ArgumentValueError(f"{_FUNCTION}: {name} must be more than 0, not {brief(value)}.")
    limit = (
        1.0 if name in ("momentum", "gradient_decay_factor", "squared_gradient_decay_factor") else math.inf
    )
    if not 0.0 <= number <= limit or (number == 1.0 == limit):
        least = "from 0 to less than 1" if limit == 1.0 else "0 or more"
        raise ArgumentValueError(f"{_FUNCTION}: {name} must be {least}, not {brief(value)}.")
    return number


def _metrics(given: Any) -> Mapping[str, Callable[..., Any]]:
    if given is None:
        return {}
    taken = ("iteration", "epoch", "learn_rate", "loss")
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and name not in taken and callable(function) for name, function in given.items()
    ):
        raise ArgumentError(
            f"{_FUNCTION}: metrics must be a dict with a function for each name other than {_listed(taken)}, not "
            f"{brief(given)}."
        )
    return dict(given)


def _function(name: str, given: Any) -> Any:
    if given is not None and not callable(given):
        raise ArgumentError(f"{_FUNCTION}: {name} must be a function or None, not {brief(given)}.")
    return given


def _path(given: Any) -> str | None:
    if given is None:
        return None
    try:
        return os.fsdecode(given)
    except Exception:
        raise ArgumentError(
            f"{_FUNCTION}: checkpoint_path must be the path of a folder or None, not {brief(given)}."
        ) from None
