# SPDX-License-Identifier: BSD-3-Clause
"""Functions and the sizes of their arguments, whose programs for a device have each form of loops."""

from collections.abc import Callable
from typing import Any

import tracejit as tj


def layer(w: Any, b: Any, x: Any) -> tuple[Any, ...]:
    y = tj.tanh(x @ w + b)
    loss = (y * y).mean()
    return (loss, *tj.dlgradient(loss, w, b))


def normalised(x: Any, scale: Any) -> tuple[Any, ...]:
    centred = x - x.mean(axis=1, keepdims=True)
    y = scale * centred / tj.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    loss = (y**3).sum()
    return (y, *tj.dlgradient(loss, x, scale))


def classified(x: Any) -> tuple[Any, ...]:
    loss = -tj.logsoftmax(x, axis=1)[:, 0].mean()
    return (loss, *tj.dlgradient(loss, x))


PROGRAMS: list[tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = [
    (layer, ((30, 20), (20,), (40, 30))),
    (layer, ((3, 70), (70,), (5, 3))),
    (normalised, ((33, 70), (70,))),
    (normalised, ((2, 5), (5,))),
    (classified, ((19, 10),)),
    (lambda x: (tj.softmax(x, axis=1),), ((7, 300),)),
    (lambda x: (tj.softmax(x, axis=0), x.sum(), x.max(axis=0)), ((300,),)),
    (lambda x: (x.sum(), x.sum(axis=0), x.sum(axis=1), (x * x).sum(axis=(0, 2))), ((6, 50, 40),)),
    (lambda x, y: (tj.tanh(x.T) * y, x[::2, 1:]), ((40, 30), (30, 40))),
    (lambda x, y: (x / y[0], x / y.sum(), x / x[:, :1]), ((9, 12), (3,))),
    (lambda x, y: (tj.exp(x + y), x / y, x[:, ::2] * 2), ((3, 5, 12), (5, 1))),
    (
        lambda x: (((x - x.mean(axis=1, keepdims=True)) ** 2).mean(), (tj.softmax(x, axis=1) ** 2).sum()),
        ((300, 8),),
    ),
    (lambda x: ((x - x.mean(axis=1, keepdims=True)).max(), x.sum(), (x * x).max()), ((41, 7),)),
    (lambda x: (x.sum(), (x * x).sum(axis=0), x.sum(axis=(0, 2))), ((3, 7, 1200),)),
    (lambda x: (x.sum(), (x > 0).all(), x.max(axis=0)), ((5000,),)),
    (lambda x: ((x * x).sum(axis=0), x.sum(), tj.tanh(x)), ((9, 2050),)),
    (lambda x, y: (x * y, (x * y).sum(axis=0), (x * y).max(axis=-1)), ((3, 5, 12), (3, 1, 12))),
    # Sums that reduce all axes between them, and more totals than each thread may have copies of.
    (lambda x: (tj.exp(x).sum(), tj.exp(x).sum(axis=(0, 1))), ((4, 12, 4, 2),)),
    (lambda x: (tj.exp(x).sum(axis=(0, 1)), tj.exp(x).sum(), tj.exp(x).sum(axis=(0, 2))), ((7, 9, 40),)),
    (lambda x: tuple([(tj.exp(x) * k).sum() for k in range(9)]), ((7, 30),)),
    (lambda x: ((x > 0).all(axis=1), tj.exp(x).prod(), tj.exp(x).sum(axis=0)), ((0, 8, 5),)),
]


def squashed(x: Any) -> tuple[Any, ...]:
    y = tj.softmax(x, axis=-1)
    loss = (y * y).mean()
    return (y, *tj.dlgradient(loss, x))


def affine(x: Any, scale: Any, offset: Any) -> tuple[Any, ...]:
    centred = x - x.mean(axis=1, keepdims=True)
    y = scale * centred / tj.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5) + offset
    loss = (y**3).mean()
    return (y, *tj.dlgradient(loss, x, scale, offset))


def with_labels(x: Any, labels: Any) -> tuple[Any, ...]:
    loss = -(tj.logsoftmax(x, axis=1) * labels).sum() / len(x)
    return (loss, *tj.dlgradient(loss, x, labels))


def weighted(x: Any, scale: Any) -> tuple[Any, ...]:
    y = tj.softmax(tj.tanh(x) * scale, axis=1)
    loss = (y * x).sum()
    return (y, *tj.dlgradient(loss, x, scale))


def by_root_mean_square(x: Any, scale: Any) -> tuple[Any, ...]:
    y = x / tj.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * scale
    loss = (y**3).mean()
    return (y, *tj.dlgradient(loss, x, scale))


def towards(x: Any, scale: Any, offset: Any, target: Any) -> tuple[Any, ...]:
    """Return a loss of what is normalised, with a residual and an activation."""
    z = x + target
    centred = z - z.mean(axis=1, keepdims=True)
    y = scale * centred / tj.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5) + offset
    loss = ((y * tj.sigmoid(1.702 * y) - target) ** 2).mean()
    return (loss, *tj.dlgradient(loss, x, scale, offset, target))


def in_groups(x: Any, scale: Any, offset: Any) -> tuple[Any, ...]:
    centred = x - x.mean(axis=(2, 3), keepdims=True)
    y = centred / tj.sqrt((centred * centred).mean(axis=(2, 3), keepdims=True) + 1e-5) * scale + offset
    loss = (y**3).mean()
    return (y, *tj.dlgradient(loss, x, scale, offset))


def folded(x: Any) -> tuple[Any, ...]:
    return (x.sum(axis=1), x.max(axis=1), (x > 0).all(axis=1), (x * x).sum(), x.sum(axis=0))


def of_two_axes(x: Any) -> tuple[Any, ...]:
    """Return what is normalised over two axes that do not lie as one."""
    centred = x - x.mean(axis=(1, 3), keepdims=True)
    return (centred / tj.sqrt((centred * centred).mean(axis=(1, 3), keepdims=True) + 1e-5),)


LONG_ROWS: dict[str, tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = {
    "softmax": (squashed, ((5, 1300),)),
    "softmax, no vectors": (squashed, ((3, 1025),)),
    "softmax of one row": (squashed, ((1500,),)),
    "norm": (affine, ((7, 1100), (1100,), (1100,))),
    "norm, no vectors": (affine, ((3, 2003), (2003,), (2003,))),
    "root mean square": (by_root_mean_square, ((5, 1032), (1032,))),
    "residual": (towards, ((3, 1048), (1048,), (1048,), (3, 1048))),
    "groups": (in_groups, ((2, 3, 5, 260), (3, 5, 1), (3, 5, 1))),
    "loss": (classified, ((4, 2052),)),
    "labels": (with_labels, ((3, 1032), (3, 1032))),
    "weights": (weighted, ((3, 1036), (1036,))),
    "folds": (folded, ((6, 1400),)),
    "two axes": (of_two_axes, ((2, 6, 3, 200),)),
    "a fold alone": (lambda x: (tj.exp(x).sum(axis=1),), ((4, 1301),)),
    "no rows": (squashed, ((0, 1300),)),
}
"""Functions of rows that blocks take, by name."""
FULL_ROWS: dict[str, tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]] = {
    name: (function, tuple([(*shape[:-1], 1000) for shape in shapes]))
    for name, (function, shapes) in LONG_ROWS.items()
    if name in ("norm", "root mean square", "residual", "labels", "weights", "softmax")
}
"""Functions of rows of which a group has too many elements for its registers, if they are float64."""
