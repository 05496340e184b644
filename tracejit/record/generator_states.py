# SPDX-License-Identifier: BSD-3-Clause
"""The states of NumPy's and Python's generators of random numbers.

Note [states in memory]
The state of a Mersenne Twister, which RandomState and Python's generators have, is 624 words. NumPy takes 70 us to make
an array of them, and Python 12 us to make a tuple. A replay that may be dropped notes the state first. So the words are
copied from memory and back, which takes 1 us. Where they lie is looked for in a generator made for that, once for each
class; if they are not found, the state is asked for.
"""

import ctypes
import pickle
import random
import struct
import sys
from contextlib import nullcontext
from functools import cache
from typing import Any

from tracejit.record.exchanged_methods import has_usual_classes
from tracejit.util.named_tuples import NamedTuple

_WORDS = 624
_BYTES = 4 * (_WORDS + 1)  # the words, and the place among them
_GAUSS = 16  # bytes of whether there is a normal number left, and of that number


class _Memory(NamedTuple):
    """A copy of the state of a generator.

    parts   addresses, and the bytes there
    left    the normal number that one of Python's generators has left
    """

    parts: tuple[tuple[int, bytes], ...]
    left: Any = None


def is_generator(value: Any) -> bool:
    """Return whether a value is a generator of NumPy's or Python's that has methods to draw, and a state."""
    kind = type(value)
    if issubclass(kind, random.Random):
        return not issubclass(kind, random.SystemRandom)
    module = sys.modules.get("numpy.random")
    return module is not None and issubclass(kind, (module.Generator, module.RandomState))


def state_of(generator: Any) -> Any:
    """Return the state of a generator, as restore() takes it."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    bits = getattr(generator, "bit_generator", None)
    return generator.get_state(legacy=False) if bits is None else bits.state


def restore(generator: Any, state: Any) -> None:
    """Give a generator a state."""
    if type(state) is _Memory:
        with _locked(generator):
            for address, content in state.parts:
                ctypes.memmove(address, content, len(content))
        if isinstance(generator, random.Random):
            generator.gauss_next = state.left  # type: ignore[attr-defined]
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def copy_of(generator: Any) -> Any:
    """Return the state of a generator for this process alone, as restore() takes it (Note [states in memory])."""
    if type(generator) is random.Random and (offset := _offset_of_python()):
        address = id(generator) + offset[0]
        return _Memory(((address, ctypes.string_at(address, _BYTES)),), generator.gauss_next)  # type: ignore[attr-defined]
    addresses = _addresses(generator)
    if not addresses:
        return state_of(generator)
    with _locked(generator):
        parts = tuple([(address, ctypes.string_at(address, size)) for address, size in addresses])
    return _Memory(parts)


def mark_of(generator: Any) -> Any:
    """Return what copy_of() does, as something that can be compared."""
    copy = copy_of(generator)
    return copy if type(copy) is _Memory else pickle.dumps(copy)


def restore_mark(generator: Any, mark: Any) -> None:
    """Give a generator the state that mark_of() has returned."""
    restore(generator, pickle.loads(mark) if type(mark) is bytes else mark)


def _locked(generator: Any) -> Any:
    """Return the context in which no other thread draws from a generator."""
    bits = getattr(generator, "_bit_generator", None)
    return nullcontext() if bits is None else bits.lock


def _addresses(generator: Any) -> list[tuple[int, int]]:
    """Return where the state of a RandomState lies: addresses, and numbers of bytes; [] where that is unknown."""
    module = sys.modules.get("numpy.random")
    if module is None or type(generator) is not module.RandomState:
        return []
    bits = generator._bit_generator
    if type(bits) is not module.MT19937:
        return []
    return [
        part
        for offset in _offset_of_gauss()
        for part in ((bits.ctypes.state_address, _BYTES), (id(generator) + offset, _GAUSS))
    ]


@cache
def _offset_of_python() -> tuple[int, ...]:
    """Return where the state begins in one of Python's generators, if it is found."""
    generator = random.Random(1)
    generator.random()
    *words, place = generator.getstate()[1]
    memory = _memory(generator)
    offset = memory.find(struct.pack(f"{_WORDS + 1}I", place, *words))
    return (offset,) if has_usual_classes() and offset > 0 else ()


@cache
def _offset_of_gauss() -> tuple[int, ...]:
    """Return where the normal number that is left lies in a RandomState, if it and the words are found."""
    module = sys.modules["numpy.random"]
    generator = module.RandomState(1)
    generator.normal()
    state = generator.get_state(legacy=False)
    words = struct.pack(f"{_WORDS + 1}I", *state["state"]["key"].tolist(), state["state"]["pos"])
    if (
        not has_usual_classes()
        or ctypes.string_at(generator._bit_generator.ctypes.state_address, _BYTES) != words
    ):
        return ()
    offset = _memory(generator).find(struct.pack("d", state["gauss"])) - 8
    was_left = _flag(generator, offset) if offset > 0 else 0
    generator.normal()
    return (offset,) if was_left == 1 and _flag(generator, offset) == 0 else ()


def _memory(value: Any) -> bytes:
    return ctypes.string_at(id(value), type(value).__basicsize__)


def _flag(value: Any, offset: int) -> int:
    number: int = struct.unpack_from("i", _memory(value), offset)[0]
    return number
