# SPDX-License-Identifier: BSD-3-Clause
"""checklayer: a check of everything that a network expects of a layer."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.accelerate.function import AcceleratedFunction
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.nn.initializing import outputs_of
from tracejit.nn.layer import Layer, is_acceleratable, is_formattable
from tracejit.nn.layout import DataLayout, layout_of
from tracejit.nn.placed import LEARNABLE, STATE, Collected
from tracejit.nn.running import call
from tracejit.testing import check_gradients
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, table

_OBSERVATIONS = 3
_LENGTH = 4  # of an axis T or S of unknown size
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class LayerCheck(NamedTuple):
    """The outcome of one check of a layer: "passed", "failed" or "skipped", and why."""

    check: str
    outcome: str
    reason: str


class LayerReport(NamedTuple):
    """The outcomes of the checks of a layer; true if none failed. Its repr is a table."""

    layer: str
    checks: tuple[LayerCheck, ...]

    def __bool__(self) -> bool:
        return not self.failed

    @property
    def passed(self) -> tuple[LayerCheck, ...]:
        """The checks that passed."""
        return tuple([check for check in self.checks if check.outcome == PASSED])

    @property
    def failed(self) -> tuple[LayerCheck, ...]:
        """The checks that failed, with reasons."""
        return tuple([check for check in self.checks if check.outcome == FAILED])

    @property
    def skipped(self) -> tuple[LayerCheck, ...]:
        """The checks that were skipped, with reasons."""
        return tuple([check for check in self.checks if check.outcome == SKIPPED])

    def __repr__(self) -> str:
        totals = f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        return f"{self.layer}: {totals}\n{table(LayerCheck._fields, self.checks)}"


def checklayer(layer: Layer, *layouts: Any) -> LayerReport:
    """Return a report on whether a layer does what networks expect of it.

    Checked are its names, initialisation, numbers and sizes of outputs for one and several observations, dtypes,
    that equal inputs give equal outputs, that nothing else changes, that state keeps its size, gradients by inputs
    and learnables against differences, and, for an Acceleratable layer, that a replay gives what the layer gives.

    Args:
        layer: an instance.
        layouts: for each input its nn.DataLayout, or example data.

    Raises:
        ArgumentError: if `layer` is no layer, or the numbers of layouts and inputs differ.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> report = tj.checklayer(nn.FullyConnected(3), nn.DataLayout((None, 4), "BC"))
        >>> bool(report), report.failed
        (True, ())
    """
    if not isinstance(layer, Layer):
        raise ArgumentError(f"checklayer: layer must be an instance of nn.Layer, not {brief(layer)}.")
    if len(layouts) != len(layer.input_names):
        raise ArgumentError(
            f"checklayer: {len(layouts)} layouts given, expected one for each of the inputs {list(layer.input_names)}; "
            "pass nn.DataLayout(size, format), or example data."
        )
    given = [
        part if isinstance(part, DataLayout) else layout_of(as_array(part, "checklayer"), "B")
        for part in layouts
    ]
    return _Checks(layer, given).report()


class _WrongError(Exception):
    """A check that failed; the reason is its text."""


def _require(holds: Any, reason: str) -> None:
    if not holds:
        raise _WrongError(reason)


class _Checks:
    """The checks of one layer, in order; a check that depends on a failed one is skipped."""

    def __init__(self, layer: Layer, layouts: Sequence[DataLayout]) -> None:
        self.layer: Any = object.__new__(type(layer))
        self.layer.__dict__.update(vars(layer))
        self.given = layer
        self.layouts = layouts
        self.name = layer.name or layer.default_name
        self.placed: Any = None
        self.arrays: dict[str, Any] = {}
        self.outputs: tuple[DataLayout, ...] = ()

    def report(self) -> LayerReport:
        """Run the checks."""
        checks = []
        for words, check in (
            ("names of inputs and outputs", self.names),
            ("initialize", self.initialize),
            ("predict returns its outputs", self.predict),
            ("forward returns its outputs and state", self.forward),
            ("sizes for one observation and several", self.sizes),
            ("outputs have the dtype of float64 inputs", self.dtypes),
            ("equal inputs give equal outputs", self.repeated),
            ("predict changes no attribute", self.unchanged),
            ("state keeps its sizes", self.state),
            ("gradients agree with differences", self.gradients),
            ("replays agree with the layer", self.replayed),
            ("the layer can be pickled", self.pickled),
            ("runs on a GPU", self.gpu),
        ):
            needs = check not in (self.names, self.initialize, self.pickled, self.gpu)
            if needs and self.placed is None:
                checks.append(LayerCheck(words, SKIPPED, "initialize failed"))
            else:
                checks.append(_outcome(words, check))
        return LayerReport(f"{self.name} ({type(self.given).__name__})", tuple(checks))

    def names(self) -> str | None:
        for what in ("input_names", "output_names"):
            names = getattr(self.given, what)
            _require(
                all(isinstance(name, str) and name for name in names),
                f"{what} must be strings, not {names!r}",
            )
            _require(len(set(names)) == len(names), f"{what} has a name twice: {names!r}")
        _require(isinstance(self.given.name, str), f"name must be a string, not {self.given.name!r}")
        return None

    def initialize(self) -> str | None:
        least = getattr(self.layer, "min_length", _LENGTH)
        outputs = outputs_of(self.name, self.layer, self.layouts, len(self.given.output_names), least)
        collected = Collected({})
        self.placed = collected.take(self.name, self.layer)
        self.arrays = {**collected.arrays}
        self.outputs = outputs
        return None

    def predict(self) -> str | None:
        self._run("predict")
        return None

    def forward(self) -> str | None:
        self._run("forward")
        return None

    def sizes(self) -> str | None:
        if not any(layout.axes_of("B") for layout in self.layouts):
            return "the layouts have no axis B"
        for observations in (1, _OBSERVATIONS):
            results, _ = self._run("predict", observations)
            for result, layout in zip(results, self.outputs, strict=True):
                _require(
                    result._format == layout.format,
                    f"labels are {result._format!r} for {observations} observations, expected {layout.format!r}",
                )
                for size, wanted, label in zip(result.shape, layout.size, layout.format or "", strict=False):
                    expected = observations if label == "B" else wanted
                    _require(
                        expected is None or size == expected,
                        f"the size along {label} is {size} for {observations} observations, expected {expected}",
                    )
        return None

    def dtypes(self) -> str | None:
        for dtype in (np.float32, np.float64):
            arrays = self._cast(dtype)
            for result in self._run("predict", arrays=arrays, dtype=dtype)[0]:
                _require(
                    result.dtype.kind != "f" or result.dtype == dtype,
                    f"{np.dtype(dtype)} gives {result.dtype}",
                )
        return None

    def repeated(self) -> str | None:
        first, second = (self._run("predict")[0] for _ in range(2))
        for a, b in zip(first, second, strict=True):
            _require(
                np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True),
                "two calls of predict differ; random numbers belong in forward",
            )
        return None

    def unchanged(self) -> str | None:
        placed = self.placed
        if not is_formattable(self.layer):
            return "the layer takes arrays without labels"
        layer: Any = placed.layer(self.arrays)
        before = dict(vars(layer))
        layer.predict(*self._inputs())
        changed = [name for name, value in vars(layer).items() if before.get(name) is not value]
        _require(
            not changed, f"{', '.join(changed)} is assigned, which is lost: return state after the outputs"
        )
        return None

    def state(self) -> str | None:
        placed = self.placed
        if not placed.places(STATE):
            return "the layer has no state"
        for place, value in self._run("forward")[1]:
            before = self.arrays[STATE][place]
            _require(
                as_array(value).shape == before.shape or self._varies(),
                f"state of size {before.shape} becomes one of size {as_array(value).shape}",
            )
        return None

    def gradients(self) -> str | None:
        placed = self.placed
        if hasattr(self.layer, "backward"):
            self._compare_backward()
            return None
        inputs = self._inputs(dtype=np.float64)
        variables = [x for x in inputs if x.dtype.kind == "f"]
        if not variables and not self.arrays[LEARNABLE]:
            return "there is nothing to differentiate by"

        def outputs(learnables: Any, given: Any) -> Any:
            arrays = {**self._cast(np.float64), LEARNABLE: learnables}
            results, _ = call(placed, arrays, given, len(self.given.output_names), "predict")
            return [result for result in results if result.dtype.kind == "f"]

        check_gradients(outputs, self._cast(np.float64)[LEARNABLE], inputs)
        return None

    def _compare_backward(self) -> None:
        """Compare the layer's backward with differences of its outputs."""
        placed = self.placed
        inputs, learnables = self._inputs(dtype=np.float64), list(self._cast(np.float64)[LEARNABLE])
        rng = np.random.default_rng(1)

        def total(parts: Any) -> Any:
            arrays = {**self._cast(np.float64), LEARNABLE: parts[len(inputs) :]}
            results, _ = call(placed, arrays, parts[: len(inputs)], len(self.given.output_names), "predict")
            return results

        points = [*inputs, *learnables]
        weights = [rng.standard_normal(result.shape) for result in total(points)]

        def value(parts: Any) -> Any:
            return sum((result * weight).sum() for result, weight in zip(total(parts), weights, strict=True))

        def slopes(*parts: Any) -> Any:
            return dlgradient(value(list(parts)), list(parts))

        found = dlfeval(slopes, *points)
        for number, (point, gradient) in enumerate(zip(points, found, strict=True)):
            direction = rng.standard_normal(point.shape)
            step = 1e-6
            ends = []
            for sign in (1, -1):
                moved = [*points]
                moved[number] = dlarray(np.asarray(point) + sign * step * direction, point.format)
                ends.append(float(value(moved)))
            wanted, given = (ends[0] - ends[1]) / (2 * step), float((np.asarray(gradient) * direction).sum())
            _require(
                abs(wanted - given) <= 1e-5 * max(1.0, abs(wanted)),
                f"backward gives {given:.6g} for {self._variable(number)}, differences give {wanted:.6g}",
            )

    def _variable(self, number: int) -> str:
        if number < len(self.layouts):
            return f"input {self.given.input_names[number]}"
        names = Collected({})
        names.take(self.name, self.layer)
        return "/".join(names.names[LEARNABLE][number - len(self.layouts)][1:])

    def replayed(self) -> str | None:
        placed = self.placed
        if not is_acceleratable(self.layer):
            return "the layer is not Acceleratable"
        if hasattr(self.layer, "backward"):
            return "the layer has a backward of its own"

        def compute(arrays: Any, inputs: Any) -> Any:
            return tuple(call(placed, arrays, inputs, len(self.given.output_names), "predict")[0])

        accelerated = AcceleratedFunction(compute)
        for seed in range(4):
            inputs = self._inputs(seed=seed)
            results, wanted = accelerated(self.arrays, inputs), compute(self.arrays, inputs)
            for a, b in zip(results, wanted, strict=True):
                _require(
                    np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5, equal_nan=True),
                    "a replay differs from the layer; leave Acceleratable out, or compute with arrays only",
                )
        _require(
            accelerated.stats.hits, "the layer is not replayed; accelerated functions say why in a warning"
        )
        return None

    def pickled(self) -> str | None:
        try:
            pickle.loads(pickle.dumps(self.given))
        except Exception as error:
            return f"the class cannot be pickled here: {error}"
        return None

    def gpu(self) -> str | None:
        return "programs run on the CPU"

    # Helpers.

    def _varies(self) -> bool:
        names = Collected({})
        names.take(self.name, self.layer)
        return any(names.per_observation)

    def _inputs(self, observations: int = _OBSERVATIONS, dtype: Any = None, seed: int = 0) -> list[dlarray]:
        rng = np.random.default_rng(seed)
        least = max(getattr(self.layer, "min_length", 1), _LENGTH)
        arrays = []
        for layout in self.layouts:
            sizes = [
                (observations if label == "B" else least) if size is None else size
                for size, label in zip(layout.size, layout.format or "?" * len(layout.size), strict=True)
            ]
            wanted = layout.dtype if dtype is None or layout.dtype.kind != "f" else np.dtype(dtype)
            drawn = rng.standard_normal(sizes) if wanted.kind == "f" else np.zeros(sizes)
            arrays.append(dlarray(drawn.astype(wanted), layout.format))
        return arrays

    def _cast(self, dtype: Any) -> dict[str, Any]:
        return {
            group: [x.astype(dtype) if x.dtype.kind == "f" else x for x in arrays]
            for group, arrays in self.arrays.items()
        }

    def _run(
        self, function: str, observations: int = _OBSERVATIONS, arrays: Any = None, dtype: Any = None
    ) -> tuple[list[Any], list[Any]]:
        placed = self.placed
        inputs = self._inputs(observations, dtype)
        return call(
            placed, self.arrays if arrays is None else arrays, inputs, len(self.given.output_names), function
        )


def _outcome(words: str, check: Callable[[], str | None]) -> LayerCheck:
    try:
        reason = check()
    except _WrongError as error:
        return LayerCheck(words, FAILED, str(error))
    except Exception as error:
        text = " ".join(str(error).split())
        return LayerCheck(words, FAILED, f"{type(error).__name__}: {text}")
    return LayerCheck(words, PASSED if reason is None else SKIPPED, reason or "")
