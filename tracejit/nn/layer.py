# SPDX-License-Identifier: BSD-3-Clause
"""Layer: the base class of all layers, and the mix-ins for what a network does with layers."""

import types
from collections.abc import Sequence
from typing import Any

from tracejit.errors import ArgumentError
from tracejit.util.arguments import listed, text
from tracejit.util.text import brief


def _named(init: Any, owner: str) -> Any:
    """Return the __init__ of a base with the name of a class, which Python's errors for its arguments begin with."""
    own = types.FunctionType(init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__)
    own.__kwdefaults__, own.__annotations__, own.__doc__ = (
        init.__kwdefaults__,
        init.__annotations__,
        init.__doc__,
    )
    own.__module__, own.__qualname__ = init.__module__, f"{owner}.__init__"
    return own


class Layer:
    """The base class of layers: arrays in fields, and functions of the arrays that reach the layer.

    A class of layers has

    - fields: ``weights = nn.Learnable()``, ``mean = nn.State()``. Other attributes are fixed; arrays among them
      are constants of the network.
    - ``predict(self, x, ...)``, which returns the outputs, and the new state after them if it changes any.
    - ``forward(self, x, ...)``, if training differs from prediction.
    - ``initialize(self, layout, ...)``, if the sizes of fields depend on those of the inputs. It sets the fields
      that are None.
    - ``backward(self, x, ..., y, ..., dy, ...)``, if the derivative is not to be that of `predict`: it returns the
      gradients by the inputs, then by the learnables. It gets inputs, outputs and the gradients by the outputs.
    - ``reset_state(self)``, if there is state to reset.

    A network holds a copy of the layer and its arrays, and calls these functions on copies of that: what they assign to
    attributes, or write into arrays, is lost.

    Attributes:
        name: in the network; "" for one that the network gives.
        num_inputs, num_outputs: of predict; 1 unless the class or __init__ says otherwise.
        input_names, output_names: by default in, or in1, in2, ...; and out, or out1, out2, ... An assignment in
            __init__ says how many there are, too: ``self.output_names = ("out", "mean")``.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> class Scale(nn.Layer, nn.Formattable, nn.Acceleratable):
        ...     factor = nn.Learnable()
        ...     def initialize(self, layout):
        ...         if self.factor is None:
        ...             self.factor = tj.ones(1, "float32")
        ...     def predict(self, x):
        ...         return self.factor * x
        >>> net = tj.dlnetwork([nn.FeatureInput(3), Scale()])
        >>> net.predict(tj.dlarray([[1.0, 2.0, 3.0]], "BC")).tolist()
        [[1.0, 2.0, 3.0]]
    """

    name: str = ""
    num_inputs: int = 1
    num_outputs: int = 1
    default_name = "layer"
    _input_names: tuple[str, ...] | None = None  # where they were assigned
    _output_names: tuple[str, ...] | None = None
    may_write = True  # into its arrays, so that it gets copies of those of the network

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        is_ours = cls.__module__.startswith("tracejit.nn.")
        cls.may_write = not is_ours  # the layers of the package do not
        if is_ours and "__init__" not in vars(cls) and not cls.__name__.startswith("_"):
            setattr(cls, "__init__", _named(cls.__init__, cls.__name__))  # noqa: B010 - mypy refuses the assignment

    def __init__(self, *, name: str = "") -> None:
        self.name = name

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return numbered("in", self.num_inputs) if self._input_names is None else self._input_names

    @input_names.setter
    def input_names(self, names: Sequence[str]) -> None:
        self._input_names = names_of(type(self).__name__, "input_names", names)
        self.num_inputs = len(self._input_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return numbered("out", self.num_outputs) if self._output_names is None else self._output_names

    @output_names.setter
    def output_names(self, names: Sequence[str]) -> None:
        self._output_names = names_of(type(self).__name__, "output_names", names)
        self.num_outputs = len(self._output_names)

    # Keywords of any name stand for "any parameters": type checkers let subclasses name theirs.

    def initialize(self, *layouts: Any, **parameters: Any) -> None:
        """Set the fields that are None, given the layout of each input."""

    def predict(self, *inputs: Any, **parameters: Any) -> Any:
        """Return the outputs, and the new state after them if it changes any."""
        raise ArgumentError(
            f"{type(self).__name__}: the layer has no predict; define predict(self, x), which returns the output."
        )

    def forward(self, *inputs: Any, **parameters: Any) -> Any:
        """Return the same as predict, as in training."""
        return self.predict(*inputs)

    def reset_state(self) -> None:
        """Set the state to what it was at first."""

    def __repr__(self) -> str:
        shown = [repr(self.name)] if self.name else []
        shown += [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if name != "name" and isinstance(value, (int, float, str, tuple)) and not name.startswith("_")
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class Formattable:
    """Mix-in of layers that take and return labelled arrays.

    Other layers get their inputs without labels, the axes in the order S, C, B, T, U, and the labels are put
    back on what they return, which must have as many axes.

    Examples:
        >>> from tracejit import nn
        >>> isinstance(nn.Relu(), nn.Formattable), isinstance(nn.Layer(), nn.Formattable)
        (True, False)
    """


class Acceleratable:
    """Mix-in of layers whose functions can be replayed; neighbours in a network become one accelerated function.

    Other layers run uncompiled between those, unless the network itself runs in an accelerated function.

    Examples:
        >>> from tracejit import nn
        >>> isinstance(nn.Relu(), nn.Acceleratable), isinstance(nn.Layer(), nn.Acceleratable)
        (True, False)
    """


class BuiltInLayer(Layer, Formattable, Acceleratable):
    """The base class of the layers that come with tracejit."""


def is_formattable(layer: Layer) -> bool:
    """Return whether a layer takes labelled arrays."""
    return isinstance(layer, Formattable) or getattr(layer, "formattable", False) is True


def is_acceleratable(layer: Layer) -> bool:
    """Return whether a layer can be part of an accelerated function of its network."""
    return isinstance(layer, Acceleratable) or getattr(layer, "acceleratable", False) is True


def numbered(stem: str, count: int) -> tuple[str, ...]:
    """Return a name, or several with numbers.

    >>> numbered("in", 1), numbered("in", 2)
    (('in',), ('in1', 'in2'))
    """
    return (stem,) if count == 1 else tuple([f"{stem}{number}" for number in range(1, count + 1)])


def names_of(function: str, argument: str, value: Any) -> tuple[str, ...]:
    """Return names of inputs or outputs.

    Args:
        function: name of the function or class, for errors.
        argument: name of the argument.
        value: a list or tuple of strings, at least one, and each of them once.

    Raises:
        ArgumentError: if `value` is no such list.
    """
    names = tuple([text(function, argument, name) for name in listed(function, argument, value)])
    if not names or len({*names}) < len(names):
        raise ArgumentError(
            f"{function}: {argument} must have one name or more, each of them once, not {brief(value)}."
        )
    return names
