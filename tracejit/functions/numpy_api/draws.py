# SPDX-License-Identifier: BSD-3-Clause
"""Draws of random numbers by generators of NumPy's and Python's in recorded code.

With plain arguments a draw is an input of the trace (Note [draws of generators]). With traced ones it is made of a draw
with plain arguments, as the code of the generator makes it, so that the numbers are the same: ``rng.normal(m, s)`` is
``m + s * rng.standard_normal()``. Where there is no such way, the program draws (Note [draws in programs]).
"""

import copy
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.functions.numpy_api.lists import is_traced
from tracejit.record import random_methods, recorder
from tracejit.record.generator_draws import GeneratorDraw, drawn_array, made_of, undisturbed
from tracejit.record.generator_states import copy_of, restore
from tracejit.record.memory import is_private
from tracejit.record.plain_numbers import note_use
from tracejit.record.pools import ElementLayout, Taken, Taking
from tracejit.util.devices import on_host
from tracejit.util.named_tuples import NamedTuple

# Those whose results have no derivative by the parameters.
_DISCRETE = frozenset({
    "binomial", "binomialvariate", "choice", "choices", "geometric", "hypergeometric", "integers", "logseries",
    "multinomial", "multivariate_hypergeometric", "negative_binomial", "permutation", "permuted", "poisson", "randint",
    "random_integers", "randrange", "sample", "shuffle", "zipf",
})  # fmt: skip
_PLAIN = (bool, int, float, complex, str, range, np.generic, np.dtype, type, type(None))


