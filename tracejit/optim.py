# SPDX-License-Identifier: BSD-3-Clause
"""Updates of parameters by their gradients: adamupdate, sgdmupdate, rmspropupdate; dlupdate for other rules;
clipgradients; LossScale.

Parameters may be a dlarray, a network, or any nesting of dicts, lists, tuples and dataclasses of them; gradients and
moments are containers of the same structure; for a network they are tables of its learnables. Nothing is changed in
place: every function returns new arrays. Learning rate, decay factors and iteration may be numbers or scalar arrays,
traced ones too. Parameters keep their dtype, whatever the dtype of these. A network multiplies the learning rate by the
factors of its learnables; if a factor is 0, the learnable and its moments stay as they are.

Long because each update has its formula and an example, and all of them check containers in one way.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import apply, as_array
from tracejit.aval import FLOAT32, FLOAT64, is_half
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError, DTypeError
from tracejit.functions import reductions
from tracejit.functions.creation import zeros_like
from tracejit.functions.elementwise import clip, isfinite, logical_and, logical_not, maximum, where
from tracejit.functions.formats import describe, in_dtype
from tracejit.functions.movement import relabel, reshaped
from tracejit.record import recorder
from tracejit.util.arguments import is_option, is_real, real
from tracejit.util.named_tuples import NamedTuple
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
    step = _scalar(where, "iteration", iteration)
    first = _scalar(where, "grad_decay", grad_decay)
    second = _scalar(where, "sq_grad_decay", sq_grad_decay)
    root = _sqrt(_one_minus_power(second, step))
    # learn_rate (m / c1) / (sqrt(v / c2) + epsilon), numerator and denominator times sqrt(c2)
    rate = _Cast(_scalar(where, "learn_rate", learn_rate) * root / _one_minus_power(first, step))
    offset = _Cast(_scalar(where, "epsilon", epsilon) * root)
    keep_mean, add_mean = _Cast(first), _Cast(1.0 - first)
    keep_square, add_square = _Cast(second), _Cast(1.0 - second)

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
    rate = _Cast(_scalar(where, "learn_rate", learn_rate))
    keep = _Cast(_scalar(where, "momentum", momentum))

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
    rate = _Cast(_scalar(where, "learn_rate", learn_rate))
    offset = _Cast(_scalar(where, "epsilon", epsilon))
    decay = _scalar(where, "sq_grad_decay", sq_grad_decay)
    keep, add = _Cast(decay), _Cast(1.0 - decay)

    def update(factor: float, p: Any, g: Any, v: Any) -> tuple[Any, Any]:
        dtype = p._data.dtype
        v = v * keep[dtype] + _square(g) * add[dtype]
        return p - g * rate.times(factor, dtype) / (apply("sqrt", v) + offset[dtype]), v

    p, v = columns.updated(update)
    return p, v


def clipgradients(grads: Any, threshold: Any, method: str = "l2norm") -> Any:
    """Return gradients that are not longer than a threshold; those that are longer keep their direction.

        g = g min(1, threshold / norm(g))

    Args:
        grads: gradients, as dlgradient returns them.
        threshold: number of more than 0, or scalar array; math.inf for none.
        method: "l2norm" for the norm of each array; "global-l2norm" for that of all arrays together, as
            optax.clip_by_global_norm and torch.nn.utils.clip_grad_norm_ take it; "absolute-value" to clip each element.

    Returns:
        Gradients in the same containers. Norms are computed in float64.

    Raises:
        ArgumentError: if `threshold` is no number or not more than 0, or `method` is another one.
        DTypeError: if a gradient is not of floating point.

    Examples:
        >>> import tracejit as tj
        >>> grads = {"w": tj.dlarray([3.0, 4.0]), "b": tj.dlarray([0.0])}
        >>> tj.clipgradients(grads, 1)["w"].tolist()
        [0.6000000000000001, 0.8]
    """
    where = "clipgradients"
    if not is_option(method, ("l2norm", "global-l2norm", "absolute-value")):
        raise ArgumentError(
            f'{where}: method must be "l2norm", "global-l2norm" or "absolute-value", not {brief(method)}.'
        )
    most = _scalar(where, "threshold", threshold)
    if type(most) is float and not most > 0:
        raise ArgumentValueError(f"{where}: threshold must be more than 0, not {brief(threshold)}.")
    parameters, put_back = tree.parameters(grads, where)
    leaves, treedef = tree.flatten(parameters, function=where)
    arrays = _floating(where, "grads", treedef, leaves)
    if most == math.inf and type(most) is float:
        return grads
    if method == "absolute-value":
        bound = _Cast(most)
        clipped = [clip(g, -bound[g._data.dtype], bound[g._data.dtype]) for g in arrays]
    else:
        squares = [_sum_of_squares(g) for g in arrays]
        if method == "global-l2norm":
            squares = [sum(squares)] * len(squares)
        clipped = [
            g * in_dtype(most / _sqrt(maximum(square, most * most)), g._data.dtype)
            for g, square in zip(arrays, squares, strict=True)
        ]
    return put_back(tree.unflatten(treedef, clipped))


def _sum_of_squares(g: Any) -> Any:
    """Return the sum of squares, as float64: those of a gradient that explodes would be infinite, and it would be 0."""
    wide = in_dtype(g, FLOAT64)
    return reductions.sum(wide * wide)


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
        columns.append(
            _same_structure("dlupdate", treedef, parameters, "trees[0]", other, f"trees[{number}]")
        )
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


class _Cast:
    """A number, or a float64 scalar array, in the dtypes of the parameters it meets."""

    def __init__(self, scalar: Any) -> None:
        self._scalar = scalar
        self._cast: dict[np.dtype, Any] = {}

    def __getitem__(self, dtype: np.dtype) -> Any:
        if type(self._scalar) is float:
            return self._scalar  # a Python number takes the dtype of the array it meets
        scalar = self._cast.get(dtype)
        if scalar is None:
            scalar = self._cast[dtype] = in_dtype(self._scalar, dtype)
        return scalar

    def times(self, factor: float, dtype: np.dtype) -> Any:
        """Return the number in a dtype, times a factor."""
        return self[dtype] if factor == 1 else self[dtype] * factor


def _scalar(where: str, name: str, x: Any) -> Any:
    """Return an option as a Python float, or as a scalar array in float64 if it is an array."""
    if recorder.is_number(x):  # an argument that varies
        return in_dtype(as_array(x), FLOAT64)
    if is_real(x):
        return float(real(where, name, x))
    if not hasattr(type(x), "__dlpack__"):
        raise ArgumentError(f"{where}: {name} must be a number or a scalar array, not {brief(x)}.")
    array = as_array(x, where, name)
    if array._data.size != 1:
        raise DimsError(f"{where}: {name} is of {describe(array)}; expected a scalar.")
    return in_dtype(reshaped(relabel(array, None), (), None), FLOAT64)


def _one_minus_power(base: Any, exponent: Any) -> Any:
    """Return 1 - base**exponent, in which nothing cancels for a base close to 1."""
    if type(base) is float:
        if not 0 <= base < 1:
            raise ArgumentError(
                f"adamupdate: decay factors must be at least 0 and less than 1, found {base!r}."
            )
        if base == 0:
            return 1.0
        base = math.log(base)
    else:
        base = apply("log", base)
    product = base * exponent
    return -math.expm1(product) if type(product) is float else -apply("expm1", product)


def _sqrt(x: Any) -> Any:
    return math.sqrt(x) if type(x) is float else apply("sqrt", x)


def _square(x: Any) -> Any:
    return apply("square", x)


class _Columns:
    """The arrays of `params` and of the containers that go with it, in the dtypes of `params`."""

    def __init__(self, where: str, params: Any, **others: Any) -> None:
        self._factors = _factors(where, params)
        params, self._put_back = tree.parameters(params, where)
        self._treedef, self._columns = _columns(where, params, others)

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


def _factors(where: str, params: Any) -> list[float]:
    """Return the factor of the learning rate for each parameter."""
    factors: list[float] = []
    for part in tree.flatten(params, lambda part: isinstance(part, tree.TreeNode), where)[0]:
        if isinstance(part, tree.TreeNode):
            rates = part.rates()
            factors += [1.0] * len(part.parameters()._leaves) if rates is None else rates
        else:
            factors.append(1.0)
    return factors


def _columns(where: str, params: Any, others: dict[str, Any]) -> tuple[tree.TreeDef, list[list[Any]]]:
    leaves, treedef = tree.flatten(params, function=where)
    arrays = _floating(where, "params", treedef, leaves)
    columns = [arrays]
    for name, other in others.items():
        if name != "grads" and (other is None or (type(other) is list and not other)):
            columns.append([zeros_like(array) for array in arrays])
            continue
        column = [
            as_array(leaf, where, name)
            for leaf in _same_structure(where, treedef, params, "params", other, name)
        ]
        for number, (array, p) in enumerate(zip(column, arrays, strict=True)):
            if array._data.shape != p._data.shape or array._format not in (None, p._format):
                raise DimsError(
                    f"{where}: {tree.paths(treedef, name)[number]} is of {describe(array)}, but "
                    f"{tree.paths(treedef, 'params')[number]} is of {describe(p)}; they must have the same "
                    "sizes and labels."
                )
            column[number] = relabel(in_dtype(array, p._data.dtype), p._format)
        columns.append(column)
    return treedef, columns


def _floating(where: str, name: str, treedef: tree.TreeDef, leaves: list[Any]) -> list[Any]:
    """Return the leaves of a container as arrays of floating point."""
    arrays = [as_array(leaf, where, name) for leaf in leaves]
    for number, array in enumerate(arrays):
        if array._data.dtype.kind != "f" and not is_half(array._data.dtype):
            raise DTypeError(
                f"{where}: {tree.paths(treedef, name)[number]} holds {array._data.dtype}, expected floating point; "
                "leave it out of the containers, or cast it."
            )
    return arrays


def _same_structure(
    where: str, treedef: tree.TreeDef, first: Any, first_name: str, other: Any, name: str
) -> list[Any]:
    """Return the leaves of a container, which must have the structure of the first one."""
    other, _ = tree.parameters(other, where)
    leaves, other_treedef = tree.flatten(other, function=where)
    if other_treedef != treedef:
        difference = tree.difference_of_trees(first, other, first_name, name)
        raise ArgumentError(
            f"{where}: {name} does not match {first_name}: {difference}. They must have the same containers and keys."
        )
    return leaves


class LossScale(NamedTuple):
    """The scale of a loss in training with numbers of 16 bits, which adapts itself.

    Gradients below 6e-8, the smallest number of float16, would be 0. Those of the loss times a scale are not, and
    are divided by the scale in float32. Where one of them is infinite or NaN the step is left out and the scale
    becomes smaller; after a number of steps without, it grows. (P. Micikevicius and others, Mixed precision
    training, ICLR 2018.)

    Attributes:
        scale: scalar array of float32, the factor.
        steps: scalar array of int32, how many steps with finite gradients are behind since the scale changed.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> def gradients(w, x, scaling):
        ...     loss = tj.mean(1e-7 * w.astype(np.float16) * x)
        ...     return tj.dlgradient(scaling.scaled(loss), w)
        >>> w, x = tj.dlarray(np.ones(2, np.float32)), tj.dlarray(np.array([0.01, 0.02], np.float16))
        >>> scaling = tj.LossScale.of(2.0**16)
        >>> found = tj.dlfeval(gradients, w, x, scaling)
        >>> found, finite, scaling = scaling.unscaled(found)
        >>> finite.item(), scaling.steps.item()
        (True, 1)
    """

    scale: Any
    steps: Any

    @classmethod
    def of(cls, scale: float = 2.0**16) -> "LossScale":
        """Return the state before the first step.

        Args:
            scale: the first factor, which is positive and finite; a power of two rounds nothing.

        Raises:
            ArgumentError: for any other factor.
        """
        if not is_real(scale) or not 0 < scale < math.inf:
            raise ArgumentError(f"LossScale.of: scale must be positive and finite, not {brief(scale)}.")
        return cls(as_array(np.array(scale, np.float32)), as_array(np.array(0, np.int32)))

    def scaled(self, loss: Any) -> Any:
        """Return the loss in float32 times the scale: what to differentiate."""
        return in_dtype(as_array(loss, "LossScale.scaled", "loss"), FLOAT32) * self.scale

    def unscaled(
        self, grads: Any, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000
    ) -> tuple[Any, Any, "LossScale"]:
        """Return gradients of a scaled loss over the scale, whether all are finite, and the state of the next step.

        Args:
            grads: gradients of the scaled loss: a dlarray, or a container of such arrays.
            growth: the factor of the scale after `interval` steps with finite gradients.
            backoff: the factor of the scale after gradients that are not finite.
            interval: a number of steps.

        Returns:
            Gradients in float32, a scalar array of bool, and a LossScale.
        """
        leaves, structure = tree.flatten(grads)
        wide = [in_dtype(as_array(leaf, "LossScale.unscaled", "grads"), FLOAT32) for leaf in leaves]
        finite = as_array(np.array(True))
        for leaf in wide:
            finite = logical_and(finite, reductions.all(isfinite(leaf)))
        grown = self.steps + 1 >= interval
        larger = where(grown, self.scale * np.float32(growth), self.scale)
        scale = where(finite, where(isfinite(larger), larger, self.scale), self.scale * np.float32(backoff))
        steps = where(logical_and(finite, logical_not(grown)), self.steps + 1, 0 * self.steps)
        return (
            tree.unflatten(structure, [leaf / self.scale for leaf in wide]),
            finite,
            LossScale(scale, steps),
        )

    def chosen(self, finite: Any, new: Any, old: Any) -> Any:
        """Return the new parameters, or the old ones where gradients were not finite.

        Args:
            finite: the second result of `unscaled`.
            new: parameters after the update: a dlarray, or a container of such arrays.
            old: those before, of the same structure.
        """
        leaves, structure = tree.flatten(new)
        before, _ = tree.flatten(old)
        return tree.unflatten(structure, [where(finite, *pair) for pair in zip(leaves, before, strict=True)])
