# SPDX-License-Identifier: BSD-3-Clause
"""The options of an accelerated function, checked where they are set."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.accelerate import messages
from tracejit.config import PRECISIONS
from tracejit.errors import ArgumentError
from tracejit.traces.variants import Most
from tracejit.util.arguments import is_option, is_real, real
from tracejit.util.text import brief

CHECK_MODES = ("none", "tolerance", "sample")
TARGETS = ("auto", "cpu", "cuda")
NAMES = (
    "cache_size", "check_every", "check_mode", "check_tolerance", "confirm", "audit", "max_variants", "enabled",
    "precision", "target", "write_arguments",
)  # fmt: skip


READ_ONLY = ("function", "hit_rate", "occupancy", "stats")


MOST = Most(values=8, branches=64)
"""The numbers of traces that are kept for a key by default."""


class Options:
    """The values of the options; see AcceleratedFunction."""

    cache_size: int = 50
    check_mode: str = "none"
    check_tolerance: float = 1e-4
    enabled: bool = True
    confirm: int = 1
    audit: bool = True
    max_variants: int | None = None
    check_every: int = 100
    write_arguments: bool = True
    precision: str = "default"
    target: str = "auto"

    @property
    def most(self) -> Most:
        """The largest number of traces of one key."""
        return MOST if self.max_variants is None else Most(self.max_variants, self.max_variants)


class Aiming:
    """The beginning of an accelerated function in memory, in which compiled code finds its aim."""

    __slots__ = ("_aim",)


class OptionProperties(Aiming):
    """Options as properties, and nothing else that could be set; an accelerated function is one of these."""

    __slots__ = ("__dict__", "__weakref__", "_options")

    _options: Options

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the class, or one that the underlying function has (functools.wraps copies those).

        Raises:
            AttributeError: if there is no such attribute, or it cannot be set.
        """
        if name in READ_ONLY:
            raise AttributeError(messages.read_only(name))
        is_special = name.startswith("__") and name.endswith("__")
        is_declared = name not in _SPELLINGS and any(name in vars(cls) for cls in type(self).__mro__)
        if not is_special and not is_declared and name not in self.__dict__:
            raise AttributeError(messages.unknown_attribute(name, NAMES, READ_ONLY))
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Return the names of the attributes, without their other spellings."""
        return [name for name in super().__dir__() if name not in _SPELLINGS]

    def _set(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            setattr(self, name, value)

    def _as_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES}

    def _changed(self) -> None:
        """Act on options that have changed."""
        raise NotImplementedError

    def _traces_changed(self) -> None:
        """Act on a change of an option that the traces so far do not have."""
        raise NotImplementedError

    @property
    def enabled(self) -> bool:
        """True if calls are accelerated."""
        return self._options.enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._options.enabled = _flag("enabled", value)
        self._changed()

    @property
    def write_arguments(self) -> bool:
        """True if what the function writes into its arguments is written into the caller's arrays."""
        return self._options.write_arguments

    @write_arguments.setter
    def write_arguments(self, value: bool) -> None:
        self._options.write_arguments = _flag("write_arguments", value)
        self._traces_changed()

    @property
    def precision(self) -> str:
        """ "default", or "highest": convolutions of float32 are direct sums, without Winograd's method."""
        return self._options.precision

    @precision.setter
    def precision(self, value: str) -> None:
        if not is_option(value, PRECISIONS):
            raise ArgumentError(f"precision: expected one of {PRECISIONS}, not {brief(value)}.")
        self._options.precision = value
        self._traces_changed()

    @property
    def target(self) -> str:
        """ "auto" (where the arrays of a call are), "cpu" or "cuda" (the GPU, to which arrays are copied)."""
        return self._options.target

    @target.setter
    def target(self, value: str) -> None:
        if not is_option(value, TARGETS):
            raise ArgumentError(f"target: expected one of {TARGETS}, not {brief(value)}.")
        self._options.target = value
        self._changed()

    @property
    def audit(self) -> bool:
        """True if calls 8, 64, 512, ... of a key are recorded again."""
        return self._options.audit

    @audit.setter
    def audit(self, value: bool) -> None:
        self._options.audit = _flag("audit", value)
        self._changed()

    @property
    def confirm(self) -> int:
        """The number of later recordings that have to agree with a trace before it is replayed."""
        return self._options.confirm

    @confirm.setter
    def confirm(self, value: int) -> None:
        self._options.confirm = _whole("confirm", value, 0)
        self._changed()

    @property
    def max_variants(self) -> int | None:
        """Largest number of traces kept for one key; None: 8 that differ by numbers, 64 that differ by branches."""
        return self._options.max_variants

    @max_variants.setter
    def max_variants(self, value: int | None) -> None:
        self._options.max_variants = None if value is None else _whole("max_variants", value, 1)

    @property
    def cache_size(self) -> int:
        """Largest number of keys kept."""
        return self._options.cache_size

    @cache_size.setter
    def cache_size(self, value: int) -> None:
        self._options.cache_size = _whole("cache_size", value, 1)
        self._changed()

    @property
    def check_every(self) -> int:
        """With check_mode="sample", every how many calls of a key one is checked."""
        return self._options.check_every

    @check_every.setter
    def check_every(self, value: int) -> None:
        self._options.check_every = _whole("check_every", value, 1)
        self._changed()

    @property
    def check_mode(self) -> str:
        """ "none", "tolerance" (every replay is checked) or "sample" (one of check_every calls is)."""
        return self._options.check_mode

    @check_mode.setter
    def check_mode(self, value: str) -> None:
        if not is_option(value, CHECK_MODES):
            raise ArgumentError(f"check_mode: expected one of {CHECK_MODES}, not {brief(value)}.")
        self._options.check_mode = value
        self._changed()

    @property
    def check_tolerance(self) -> float:
        """Largest accepted difference, absolute or relative."""
        return self._options.check_tolerance

    @check_tolerance.setter
    def check_tolerance(self, value: float) -> None:
        if isinstance(value, bool) or not is_real(value) or not value > 0:
            raise ArgumentError(f"check_tolerance: expected a positive number, not {brief(value)}.")
        self._options.check_tolerance = float(real("dlaccelerate", "check_tolerance", value))


class _OtherSpelling:
    """An attribute that does not exist; reading it raises an error with the right name.

    A __getattr__ would know more spellings, but with one CPython looks up every attribute in a slower way: it adds 4 %
    to the shortest replay.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise AttributeError(messages.unknown_attribute(self._name, NAMES, READ_ONLY))


def _spellings() -> Iterator[str]:
    """Yield CacheSize, cacheSize and cachesize for cache_size, and likewise for the others."""
    for name in (*NAMES, *READ_ONLY):
        words = name.split("_")
        title = "".join(map(str.title, words))
        yield from {title, title[0].lower() + title[1:], "".join(words)} - {name}


_SPELLINGS = frozenset(_spellings())
for _spelling in _SPELLINGS:
    setattr(OptionProperties, _spelling, _OtherSpelling(_spelling))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name}: expected True or False, not {brief(value)}.")
    return bool(value)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not (
        isinstance(value, (int, np.integer)) and is_real(value) and value >= least
    ):
        kind = "a positive integer" if least else "an integer of at least 0"
        raise ArgumentError(f"{name}: expected {kind}, not {brief(value)}.")
    return int(value)
