# SPDX-License-Identifier: BSD-3-Clause
"""Times of convolutions, accelerated, beside PyTorch's in its better order of axes.

    python benchmarks/bench_convolution.py [--threads 1] [--seconds 3] [--only 3x3 lenet1]

Each row is a convolution of float32: its value, and its value with the gradients of all inputs, for channels first
("BCSS") and channels last ("BSSC"). Times are the least of calls that take turns, in ms: CPU time of the process with
one thread, wall time with more. Ratios are PyTorch's better time over ours; without PyTorch there are none.
"""

import argparse
import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Layer(NamedTuple):
    """Sizes of a convolution."""

    batch: int
    channels: int
    filters: int
    extents: tuple[int, ...]
    taps: tuple[int, ...]
    stride: int = 1
    padding: Any = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False
    inputs: bool = True  # whether the gradient by the input is wanted

    @property
    def labels(self) -> tuple[str, str]:
        spatial = "S" * len(self.extents)
        return "BC" + spatial, "B" + spatial + "C"


CASES = {
    "3x3": Layer(32, 64, 64, (32, 32), (3, 3), padding=1),
    "lenet1": Layer(128, 1, 20, (28, 28), (5, 5), inputs=False),
    "lenet2": Layer(128, 20, 50, (12, 12), (5, 5)),
    "1x1": Layer(32, 256, 64, (14, 14), (1, 1)),
    "3x3 stride 2": Layer(32, 64, 128, (32, 32), (3, 3), 2, 1),
    "1-D causal": Layer(16, 64, 64, (1000,), (3,), padding="causal", dilation=2),
    "3-D": Layer(8, 16, 32, (16, 16, 16), (3, 3, 3), padding=1),
    "transposed 4x4": Layer(64, 128, 64, (8, 8), (4, 4), 2, 1, transposed=True),
    "depthwise": Layer(32, 64, 64, (32, 32), (3, 3), padding=1, groups=64),
    "first of a ResNet": Layer(8, 3, 64, (112, 112), (7, 7), 2, 3, inputs=False),
}
Call = Callable[[], object]


