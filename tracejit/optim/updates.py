# SPDX-License-Identifier: BSD-3-Clause
"""Updates of parameters by their gradients: adamupdate, sgdmupdate, rmspropupdate; dlupdate for other rules.

Parameters may be a dlarray, a network, or any nesting of dicts, lists, tuples and dataclasses of them; gradients and
moments are containers of the same structure; for a network they are tables of its learnables. Nothing is changed in
place: every function returns new arrays. Learning rate, decay factors and iteration may be numbers or scalar arrays,
traced ones too. Parameters keep their dtype, whatever the dtype of these. A network multiplies the learning rate by the
factors of its learnables; if a factor is 0, the learnable and its moments stay as they are.
"""

from collections.abc import Callable
from typing import Any

from tracejit import tree
from tracejit.array import apply
from tracejit.errors import ArgumentError
from tracejit.functions.creation import zeros_like
from tracejit.optim.parameters import arrays_like, arrays_of, factors_of, leaves_like
from tracejit.optim.scalars import Cast, one_minus_power, scalar, square_root
from tracejit.util.arguments import is_real
from tracejit.util.text import brief


def adamupdate(
    params: Any,
    grads: Any,
    avg_g: Any,
    avg_sq_g: Any,
    iteration: Any,
    learn_rate: Any = 0.001,
    grad_decay: Any = 0.9,
    sq_grad_decay: Any = 0.999,
    epsilon: Any = 1e-8,
) -> tuple[Any, Any, Any]:
    """Return parameters after one step of Adam, and its moving averages.

        m = grad_decay m + (1 - grad_decay) g
        v = sq_grad_decay v + (1 - sq_grad_decay) g**2
        p = p - learn_rate m' / (sqrt(v') + epsilon)

    with m' = m / (1 - grad_decay**t) and v' = v / (1 - sq_grad_decay**t), which correct for the start at 0,
    and t the iteration. (D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.) The
    corrections are computed once, in float64, and enter each element's update as two numbers.

    Args:
        params: floating-point dlarray, or container of such arrays.
        grads: gradients, as dlgradient returns them for `params`.
        avg_g: moving average of gradients from the last call; None or [] to start.
        avg_sq_g: moving average of squared gradients from the last call; None or [] to start.
        iteration: 1 in the first call, then one more in each; number or scalar array of any dtype.
        learn_rate: number or scalar array.
        grad_decay: number or scalar array, at least 0 and less than 1.
        sq_grad_decay: number or scalar array, at least 0 and less than 1.
        epsilon: number or scalar array.

    Returns:
        params, avg_g, avg_sq_g: containers like `params`, with its formats and dtypes.

    Raises:
        ArgumentError: if containers differ, an option is no number, or `iteration` is below 1.
        DimsError: if sizes or labels of an array and its parameter differ.
        DTypeError: if a parameter is not of floating point.

    Examples:
        >>> import tracejit as tj
        >>> params, grads = {"w": tj.dlarray([1.0, 2.0])}, {"w": tj.dlarray([0.5, -4.0])}
        >>> params, avg_g, avg_sq_g = tj.adamupdate(params, grads, None, None, 1, 0.1)
        >>> [round(w, 6) for w in params["w"].tolist()]
        [0.9, 2.1]
    """
    where = "adamupdate"
    columns = _Columns(where, params, grads=grads, avg_g=avg_g, avg_sq_g=avg_sq_g)
    if is_real(iteration) and not iteration >= 1:
        raise ArgumentError(
            f"{where}: iteration counts from 1, found {brief(iteration)}; pass 1 in the first call."
        )
    step = scalar(where, "iteration", iteration)
    first = scalar(where, "grad_decay", grad_decay)
    second = scalar(where, "sq_grad_decay", sq_grad_decay)
    root = square_root(one_minus_power(second, step))
    # learn_rate (m / c1) / (sqrt(v / c2) + epsilon), numerator and denominator times sqrt(c2)
    rate = Cast(scalar(where, "learn_rate", learn_rate) * root / one_minus_power(first, step))
    offset = Cast(scalar(where, "epsilon", epsilon) * root)
    keep_mean, add_mean = Cast(first), Cast(1.0 - first)
    keep_square, add_square = Cast(second), Cast(1.0 - second)

    def update(factor: float, p: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        dtype = p._data.dtype
        m = m * keep_mean[dtype] + g * add_mean[dtype]
        v = v * keep_square[dtype] + _square(g) * add_square[dtype]
        return p - m * rate.times(factor, dtype) / (apply("sqrt", v) + offset[dtype]), m, v

    p, m, v = columns.updated(update)
    return p, m, v


def sgdmupdate(
    params: Any, grads: Any, vel: Any, learn_rate: Any = 0.01, momentum: Any = 0.9
) -> tuple[Any, Any]:
    """Return parameters after one step of stochastic gradient descent with momentum, and its velocity.

        v = momentum v - learn_rate g
        p = p + v

    Args:
        params: floating-point dlarray, or container of such arrays.
        grads: gradients, as dlgradient returns them for `params`.
        vel: velocity from the last call; None or [] to start.
        learn_rate: number or scalar array.
        momentum: number or scalar array; 0 for plain gradient descent.

    Returns:
        params, vel: containers like `params`, with its formats and dtypes.

    Raises:
        ArgumentError: if containers differ, or an option is no number.
        DimsError: if sizes or labels of an array and its parameter differ.
        DTypeError: if a parameter is not of floating point.

    Examples:
        >>> import tracejit as tj
        >>> p, vel = tj.sgdmupdate(tj.dlarray([1.0, 2.0]), tj.dlarray([0.5, -4.0]), None, 0.5)
        >>> p.tolist()
        [0.75, 4.0]
    """
    where = "sgdmupdate"
    columns = _Columns(where, params, grads=grads, vel=vel)
    rate = Cast(scalar(where, "learn_rate", learn_rate))
    keep = Cast(scalar(where, "momentum", momentum))

    def update(factor: float, p: Any, g: Any, v: Any) -> tuple[Any, Any]:
        dtype = p._data.dtype
        v = v * keep[dtype] - g * rate.times(factor, dtype)
        return p + v, v

    p, v = columns.updated(update)
    return p, v


def rmspropupdate(
    params: Any,
    grads: Any,
    avg_sq_g: Any,
    learn_rate: Any = 0.001,
    sq_grad_decay: Any = 0.9,
    epsilon: Any = 1e-8,
) -> tuple[Any, Any]:
    """Return parameters after one step of RMSProp, and its moving average.

        v = sq_grad_decay v + (1 - sq_grad_decay) g**2
        p = p - learn_rate g / (sqrt(v) + epsilon)

    Args:
        params: floating-point dlarray, or container of such arrays.
        grads: gradients, as dlgradient returns them for `params`.
        avg_sq_g: moving average of squared gradients from the last call; None or [] to start.
        learn_rate: number or scalar array.
        sq_grad_decay: number or scalar array, at least 0 and less than 1.
        epsilon: number or scalar array.

    Returns:
        params, avg_sq_g: containers like `params`, with its formats and dtypes.

    Raises:
        ArgumentError: if containers differ, or an option is no number.
        DimsError: if sizes or labels of an array and its parameter differ.
        DTypeError: if a parameter is not of floating point.

    Examples:
        >>> import tracejit as tj
        >>> p, avg_sq_g = tj.rmspropupdate(tj.dlarray([1.0, 2.0]), tj.dlarray([0.5, -4.0]), None, 0.1, 0.75)
        >>> [round(x, 6) for x in p.tolist()]
        [0.8, 2.2]
    """
    where = "rmspropupdate"
    columns = _Columns(where, params, grads=grads, avg_sq_g=avg_sq_g)
    rate = Cast(scalar(where, "learn_rate", learn_rate))
    offset = Cast(scalar(where, "epsilon", epsilon))
    decay = scalar(where, "sq_grad_decay", sq_grad_decay)
    keep, add = Cast(decay), Cast(1.0 - decay)

    def update(factor: float, p: Any, g: Any, v: Any) -> tuple[Any, Any]:
        dtype = p._data.dtype
        v = v * keep[dtype] + _square(g) * add[dtype]
        return p - g * rate.times(factor, dtype) / (apply("sqrt", v) + offset[dtype]), v

    p, v = columns.updated(update)
    return p, v


def dlupdate(fun: Callable[..., Any], *trees: Any) -> Any:
    """Return ``fun(leaf, ...)`` for all leaves of containers of one structure, in such a container.

    Args:
        fun: function of one leaf of each tree.
        trees: dlarrays or containers of them: parameters, gradients, ... Of a network the learnables.

    Returns:
        A container like the first tree. Where `fun` returns a tuple of n results for every leaf, a tuple of n
        containers.

    Raises:
        ArgumentError: if `fun` is no function, there is no tree, the trees differ in structure, or `fun`
            returns tuples of different lengths.

    Examples:
        >>> import tracejit as tj
        >>> params, grads = {"w": tj.dlarray(2.0)}, {"w": tj.dlarray(1.0)}
        >>> tj.dlupdate(lambda p, g: g + 0.01 * p, params, grads)["w"].item()
        1.02
    """
    if not callable(fun):
        raise ArgumentError(f"dlupdate: fun must be a function, not {type(fun).__name__}.")
    if not trees:
        raise ArgumentError("dlupdate: there is nothing to update; pass dlupdate(fun, params).")
    parameters, put_back = tree.parameters(trees[0], "dlupdate")
    leaves, treedef = tree.flatten(parameters, function="dlupdate")
    columns = [leaves]
    for number, other in enumerate(trees[1:], 1):
        columns.append(leaves_like("dlupdate", treedef, parameters, "trees[0]", other, f"trees[{number}]"))
    results = [fun(*parts) for parts in zip(*columns, strict=True)]
    lengths = {len(result) if type(result) is tuple else None for result in results}
    if len(lengths) > 1:
        raise ArgumentError(
            "dlupdate: fun must return the same number of results for each leaf; found "
            f"{' and '.join(sorted('a single result' if n is None else f'a tuple of {n}' for n in lengths))}."
        )
    count = lengths.pop() if lengths else None
    if count is None:
        return put_back(tree.unflatten(treedef, results))
    return tuple(put_back(tree.unflatten(treedef, [result[i] for result in results])) for i in range(count))


def _square(x: Any) -> Any:
    return apply("square", x)


class _Columns:
    """The arrays of `params` and of the containers that go with it, in the dtypes of `params`."""

    def __init__(self, where: str, params: Any, grads: Any, **moments: Any) -> None:
        self._factors = factors_of(where, params)
        params, self._put_back = tree.parameters(params, where)
        self._treedef, arrays = arrays_of(where, params)
        self._columns = [arrays, arrays_like(where, self._treedef, params, arrays, grads, "grads")]
        for name, other in moments.items():
            if other is None or (type(other) is list and not other):
                self._columns.append([zeros_like(array) for array in arrays])
            else:
                self._columns.append(arrays_like(where, self._treedef, params, arrays, other, name))

    def updated(self, update: Callable[..., tuple[Any, ...]]) -> list[Any]:
        """Return containers of the results of ``update(factor, p, g, ...)`` for each parameter; `params` is first."""
        kept = [column for number, column in enumerate(self._columns) if number != 1]  # without the gradients
        results = [
            update(factor, *leaves) if factor else tuple([column[number] for column in kept])
            for number, (factor, leaves) in enumerate(
                zip(self._factors, zip(*self._columns, strict=True), strict=True)
            )
        ]
        containers = [
            tree.unflatten(self._treedef, [result[i] for result in results]) for i in range(len(kept))
        ]
        return [self._put_back(containers[0]), *containers[1:]]
