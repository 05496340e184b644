# SPDX-License-Identifier: BSD-3-Clause
"""Times of pooling, normalisation, losses, tables and resizing, accelerated, beside PyTorch's.

    python -m benchmarks.bench_layers [--threads 1] [--seconds 3] [--only maxpool batchnorm]

Each row is a value, and the value with the gradients of all inputs, of float32, for channels first ("BCSS") and
channels last ("BSSC") where there are images. Times are the least of calls that take turns, in ms: CPU time of the
process with one thread, wall time with more. Ratios are PyTorch's time in its better order of axes over ours; without
PyTorch there are none.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_convolution import Call, begin_table, clock_of, least, line, parser_of, use_threads


class Case(NamedTuple):
    """One operation: sizes of its operands, the first of which is an image where it has four axes; ours, and PyTorch's.

    `of_classes` is the number of classes of a last operand of integers, 0 if there is none.
    """

    sizes: tuple[tuple[int, ...], ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    of_classes: int = 0
    format: str = ""


IMAGES = (32, 64, 32, 32)
BOTH = ((64,), (64,))
CASES = {
    "maxpool 2x2": Case((IMAGES,), lambda tj, x: tj.maxpool(x, 2, stride=2), lambda f, x: f.max_pool2d(x, 2)),
    "maxpool 3x3 s2": Case((IMAGES,), lambda tj, x: tj.maxpool(x, 3, stride=2, padding=1),
                           lambda f, x: f.max_pool2d(x, 3, 2, 1)),
    "avgpool 2x2": Case((IMAGES,), lambda tj, x: tj.avgpool(x, 2, stride=2), lambda f, x: f.avg_pool2d(x, 2)),
    "avgpool global": Case((IMAGES,), lambda tj, x: tj.avgpool(x, "global"),
                           lambda f, x: f.adaptive_avg_pool2d(x, 1)),
    "batchnorm": Case((IMAGES, *BOTH), lambda tj, x, o, s: tj.batchnorm(x, o, s)[0],
                      lambda f, x, o, s: f.batch_norm(x, None, None, s, o, True)),
    "groupnorm 8": Case((IMAGES, *BOTH), lambda tj, x, o, s: tj.groupnorm(x, 8, o, s),
                        lambda f, x, o, s: f.group_norm(x, 8, s, o)),
    "instancenorm": Case((IMAGES, *BOTH), lambda tj, x, o, s: tj.instancenorm(x, o, s),
                         lambda f, x, o, s: f.instance_norm(x, None, None, s, o)),
    "layernorm 256": Case(((4096, 256), (256,), (256,)), lambda tj, x, o, s: tj.layernorm(x, o, s),
                          lambda f, x, o, s: f.layer_norm(x, (256,), s, o), format="BC"),
    "cross-entropy 10k": Case(((1024, 10000),), lambda tj, x, t: tj.indexcrossentropy(x, t, from_logits=True),
                              lambda f, x, t: f.cross_entropy(x, t), 10000, "BC"),
    "embed 10k x 256": Case(((10000, 256),), lambda tj, w, t: tj.embed(t, w), lambda f, w, t: f.embedding(t, w), 10000),
    "bilinear 2x": Case(((16, 32, 64, 64),), lambda tj, x: tj.dlresize(x, scale=2, method="linear"),
                        lambda f, x: f.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)),
    "nearest 2x": Case(((16, 32, 64, 64),), lambda tj, x: tj.dlresize(x, scale=2),
                       lambda f, x: f.interpolate(x, scale_factor=2, mode="nearest")),
}  # fmt: skip


def operands(case: Case) -> list[np.ndarray]:
    """Return the operands of a case, images with the channels first."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(size).astype(np.float32) for size in case.sizes]
    if case.of_classes:
        count = case.sizes[0][0] if case.format else 8192
        arrays.append(rng.integers(0, case.of_classes, count))
    return arrays


def accelerated(case: Case, last: bool) -> tuple[Call, Call]:
    """Return calls of our value, and of our value and gradients."""
    import tracejit as tj

    first, *others = operands(case)
    format: str | None = case.format or None
    if first.ndim == 4:
        format = "BSSC" if last else "BCSS"
        first = np.ascontiguousarray(first.transpose(0, 2, 3, 1)) if last else first
    arrays = [tj.dlarray(first, format), *map(tj.dlarray, others)]
    smooth = [i for i, array in enumerate(arrays) if array.dtype == np.float32]

    def value(*given: Any) -> Any:
        return case.ours(tj, *given)

    def step(ct: Any, *given: Any) -> Any:
        y = case.ours(tj, *given)
        return y, tj.dlgradient((y * ct).sum(), *[given[i] for i in smooth])

    result = tj.dlfeval(value, *arrays)
    ct = tj.dlarray(np.ones(result.shape, np.float32), result.format)
    forward, both = tj.dlaccelerate(value, audit=False), tj.dlaccelerate(step, audit=False)
    return lambda: forward(*arrays), lambda: both(ct, *arrays)


def peer(case: Case, last: bool, threads: int) -> tuple[Call, Call]:
    """Return calls of PyTorch's value, and of its value and gradients."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.set_num_threads(threads)
    tensors = [torch.tensor(array) for array in operands(case)]
    if last and tensors[0].ndim == 4:
        tensors[0] = tensors[0].contiguous(memory_format=torch.channels_last)
    leaves = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]

    def value() -> Any:
        return case.theirs(torch.nn.functional, *tensors)

    ct = torch.ones_like(value())

    def forward() -> object:
        with torch.no_grad():
            return value()

    return forward, lambda: torch.autograd.grad(value(), leaves, ct)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser_of(__doc__, list(CASES)).parse_args(arguments)
    use_threads(options.threads)
    with_peer = begin_table()
    clock = clock_of(options.threads)
    for name in options.only:
        pairs = [accelerated(CASES[name], last) for last in (False, True)]
        pairs += [peer(CASES[name], last, options.threads) for last in (False, True)] if with_peer else []
        times = least([call for pair in pairs for call in pair], options.seconds, clock)
        print(line(name, times[::2] + times[1::2]), flush=True)


if __name__ == "__main__":
    main()
