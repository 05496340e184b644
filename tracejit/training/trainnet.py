# SPDX-License-Identifier: BSD-3-Clause
"""trainnet: trains a network with data, a loss and options, and goes on where a checkpoint stopped."""

import copy
import math
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.functions.random import rng
from tracejit.functions.rng import RngState
from tracejit.nn.network import dlnetwork
from tracejit.training.checkpoint import Checkpoint, latest, save, tables_of
from tracejit.training.gradient_steps import GradientStep
from tracejit.training.lbfgs_step import LbfgsStep
from tracejit.training.minibatches import minibatchqueue
from tracejit.training.options import TrainingOptions, trainingoptions
from tracejit.training.step import TrainingStep, loss_of
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, count

_FUNCTION = "trainnet"
_STEPS: dict[str, type[TrainingStep]] = {"lbfgs": LbfgsStep}
Row = dict[str, Any]


class TrainingInfo(NamedTuple):
    """The history of a training, and how it ended.

    training_history    columns by name: iteration, epoch, learn_rate, loss and each metric, a row for each step
    validation_history  columns by name: iteration, epoch, loss and each metric, a row for each validation
    stop_reason         why training ended
    output_iteration    the iteration after which the network was as it was returned
    """

    training_history: dict[str, np.ndarray]
    validation_history: dict[str, np.ndarray]
    stop_reason: str
    output_iteration: int


def trainnet(
    data: Any,
    net: dlnetwork,
    loss: Any = "crossentropy",
    options: TrainingOptions | None = None,
    *,
    resume: Any = None,
) -> tuple[dlnetwork, TrainingInfo]:
    """Return a network after training, and the history of the training.

    A step is one call of an accelerated function: outputs, loss, gradients, regularisation, threshold and update. It is
    recorded once for each size of a mini-batch. The network that was passed stays as it is.

    Args:
        data: tuple of the inputs of the network and the targets, labelled arrays with an axis B; or a minibatchqueue of
            them.
        net: the network, initialised.
        loss: function of the outputs and the targets, or its name: "crossentropy", "index-crossentropy",
            "binary-crossentropy", "mse", "mae", "huber", "l1loss" or "l2loss". A function is recorded, as metrics are:
            what it prints or appends does not happen again in replays.
        options: as trainingoptions() returns them; None for those of "adam".
        resume: path of a checkpoint, or of a folder whose last one is taken, to go on from. The result is that of a
            training that never stopped, to the last bit, if everything else is as it was and steps are replayed. The
            random numbers of rng() go on from there, too. Metrics may be others: they are NaN where there were none.
            None to begin anew.

    Returns:
        net, info: the network, and a TrainingInfo.

    Raises:
        ArgumentError: if an argument is not valid, a metric is no number, or a checkpoint cannot be written, cannot be
            read, or belongs to another training.
        DimsError: if sizes or labels do not fit.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.linspace(-1, 1, 64, dtype=np.float32).reshape(64, 1), "BC")
        >>> net = tj.dlnetwork([nn.FeatureInput(1), nn.FullyConnected(1)], seed=0)
        >>> options = tj.trainingoptions("adam", max_epochs=200, initial_learn_rate=0.05, verbose=False)
        >>> net, info = tj.trainnet((x, 3 * x + 1), net, "mse", options)
        >>> bool(abs(net.learnables["fc", "weights"].item() - 3) < 0.01), info.stop_reason
        (True, 'max_epochs completed')
    """
    if not isinstance(net, dlnetwork):
        raise ArgumentError(f"{_FUNCTION}: net must be a dlnetwork, not {brief(net)}.")
    options = trainingoptions("adam") if options is None else options
    if not isinstance(options, TrainingOptions):
        raise ArgumentError(
            f"{_FUNCTION}: options must be those that trainingoptions() returns, not {brief(options)}."
        )
    training = _Training(
        _queue("data", data, options),
        net,
        _STEPS.get(options.solver, GradientStep)(loss_of(loss), options, len(net.input_names)),
        options,
    )
    if resume is not None:
        training.resume(Checkpoint(latest(resume)))
    return training.run()


