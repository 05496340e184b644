# SPDX-License-Identifier: BSD-3-Clause
"""Python's generators of random numbers in recorded code: their methods, and the ways with traced parameters.

Sequences are of Python's objects: which of them is taken is an integer that is drawn.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import is_int64
from tracejit.functions import taking
from tracejit.functions.numpy_api import made_generators
from tracejit.functions.numpy_api.draws import DrawCall, by_value, computed, number_of, takes_traced, whole
from tracejit.record import random_methods, recorder
from tracejit.util.text import module_of

# The methods and their parameters.
_PARAMETERS = {
    "betavariate": ("alpha", "beta"),
    "binomialvariate": ("n", "p"),
    "choice": ("seq",),
    "choices": ("population", "weights", "cum_weights", "k"),
    "expovariate": ("lambd",),
    "gammavariate": ("alpha", "beta"),
    "gauss": ("mu", "sigma"),
    "getrandbits": ("k",),
    "lognormvariate": ("mu", "sigma"),
    "normalvariate": ("mu", "sigma"),
    "paretovariate": ("alpha",),
    "randint": ("a", "b"),
    "random": (),
    "randrange": ("start", "stop", "step"),
    "sample": ("population", "k", "counts"),
    "shuffle": ("x",),
    "triangular": ("low", "high", "mode"),
    "uniform": ("a", "b"),
    "vonmisesvariate": ("mu", "kappa"),
    "weibullvariate": ("alpha", "beta"),
}
_SETTING = ("seed", "setstate")
_MAKING = "__init__"


def install() -> None:
    """Have the methods of Python's generators ask while something is recorded."""
    random_methods.install("random", ("Random",), (*_PARAMETERS, *_SETTING, _MAKING), _answer)


def _answer(
    generator: Any, name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if name == _MAKING:
        return made_generators.init(generator, method, args, kwargs)
    if name in _SETTING:
        return DrawCall(generator, name, method).set(args, kwargs)
    parameters = _PARAMETERS[name]
    if len(args) > len(parameters) or module_of(type(generator)) != "random":
        return NotImplemented
    draw = DrawCall(generator, name, method)
    given = dict(zip(parameters, args, strict=False)) | kwargs
    if name in _OF_SEQUENCES:
        return _OF_SEQUENCES[name](draw, given)
    if name in _OF_INTEGERS:
        if name != "getrandbits" and takes_traced([*given.values()]):
            result = computed(draw, given)
            if result is not NotImplemented:
                return result
        given = {key: whole(value, name) for key, value in given.items()}
        # Some integers may have more than 64 bits.
        if not _fits(name, [*given.values()]):
            return NotImplemented
        return draw.result((given["k"],), {}) if name == "getrandbits" else draw.result((), given)
    if not takes_traced([*given.values()]):
        return draw.result((), given)
    way = _WAYS.get(name)
    return by_value(draw, given) if way is None else way(draw, given)


def _fits(name: str, bounds: list[Any]) -> bool:
    """Return whether all integers that a method can draw are ones of 64 bits."""
    limit = 64 if name == "getrandbits" else 1 << 63
    return all(type(bound) is int and -limit < bound < limit for bound in bounds if bound is not None)


def _uniform(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    a, b = given["a"], given["b"]
    return a + (b - a) * draw.of("random").result((), {})


def _gauss(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    return given.get("mu", 0.0) + draw.result((), {"mu": 0.0, "sigma": 1.0}) * given.get("sigma", 1.0)


def _lognormvariate(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    normal = given["mu"] + draw.of("normalvariate").result((), {"mu": 0.0, "sigma": 1.0}) * given["sigma"]
    return number_of(np.exp(normal._array if recorder.is_number(normal) else normal), float)


def _expovariate(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    return draw.result((1.0,), {}) / given["lambd"]


def _choice(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    seq = given["seq"]
    if len(seq) == 0:
        return NotImplemented
    taken = draw.out_of(seq, {})
    if taken is not None:
        return taken
    place = draw.of("randrange").result((len(seq),), {})
    return _taken(seq, place)


def _choices(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    population = given["population"]
    named = {name: value for name, value in given.items() if name != "population"}
    if takes_traced([*named.values()]) or not hasattr(population, "__getitem__") or len(population) == 0:
        return by_value(draw, given)
    taken = draw.out_of(population, named)
    if taken is not None:
        return taken
    if type(population) in (list, tuple) and {*map(type, population)} == {float}:
        return draw.result((population,), named)
    places = draw.result((range(len(population)),), named)
    return [_taken(population, place) for place in places]


def _sample(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    population, k = given["population"], given.get("k")
    if given.get("counts") is not None or k is None or not _is_read_by_place(population):
        return NotImplemented
    k = whole(k, draw.name)
    taken = draw.out_of(population, {"k": k})
    if taken is not None:
        return taken
    places = draw.result((range(len(population)), k), {})
    return [_taken(population, place) for place in places]


def _shuffle(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Answer shuffle: a list of numbers of one type gets numbers that vary; others have their elements moved."""
    x = given["x"]
    kinds = {*map(type, x)} if type(x) is list else set()
    if kinds not in ({int}, {float}) or not all(map(_is_plain, x)):
        return NotImplemented
    places = DrawCall(draw.generator, draw.name, _shuffled).array(len(x))
    if isinstance(places, dlarray):
        taken = taking.take(np.array(x), places, axis=0)
        x[:] = [number_of(taken[i], type(x[0])) for i in range(len(x))]
    else:
        x[:] = [x[place] for place in places]
    return None


def _is_plain(number: Any) -> bool:
    return type(number) is float or is_int64(number)


def _shuffled(generator: random.Random, count: int) -> list[int]:
    """Return places in the order into which a generator brings them."""
    places = list(range(count))
    generator.shuffle(places)
    return places


def _is_read_by_place(population: Any) -> bool:
    """Return whether a population is one of which Python reads elements as an index does."""
    return type(population) in (list, tuple, range, str, bytes, deque) or isinstance(population, dlarray)


def _taken(seq: Any, place: Any) -> Any:
    """Return an element; of a list, the place is a guard."""
    if type(seq) is range:
        return seq.start + seq.step * place
    return seq[place] if isinstance(seq, (dlarray, np.ndarray)) else seq[whole(place, "choice")]


_OF_INTEGERS = frozenset({"getrandbits", "randint", "randrange"})
_OF_SEQUENCES: dict[str, Callable[[DrawCall, Mapping[str, Any]], Any]] = {
    "choice": _choice,
    "choices": _choices,
    "sample": _sample,
    "shuffle": _shuffle,
}
_WAYS: dict[str, Callable[[DrawCall, Mapping[str, Any]], Any]] = {
    "expovariate": _expovariate,
    "gauss": _gauss,
    "lognormvariate": _lognormvariate,
    "normalvariate": _gauss,
    "uniform": _uniform,
}