class DrawCall(NamedTuple):
    """A call of a method of a generator.

    generator   the generator
    name        of the method
    method      its function
    """

    generator: Any
    name: str
    method: Callable[..., Any]

    def of(self, name: str) -> "DrawCall":
        """Return a call of another method."""
        kind = type(self.generator)
        return DrawCall(
            self.generator, name, getattr(getattr(kind, name), "__wrapped__", getattr(kind, name))
        )

    def array(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for plain arguments as an array, which is traced if it can be."""
        result, array = self._drawn(args, kwargs)
        return array if array is not None else result

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result for plain arguments; a number of Python's stays one, which varies if it is traced."""
        result, array = self._drawn(args, kwargs)
        return result if array is None else self.as_result(result, array)

    @staticmethod
    def as_result(result: Any, array: Any) -> Any:
        """Return what stands for a result: an array, or numbers that vary."""
        if type(result) is list:
            return [number_of(part, type(each)) for part, each in zip(array, result, strict=True)]
        return number_of(array, type(result)) if type(result) in (int, float) else array

    def _drawn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Return the result, and the traced array that stands for it, or None."""
        with undisturbed():
            return self._drawn_alone(args, kwargs)

    def _drawn_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        current = recorder.recorder()
        if current is not None and current.assumed:
            return self.assumed(current, args, kwargs), None
        if current is None or not self._is_noted(current, args, kwargs):
            result = self.method(self.generator, *args, **kwargs)
            random_methods.leave(self.generator)
            return result, None
        if id(self.generator) in current.tokens:
            return self.drawn_in_program(current, args, kwargs)
        kept = copy.deepcopy(args), copy.deepcopy(kwargs)
        result, data = drawn_array(self.generator, self.method, args, kwargs)
        kinds = (int, float, np.ndarray, list, data.dtype.type)
        if data.dtype not in SUPPORTED_DTYPES or type(result) not in kinds:
            random_methods.leave(self.generator)
            return result, None
        traced = current.draw(data)
        self._note(current, *kept, traced._value)
        return result, traced

    def out_of(self, pool: Any, named: dict[str, Any]) -> Any:
        """Return what the method draws out of a pool (Note [pools] in record/pools.py); None if no replay can."""
        current = recorder.recorder()
        if current is None or not current.state.is_pool(pool):
            return None
        is_plain = {*map(type, named.values())} <= {int}  # no weights
        if is_plain and self.is_repeated(current, named) and id(self.generator) not in current.tokens:
            state = copy_of(self.generator)
            try:
                with undisturbed():
                    drawn = self.method(self.generator, pool, **named)
            except Exception:
                current.state.read_pool(pool)  # code that handles it goes on as this list decides
                raise
            is_one = self.name == "choice"
            found = self._rows_of(current, pool, named, [drawn] if is_one else drawn)
            if found is not None:
                return found[0] if is_one else found
            restore(self.generator, state)
        current.state.read_pool(pool)
        return None

    def _rows_of(
        self, current: recorder.Recorder, pool: Any, named: dict[str, Any], elements: list[Any]
    ) -> list[Any] | None:
        """Return what stands for drawn elements: rows of inputs of the trace; None if no columns take them."""
        layout = ElementLayout.of(elements[0]) if elements else None
        written = [change.data for change in current.memories.written.values()]
        columns = None if layout is None else layout.arrays(elements, written)
        if (
            layout is None
            or columns is None
            or not all(map(current.state.is_apart, layout.arrays_in(elements)))
        ):
            return None
        arrays = tuple(map(current.draw, columns))
        values = tuple([array._value for array in arrays])
        parts = [
            [number_of(row, column.kind) if column.is_number else row for row in array]
            for array, column in zip(arrays, layout.columns, strict=True)
        ]
        given = layout.elements(parts)
        taking = Taking(layout, None if self.name == "choice" else len(elements))
        taken = Taken(
            pool, taking, elements, [*zip(given, zip(*parts, strict=True), strict=True)], arrays, values,
            recorder.user_location(),
        )  # fmt: skip
        self._note(current, (), named, None, taken=taken)
        return given

    def set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call of a method that sets the state of the generator, which replays repeat if they can."""
        args = tuple([whole(value, self.name) for value in args])
        kwargs = {name: whole(value, self.name) for name, value in kwargs.items()}
        current = recorder.recorder()
        is_noted = current is not None and self._is_noted(current, args, kwargs)
        kept = copy.deepcopy(args), copy.deepcopy(kwargs)
        result = self.method(self.generator, *args, **kwargs)
        if current is not None and is_noted and id(self.generator) not in current.tokens:
            self._note(current, *kept, None)
        elif current is not None and current.state.generators is not None:
            current.state.generators.note_state(self.generator)
        return result

    def assumed(self, current: recorder.Recorder, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the result in a step or a branch that the call does not make: the generator gives it once more."""
        current.draws_in_steps += 1
        state = copy_of(self.generator)
        try:
            return self.method(self.generator, *args, **kwargs)
        finally:
            restore(self.generator, state)

    @property
    def is_discrete(self) -> bool:
        """True if its results have no derivative by its parameters."""
        return self.name in _DISCRETE

    def drawn_in_program(
        self, current: recorder.Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Return the result of a draw that the program makes, and the traced array of it, or None."""
        from tracejit.functions.numpy_api.draws_in_programs import in_program  # with rules of derivatives

        result, array = in_program(self, args, kwargs)
        if array is not None:
            self._note(current, (), {}, None, in_program=True)
        return result, array

    def _note(
        self, current: recorder.Recorder, args: Any, kwargs: Any, value: Any, in_program: bool = False,
        taken: Taken | None = None,
    ) -> None:  # fmt: skip
        """Note a call that replays make again."""
        is_of_made = in_program and any(self.generator is other for other in made_of(current.generator_draws))
        draw = GeneratorDraw(
            self.generator, self.name, self.method, args, kwargs, value, in_program, is_of_made, taken
        )
        current.generator_draws.append(draw)
        current.has_replaced = True
        current.state.generators.has_drawn(self.generator)
        for part in _parts((args, kwargs)):
            if isinstance(part, (np.ndarray, float, np.generic)):
                current.state.number(part)  # which may come from anywhere

    def _is_noted(self, current: recorder.Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether a replay can make the call; what else draws is told by the state of the generator."""
        return all(map(_is_plain, _parts((args, kwargs)))) and self.is_repeated(current, kwargs)

    def is_repeated(self, current: recorder.Recorder, kwargs: Mapping[str, Any]) -> bool:
        """Return whether a replay can draw from the generator, at this place of the code."""
        is_of_call = current.accelerating and current.replaces and current.has_values
        generators = current.state.generators
        current.draws_in_steps += current.memories.begun is not None
        if not is_of_call or current.maps or current.assumed or "out" in kwargs or generators is None:
            return False
        if generators.may_draw(self.generator):
            return True
        if generators.is_disturbed(self.generator):  # the recording is right for this call, and no other
            current.replayable = current.refusal is not None
        return False


def without_constants(x: Any) -> Any:
    """Return an argument with ndarrays in the places of arrays that the function has made of constants."""
    if type(x) in (list, tuple):
        return type(x)(map(without_constants, x))
    return np.array(x._data) if isinstance(x, dlarray) and x._value is None and is_private(x) else x


def takes_traced(values: Iterable[Any]) -> bool:
    """Return whether arguments are traced, or hold something that is."""
    return any(map(is_traced, _parts(list(values))))


def computed(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Return a draw that the program makes once it has computed the arguments; NotImplemented if no replay can."""
    current = recorder.recorder()
    others = [part for part in _parts(given) if not is_traced(part)]
    if current is None or not draw.is_repeated(current, given) or not all(map(_is_plain, others)):
        return NotImplemented
    result, array = draw.drawn_in_program(current, (), dict(given))
    return result if array is None else draw.as_result(result, array)


_REMEDY = "draw from a generator that is made outside of the function, and not in a step or a branch (dlscan, dlcond)"


def by_value(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Return a draw with the values of traced arguments: the program makes it, or the function runs uncompiled."""
    result = computed(draw, given)
    return outside_of_programs(draw, given) if result is NotImplemented else result


def outside_of_programs(draw: DrawCall, given: Mapping[str, Any], remedy: str = _REMEDY) -> Any:
    """Return a draw with the values of traced arguments, which no program makes: the function runs uncompiled."""
    current = recorder.recorder()
    values = {name: value_of(draw, x) for name, x in given.items()}
    if current is not None and current.assumed:
        return draw.assumed(current, (), values)
    if current is not None and current.accelerating:
        current.refuse(
            f"it draws with parameters that vary ({draw.name}) where no replay could do that",
            recorder.user_location(),
            remedy,
        )
    return draw.method(draw.generator, **values)


def value_of(draw: DrawCall, x: Any) -> Any:
    """Return the value of an argument, which is noted if its derivative gets lost."""
    if recorder.is_number(x):
        return x.needed(draw.name, drops=draw.name not in _DISCRETE)
    if type(x) in (list, tuple):
        return type(x)([value_of(draw, part) for part in x])
    if not isinstance(x, dlarray):
        return x
    if x._value is not None and x._data.dtype.kind in "fc" and draw.name not in _DISCRETE:
        note_use(x, draw.name)
    return np.array(on_host(x._data))


def number_of(array: Any, kind: type) -> Any:
    """Return the number of Python's that an array without axes stands for."""
    if not isinstance(array, dlarray) or array._value is None:
        return kind(array)
    array = array if array._format is None else recorder.wrap(array._data, None, array._value)
    return recorder.number_class()(kind(on_host(array._data).item()), array, None, is_asked_for=True)


def _parts(value: Any) -> list[Any]:
    """Return the parts of arguments that are no containers."""
    if type(value) in (list, tuple):
        return [part for each in value for part in _parts(each)]
    if type(value) is dict:
        return _parts([*value.values()])
    return [value]


def _is_plain(part: Any) -> bool:
    return (type(part) is np.ndarray and part.dtype != object) or isinstance(part, _PLAIN)


def whole(size: Any, method: str) -> Any:
    """Return a size, or a bound, with integers in the places of numbers that vary, each of which is a guard.

    Args:
        size: a number, or a (nested) list of them.
        method: that takes it.
    """
    if type(size) in (list, tuple):
        return type(size)([whole(part, method) for part in size])
    if recorder.is_number(size):
        return operator.index(size.needed(f"{method}()", drops=False))
    if not isinstance(size, dlarray):
        return size
    return (
        operator.index(recorder.need_value(size, f"{method}()"))
        if size._value is not None
        else operator.index(size)
    )


def plainly(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Make a call with the values of the arguments, for which NumPy raises an error."""
    return draw.method(draw.generator, **{name: value_of(draw, value) for name, value in given.items()})