def _queue(name: str, data: Any, options: TrainingOptions) -> minibatchqueue:
    """Return a queue of data, beside that of the user."""
    takes_all = options.solver == "lbfgs" and name == "data"  # in one mini-batch
    if isinstance(data, minibatchqueue):
        queue = copy.copy(data)
    elif isinstance(data, (tuple, list)) and data:
        queue = minibatchqueue(*data, mini_batch_size=options.mini_batch_size, output_cast=None)
        if takes_all:
            queue = minibatchqueue(*data, mini_batch_size=max(queue.num_observations, 1), output_cast=None)
    else:
        raise ArgumentError(
            f"{_FUNCTION}: {name} must be a tuple of inputs and targets, or a minibatchqueue, not {brief(data)}."
        )
    if not len(queue):
        raise ArgumentError(
            f"{_FUNCTION}: {name} has {count(queue.num_observations, 'observation')} and no mini-batch of "
            f"{queue.mini_batch_size}."
        )
    if takes_all and len(queue) > 1:
        raise ArgumentError(
            f'{_FUNCTION}: the solver "lbfgs" takes all observations at once, but data has {len(queue)} mini-batches '
            f"of {queue.mini_batch_size}; set mini_batch_size to {queue.num_observations}."
        )
    return queue


def _batch(queue: minibatchqueue) -> tuple[Any, ...]:
    batch = queue.next()
    return batch if isinstance(batch, tuple) else (batch,)


def _observations(batch: tuple[Any, ...]) -> int:
    """Return the number of observations in a mini-batch: the size of the first axis B."""
    for array in batch:
        if isinstance(array, dlarray) and array.format is not None and "B" in array.format:
            return int(array.shape[array.format.index("B")])
    return 1


