# SPDX-License-Identifier: BSD-3-Clause
"""trainingoptions: how trainnet trains, checked when it is said."""

import inspect
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.optim.lbfgs import step_size
from tracejit.optim.line_search import METHODS
from tracejit.util.arguments import flag, is_option, number_of_things, positive, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, one_of

_FUNCTION = "trainingoptions"
SOLVERS = {"sgdm": 0.01, "adam": 0.001, "rmsprop": 0.001, "lbfgs": 1.0}
"""The initial learning rates by solver; "lbfgs" has none, and searches along lines instead."""
_BY_GRADIENTS = ("sgdm", "adam", "rmsprop")
_SOLVERS_WITH = {  # the options that not all solvers have
    **dict.fromkeys(
        (
            "max_epochs", "mini_batch_size", "initial_learn_rate", "learn_rate_schedule", "learn_rate_drop_period",
            "learn_rate_drop_factor", "gradient_threshold", "gradient_threshold_method", "shuffle",
        ),
        _BY_GRADIENTS,
    ),
    "momentum": ("sgdm",),
    "gradient_decay_factor": ("adam",),
    "squared_gradient_decay_factor": ("adam", "rmsprop"),
    "epsilon": ("adam", "rmsprop"),
    **dict.fromkeys(
        (
            "max_iterations", "gradient_tolerance", "step_tolerance", "history_size",
            "initial_inverse_hessian_factor", "initial_step_size", "line_search_method",
            "max_num_line_search_iterations",
        ),
        ("lbfgs",),
    ),
}  # fmt: skip
_CHOICES = {
    "learn_rate_schedule": ("none", "piecewise", "cosine"),
    "gradient_threshold_method": ("l2norm", "global-l2norm", "absolute-value"),
    "shuffle": ("once", "never", "every-epoch"),
    "output_network": ("last-iteration", "best-validation"),
    "checkpoint_frequency_unit": ("epoch", "iteration"),
    "acceleration": ("auto", "none"),
    "line_search_method": tuple(METHODS),
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
    max_iterations: int
    gradient_tolerance: float
    step_tolerance: float
    history_size: int
    initial_inverse_hessian_factor: float
    initial_step_size: float | str | None
    line_search_method: str
    max_num_line_search_iterations: int
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

    @property
    def limit(self) -> str:
        """The option that limits the number of passes over the data."""
        return "max_iterations" if self.solver == "lbfgs" else "max_epochs"

    @property
    def epochs(self) -> int:
        """The largest number of passes over the data; an iteration of "lbfgs" is one."""
        return int(getattr(self, self.limit))

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
    max_iterations: int = 1000,
    gradient_tolerance: float = 1e-5,
    step_tolerance: float = 1e-5,
    history_size: int = 10,
    initial_inverse_hessian_factor: float = 1.0,
    initial_step_size: float | str | None = None,
    line_search_method: str = "weak-wolfe",
    max_num_line_search_iterations: int = 20,
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
        solver: "sgdm", "adam" or "rmsprop", whose steps take a mini-batch each; or "lbfgs", whose iterations take all
            data. Options that the solver does not have are errors.
        max_epochs: number of passes over the data; of all solvers but "lbfgs", as all options down to `epsilon`, and
            `shuffle`; only `l2_regularization` is one of "lbfgs" too.
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
        max_iterations: of "lbfgs", as all options down to `max_num_line_search_iterations`.
        gradient_tolerance: training ends where the norm of the gradients is at most this times the norm of the
            learnables, or times 1 if that is smaller.
        step_tolerance: training ends after a step whose norm is at most this.
        history_size: number of earlier steps that lbfgsupdate learns curvature from.
        initial_inverse_hessian_factor: the first direction is the negative gradient times this number.
        initial_step_size: largest element of the first step, "auto", or None, as lbfgsupdate takes it.
        line_search_method: "weak-wolfe", "strong-wolfe" or "backtracking".
        max_num_line_search_iterations: number of evaluations in a line search.
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
        raise ArgumentError(f"{_FUNCTION}: solver must be {one_of(SOLVERS)}, not {brief(solver)}.")
    chosen = {name: _choice(name, given[name]) for name in _CHOICES}
    counts: dict[str, Any] = {
        name: number_of_things(_FUNCTION, name, given[name])
        for name in (
            "max_epochs", "mini_batch_size", "learn_rate_drop_period", "validation_frequency", "verbose_frequency",
            "checkpoint_frequency", "max_iterations", "history_size", "max_num_line_search_iterations",
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
                "gradient_decay_factor", "epsilon", "validation_patience", "gradient_tolerance", "step_tolerance",
            )
        },
    }  # fmt: skip
    found: dict[str, Any] = {name: _number(name, number) for name, number in numbers.items()}
    options = TrainingOptions(
        solver=solver,
        **counts,
        **found,
        **chosen,
        initial_inverse_hessian_factor=positive(
            _FUNCTION, "initial_inverse_hessian_factor", given["initial_inverse_hessian_factor"]
        ),
        initial_step_size=step_size(_FUNCTION, given["initial_step_size"]),
        validation_data=given["validation_data"],
        metrics=_metrics(given["metrics"]),
        output_fcn=_function("output_fcn", given["output_fcn"]),
        verbose=flag(_FUNCTION, "verbose", given["verbose"]),
        checkpoint_path=_path(given["checkpoint_path"]),
    )
    _check_solver_has(options, given)
    return options._replace(shuffle="never") if solver == "lbfgs" else options


def _check_solver_has(options: TrainingOptions, given: dict[str, Any]) -> None:
    """Check that the solver has all options that were given with other values than they have by default."""
    parameters = inspect.signature(trainingoptions).parameters
    for name, solvers in _SOLVERS_WITH.items():
        default = parameters[name].default
        changed = given[name] is not None if default is None else getattr(options, name) != default
        if changed and options.solver not in solvers:
            raise ArgumentError(
                f'{_FUNCTION}: {name} is no option of the solver "{options.solver}"; leave it out. It is one of '
                f"{one_of(solvers)}."
            )


def _choice(name: str, value: Any) -> Any:
    if is_option(value, _CHOICES[name]) or (name == "learn_rate_schedule" and callable(value)):
        return value
    function = ", or a function" if name == "learn_rate_schedule" else ""
    raise ArgumentError(
        f"{_FUNCTION}: {name} must be {one_of(_CHOICES[name])}{function}, not {brief(value)}."
    )


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
    taken = ("iteration", "epoch", "learn_rate", "loss", "gradient_norm", "step_norm")
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and name not in taken and callable(function) for name, function in given.items()
    ):
        raise ArgumentError(
            f"{_FUNCTION}: metrics must be a dict with a function for each name other than {one_of(taken)}, not "
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