def arrays_of(layer: Layer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return input, weights and bias in PyTorch's order."""
    rng = np.random.default_rng(0)
    first, second = layer.filters, layer.channels // layer.groups
    if layer.transposed:
        first, second = layer.channels, layer.filters // layer.groups
    shapes = (
        (layer.batch, layer.channels, *layer.extents),
        (first, second, *layer.taps),
        (layer.filters,),
    )
    x, w, bias = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, w, bias


def accelerated(layer: Layer, format: str) -> tuple[Call, Call]:
    """Return calls of our value, and of our value and gradients, for arrays in an order of axes."""
    import tracejit as tj

    given = arrays_of(layer)
    order = [0, *range(2, len(format)), 1] if format[1] == "S" else list(range(len(format)))
    x = tj.dlarray(np.ascontiguousarray(given[0].transpose(order)), format)
    w, bias = tj.dlarray(given[1]), tj.dlarray(given[2])
    options: dict[str, Any] = {"stride": layer.stride, "groups": layer.groups}
    options["weights_format"] = ("CU" if layer.transposed else "UC") + "S" * len(layer.taps)
    if layer.transposed:
        options["cropping"] = layer.padding
    else:
        options |= {"padding": layer.padding, "dilation_factor": layer.dilation}
    function = tj.dltranspconv if layer.transposed else tj.dlconv

    def value(x: Any, w: Any, bias: Any) -> Any:
        return function(x, w, bias, **options)

    def step(x: Any, w: Any, bias: Any, ct: Any) -> Any:
        y = function(x, w, bias, **options)
        return y, tj.dlgradient((y * ct).sum(), *((x, w, bias) if layer.inputs else (w, bias)))

    ct = tj.dlarray(np.ones(tj.dlfeval(value, x, w, bias).shape, np.float32), format)
    forward, both = tj.dlaccelerate(value, audit=False), tj.dlaccelerate(step, audit=False)
    return lambda: forward(x, w, bias), lambda: both(x, w, bias, ct)


def peer(layer: Layer, format: str, threads: int) -> tuple[Call, Call]:
    """Return calls of PyTorch's value, and of its value and gradients."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.set_num_threads(threads)
    axes = len(layer.extents)
    function = getattr(torch.nn.functional, f"conv{'_transpose' if layer.transposed else ''}{axes}d")
    x, w, bias = map(torch.tensor, arrays_of(layer))
    if format[1] == "S" and axes > 1:
        memory = torch.channels_last if axes == 2 else torch.channels_last_3d
        x, w = x.to(memory_format=memory), w.to(memory_format=memory)
    options: dict[str, Any] = {"stride": layer.stride, "padding": layer.padding, "groups": layer.groups}
    before = 0
    if layer.padding == "causal":
        before, options["padding"] = (layer.taps[0] - 1) * layer.dilation, 0
    if not layer.transposed:
        options["dilation"] = layer.dilation
    leaves = [x.requires_grad_(layer.inputs), w.requires_grad_(), bias.requires_grad_()]

    def value() -> Any:
        padded = torch.nn.functional.pad(x, (before, 0)) if before else x
        return function(padded, w, bias, **options)

    ct = torch.ones_like(value())

    def forward() -> object:
        with torch.no_grad():
            return value()

    return forward, lambda: torch.autograd.grad(value(), [leaf for leaf in leaves if leaf.requires_grad], ct)


def clock_of(threads: int) -> Callable[[], float]:
    """Return the clock of a benchmark: CPU time of the process with one thread, wall time with more."""
    return time.process_time if threads == 1 else time.perf_counter


def least(
    calls: Sequence[Call], seconds: float, clock: Callable[[], float], turn_s: float = 0
) -> list[float]:
    """Return the least time of each call in ms; the calls take turns, of `turn_s` at least.

    Threads of BLAS wait by spinning for some 50 ms after each product; turns that are longer keep that out of the times
    of other libraries on the same CPUs.
    """
    for call in calls:
        for _ in range(3):  # ours are recorded, confirmed and built
            call()
    best = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    while True:
        for i, call in enumerate(calls):
            turn_ends = time.perf_counter() + turn_s
            while True:
                start = clock()
                call()
                best[i] = min(best[i], 1e3 * (clock() - start))
                if time.perf_counter() > turn_ends:
                    break
        if time.perf_counter() > end:
            return best


def rows(
    names: Sequence[str], threads: int, seconds: float, with_peer: bool
) -> list[tuple[str, list[float]]]:
    """Return, for each case, the times of value and value with gradients: ours first, ours last, theirs in the same."""
    clock = clock_of(threads)
    found = []
    for name in names:
        layer = CASES[name]
        pairs = [accelerated(layer, format) for format in layer.labels]
        if with_peer:
            pairs += [peer(layer, format, threads) for format in layer.labels]
        times = least([call for pair in pairs for call in pair], seconds, clock)
        found.append((name, times[::2] + times[1::2]))
    return found


def line(name: str, times: Sequence[float]) -> str:
    """Return a row of the table."""
    count = len(times) // 2
    parts = [f"{name:18}"]
    for group in (times[:count], times[count:]):
        parts += [f"{time:8.2f}" for time in group]
        if count > 2:
            parts += [f"{min(group[2:]) / own:7.2f}" for own in group[:2]]
    return " ".join(parts)


def parser_of(doc: str | None, cases: Sequence[str], seconds: float = 3.0) -> argparse.ArgumentParser:
    """Return the parser of a benchmark of cases beside PyTorch."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=seconds, help="for each case")
    parser.add_argument("--only", nargs="*", choices=list(cases), default=list(cases))
    return parser


def use_threads(count: int) -> None:
    """Limit the threads of all libraries, before NumPy's BLAS and tracejit are used."""
    for name in ("TRACEJIT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(count))


def begin_table() -> bool:
    """Print the heads of the table; return whether PyTorch is there."""
    with_peer = importlib.util.find_spec("torch") is not None
    heads = ["first", "last", *(["torch f", "torch l", "ratio f", "ratio l"] if with_peer else [])]
    print(f"{'':18} " + " ".join(f"{head:>8}" for head in [*heads, *heads]), flush=True)
    return with_peer


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser_of(__doc__, list(CASES)).parse_args(arguments)
    use_threads(options.threads)
    with_peer = begin_table()
    for name, times in rows(options.only, options.threads, options.seconds, with_peer):
        print(line(name, times), flush=True)


if __name__ == "__main__":
    main()