class _Training:
    """A training, at one of its iterations."""

    def __init__(
        self, queue: minibatchqueue, net: dlnetwork, step: TrainingStep, options: TrainingOptions
    ) -> None:
        self.queue, self.net, self.step, self.options = queue, net, step, options
        self.state = step.begin(net)
        self.epoch, self.iteration = 1, 0
        self.rows: list[Row] = []
        self.validations: list[Row] = []
        self.best: tuple[float, int, dlnetwork] = (math.inf, 0, net)
        self.stale = 0  # validations since the smallest loss
        self.validation = None
        if options.validation_data is not None:
            self.validation = _queue("validation_data", options.validation_data, options)

    @property
    def iterations(self) -> int:
        """The number of all iterations."""
        return self.options.epochs * len(self.queue)

    def run(self) -> tuple[dlnetwork, TrainingInfo]:
        """Train until something ends it."""
        options = self.options
        reason = self._reason()
        while reason is None and self.epoch <= options.epochs:
            if self.iteration == (self.epoch - 1) * len(self.queue):
                self._begin_epoch()
            while reason is None and self.queue.hasdata():
                reason = self._iterate()
            if reason is None:
                self.epoch += 1
        net, iteration = self.net, self.iteration
        if options.output_network == "best-validation" and self.best[1]:  # a loss of validation was a number
            _, iteration, net = self.best
        return net, TrainingInfo(
            _columns(self.rows), _columns(self.validations), reason or f"{options.limit} completed", iteration
        )

    def _begin_epoch(self) -> None:
        if self.options.shuffle == "every-epoch" or (self.options.shuffle == "once" and self.epoch == 1):
            self.queue.shuffle()
        else:
            self.queue.reset()

    def _iterate(self) -> str | None:
        """Make one step and what follows it; return why training ends, or None."""
        options = self.options
        self.iteration += 1
        rate = options.rate(self.epoch, self.iteration, self.iterations)
        self.net, self.state, values = self.step.train(
            self.net, self.state, _batch(self.queue), rate, self.iteration
        )
        row = {"iteration": self.iteration, "epoch": self.epoch, **values}
        self.rows.append(row)
        last = self.iteration == self.iterations
        shown = dict(row)
        if self.validation is not None and (last or self.iteration % options.validation_frequency == 0):
            shown |= {f"validation_{name}": value for name, value in self._validate().items()}
        if options.verbose and (
            last or self.iteration == 1 or self.iteration % options.verbose_frequency == 0
        ):
            print("  ".join(f"{name} {value:.5g}" for name, value in shown.items()), flush=True)
        self._save_if_due(last)
        stops = None if options.output_fcn is None else options.output_fcn(shown)
        if isinstance(stops, (bool, np.bool_)) and stops:
            return "output_fcn returned True"
        return self._reason()

    def _reason(self) -> str | None:
        """Return why training ends after the last step, or None."""
        if self.rows and not math.isfinite(self.rows[-1]["loss"]):
            return f"the loss is {self.rows[-1]['loss']}"
        reason = self.step.ended(self.net, self.state) if self.rows else None
        if reason is not None:
            return reason
        return "validation_patience is used up" if self.stale >= self.options.validation_patience else None

    def _validate(self) -> dict[str, float]:
        """Return the loss and the metrics of the validation data, means over their observations."""
        assert self.validation is not None
        self.validation.reset()
        sums: dict[str, float] = {}
        total = 0
        while self.validation.hasdata():
            batch = _batch(self.validation)
            size = _observations(batch)
            total += size
            for name, value in self.step.evaluate(self.net, batch).items():
                sums[name] = sums.get(name, 0.0) + size * value
        values = {name: value / total for name, value in sums.items()}
        self.validations.append({"iteration": self.iteration, "epoch": self.epoch, **values})
        if values["loss"] < self.best[0]:
            self.best, self.stale = (values["loss"], self.iteration, self.net), 0
        else:
            self.stale += 1
        return values

    # Checkpoints.

    def _save_if_due(self, last: bool) -> None:
        options = self.options
        if options.checkpoint_path is None:
            return
        every = options.checkpoint_frequency
        if options.checkpoint_frequency_unit == "epoch":
            every *= len(self.queue)
        if not last and self.iteration % every:
            return
        tables = tables_of("net", self.net)
        if self.best[1]:
            tables |= tables_of("best", self.best[2])
        save(options.checkpoint_path, self.iteration, tables, self.step.saved(self.state), self._meta())

    def _meta(self) -> dict[str, Any]:
        return {
            "format": 1,
            "solver": self.options.solver,
            "mini_batches": len(self.queue),
            "epoch": self.epoch,
            "iteration": self.iteration,
            "queue": self.queue.state,
            "rng": [*rng()],
            "rows": _columns_of_lists(self.rows),
            "validations": _columns_of_lists(self.validations),
            "best": [self.best[0], self.best[1]],
            "stale": self.stale,
        }

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint.

        Raises:
            ArgumentError: it is of another training.
        """
        meta = checkpoint.meta
        for name, own in (
            ("format", 1), ("solver", self.options.solver), ("mini_batches", len(self.queue)),
        ):  # fmt: skip
            if meta.get(name) != own:
                raise ArgumentError(
                    f"{_FUNCTION}: resume: {checkpoint.path} is of another training: its {name} is "
                    f"{brief(meta.get(name))}, not {own!r}."
                )
        net = self.net
        self.net = checkpoint.network("net", net)
        self.state = self.step.restored(checkpoint, net)
        self.epoch, self.iteration, self.stale = meta["epoch"], meta["iteration"], meta["stale"]
        self.rows, self.validations = _rows(meta["rows"]), _rows(meta["validations"])
        loss, iteration = meta["best"]
        self.best = loss, iteration, checkpoint.network("best", net) if iteration else net
        self.queue.restore(meta["queue"])
        rng(RngState(*meta["rng"]))


def _columns_of_lists(rows: list[Row]) -> dict[str, list[Any]]:
    """Return the columns of a history, NaN where a row lacks one: a training may go on with other metrics."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, math.nan) for row in rows] for name in names}


def _rows(columns: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _columns(rows: list[Row]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in _columns_of_lists(rows).items()}
