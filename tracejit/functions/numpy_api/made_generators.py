# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers that recorded code makes: np.random.default_rng(seed), random.Random(seed).

Note [generators that a call makes]
What a generator gives that the call makes of a constant seed are constants of the trace: each call would draw the same
numbers. Where the seed is a number that varies, the program makes the generator, and draws from it (Note [draws in
programs]). Which generators are the call's own is told by the functions that make them: by their names (default_rng),
by the structure of the class (RandomState; Note [calls of classes] in record/constructors.py), or by the method
__init__.
"""

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.functions.numpy_api.draws import takes_traced, whole
from tracejit.functions.numpy_api.lists import is_traced
from tracejit.record import constructors, monitor, patches, recorder
from tracejit.util.frames import user_frame

_OF_BITS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_SEEDS = (int, str, bytes, float, np.integer, type(None))  # which are the same numbers in each call


def install() -> None:
    """Have the functions that make generators of NumPy's ask while something is recorded."""

    def installed() -> None:
        module = sys.modules["numpy.random"]
        patches.answer_user(module, "default_rng", _default_rng)
        for kind in (module.Generator, module.RandomState, *[getattr(module, name) for name in _OF_BITS]):
            constructors.replace(kind, _made)

    patches.when_imported("numpy.random", installed)
    constructors.replace(random.Random, lambda make, *args, **kwargs: make())  # __init__ takes the seed


def _default_rng(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    current = recorder.recorder()
    if current is None or not takes_traced((*args, *kwargs.values())):
        return NotImplemented
    if not all(_is_computed(current, seed) for seed in (*args, *kwargs.values())):
        return function(*[whole(seed, "default_rng") for seed in (*args, *kwargs.values())])
    from tracejit.functions.numpy_api.draws_in_programs import made_in_program  # with rules of derivatives

    return made_in_program("default_rng", function, args, kwargs)


def _made(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return an instance of a class of generators, or of what these take their bits from, which the call makes."""
    made = make(*args, **kwargs)
    frame, generators = user_frame(), _generators()
    if generators is not None and frame is not None and not monitor.is_library(frame.f_code.co_filename):
        seeds = (*args, *kwargs.values())
        if len(seeds) == 1 and isinstance(seeds[0], sys.modules["numpy.random"].BitGenerator):
            generators.note_made_of(made, seeds[0])
        elif all(_is_constant(seed) for seed in seeds):
            generators.note_made(made, is_seeded=any(seed is not None for seed in seeds))
    return made


def init(generator: Any, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer the method __init__ of one of Python's generators."""
    current, generators, seeds = recorder.recorder(), _generators(), (*args, *kwargs.values())
    if current is None or generators is None or type(generator) is not random.Random or len(seeds) > 1:
        return NotImplemented
    if not all(_is_computed(current, seed) for seed in seeds) or not takes_traced(seeds):
        if all(_is_constant(seed) or is_traced(seed) for seed in seeds):
            generators.note_made(generator, is_seeded=any(seed is not None for seed in seeds))
        return method(generator, *[whole(seed, "Random") for seed in seeds])
    from tracejit.functions.numpy_api.draws_in_programs import made_in_program

    def made(*seeds: Any) -> Any:
        method(generator, *seeds)
        return generator

    made_in_program("Random", random.Random, seeds, {}, made)
    return None


def _generators() -> Any:
    """Return the generators that the recording has met, or None if it looks for none."""
    current = recorder.recorder()
    return None if current is None else current.state.generators


def _is_constant(seed: Any) -> bool:
    """Return whether a seed gives the same numbers in each call, as its value is a constant of the trace."""
    if type(seed) in (list, tuple):
        return all(map(_is_constant, seed))
    return isinstance(seed, _SEEDS)


def _is_computed(current: recorder.Recorder, seed: Any) -> bool:
    """Return whether a program can make a generator of a seed, at this place of the code."""
    if type(seed) in (list, tuple):
        return all(_is_computed(current, part) for part in seed)
    is_of_call = current.accelerating and current.replaces and current.has_values
    is_once = not current.maps and not current.assumed and current.memories.begun is None
    return is_of_call and is_once and (is_traced(seed) or type(seed) is int)
