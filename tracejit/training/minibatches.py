# SPDX-License-Identifier: BSD-3-Clause
"""minibatchqueue: mini-batches of data, in order or at random, from where they were left."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import check_format, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError, BoundsError, DimsError, TraceError
from tracejit.functions.random import randperm, rng
from tracejit.functions.rng import Generator, RngState
from tracejit.record import recorder
from tracejit.training.observations import Observations, observations, stacked
from tracejit.util.arguments import as_index, flag, integer, is_option
from tracejit.util.text import brief, count

_FUNCTION = "minibatchqueue"
_PARTIAL = ("return", "discard")


class minibatchqueue:
    """A queue of mini-batches of data: some observations at a time, in order or at random.

    A loop over it begins with the next mini-batch and ends with the last one; the loop after that starts over. Each
    mini-batch is a tuple of arrays of its own, or one array if there is only one.

    Args:
        data: collections of observations, all of the same length: arrays, whose observations lie along the axis
            labelled B, else along the first one; lists of observations; objects with a length and items (data sets),
            whose items may be tuples of parts.
        mini_batch_size: number of observations in each.
        mini_batch_fcn: function that makes the results of a mini-batch from its parts: an array for an array, else a
            list of observations. It may pad, encode or augment them. None takes them as they are.
        mini_batch_format: labels for the results: one text for all, or a tuple with one for each, None for none. Arrays
            that have labels keep them.
        output_cast: dtype of results of floating point; a tuple has one for each result, whatever that is. None casts
            nothing.
        output_as_dlarray: whether results are dlarrays; else they are ndarrays, without labels.
        partial_mini_batch: what becomes of the last observations if they do not fill a mini-batch: "return" or
            "discard".

    Attributes:
        num_observations: number of observations.
        num_mini_batches: number of mini-batches in each pass over the data.
        mini_batch_size: as given.

    Raises:
        ArgumentError: a collection is none, or an option is not valid.
        DimsError: the collections differ in length, or labels do not fit.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x, t = np.arange(10.0).reshape(5, 2), np.arange(5)
        >>> queue = tj.minibatchqueue(x, t, mini_batch_size=2, mini_batch_format=("BC", "B"))
        >>> [t.tolist() for x, t in queue]
        [[0, 1], [2, 3], [4]]
        >>> queue.shuffle()
        >>> x, t = queue.next()
        >>> x.format, x.shape, len(queue), queue.hasdata()
        ('BC', (2, 2), 3, True)
    """

    def __init__(
        self,
        *data: Any,
        mini_batch_size: int = 128,
        mini_batch_fcn: Callable[..., Any] | None = None,
        mini_batch_format: str | tuple[str | None, ...] | None = None,
        output_cast: Any = "float32",
        output_as_dlarray: bool = True,
        partial_mini_batch: str = "return",
    ) -> None:
        if not data:
            raise ArgumentError(
                f"{_FUNCTION}: data is missing; pass one or more arrays or lists of observations."
            )
        names = ["data"] if len(data) == 1 else [f"data[{number}]" for number in range(len(data))]
        self._collections = [observations(one, name) for one, name in zip(data, names, strict=True)]
        _check_counts(self._collections, names)
        self.mini_batch_size = integer(_FUNCTION, "mini_batch_size", mini_batch_size)
        if self.mini_batch_size < 1:
            raise ArgumentValueError(
                f"{_FUNCTION}: mini_batch_size must be at least 1, not {brief(mini_batch_size)}."
            )
        if mini_batch_fcn is not None and not callable(mini_batch_fcn):
            raise ArgumentError(
                f"{_FUNCTION}: mini_batch_fcn must be a function or None, not {brief(mini_batch_fcn)}."
            )
        if not is_option(partial_mini_batch, _PARTIAL):
            raise ArgumentError(
                f'{_FUNCTION}: partial_mini_batch must be "return" or "discard", not {brief(partial_mini_batch)}.'
            )
        self._function = mini_batch_fcn
        self._formats = _formats(mini_batch_format)
        self._dtypes = _dtypes(output_cast)
        self._as_dlarray = flag(_FUNCTION, "output_as_dlarray", output_as_dlarray)
        self._discards = partial_mini_batch == "discard"
        self._members = np.arange(self._collections[0].length)
        self._order = self._members
        self._shuffled_at: RngState | None = None
        self._at = 0

    # How many there are.

    @property
    def num_observations(self) -> int:
        """The number of observations."""
        return len(self._members)

    @property
    def num_mini_batches(self) -> int:
        """The number of mini-batches in each pass over the data."""
        full, rest = divmod(len(self._members), self.mini_batch_size)
        return full + (rest > 0 and not self._discards)

    def __len__(self) -> int:
        return self.num_mini_batches

    def __repr__(self) -> str:
        parts = ", ".join([one.what for one in self._collections])
        left = self.num_mini_batches - self._at
        return (
            f"minibatchqueue of {count(self.num_observations, 'observation')} ({parts}) in "
            f"{count(self.num_mini_batches, 'mini-batch')} of {self.mini_batch_size}, {left} left"
        )

    # One after the other.

    def hasdata(self) -> bool:
        """Return whether there is a next mini-batch in this pass over the data."""
        return self._at < self.num_mini_batches

    def next(self) -> Any:
        """Return the next mini-batch: a tuple of arrays, or one array if it is the only one.

        Raises:
            BoundsError: (an IndexError) there is none; reset or shuffle the queue.
            DimsError: observations of a list have several sizes, or labels do not fit the results.
            DTypeError: results are not numbers.
            ArgumentError: the number of formats or dtypes is not that of results.
            TraceError: a function is being recorded, whose replays would take the same mini-batch again.
        """
        if recorder.recorder() is not None:
            raise TraceError(
                f"{_FUNCTION}.next: a function is being recorded, and each of its replays would take the same "
                "mini-batch. Take it outside, and pass its arrays."
            )
        if not self.hasdata():
            raise BoundsError(
                f"{_FUNCTION}.next: all {count(self.num_mini_batches, 'mini-batch')} were taken; call "
                "reset or shuffle, or ask hasdata first."
            )
        start = self._at * self.mini_batch_size
        results = self._made(self._order[start : start + self.mini_batch_size])
        self._at += 1
        return results

    def __iter__(self) -> Iterator[Any]:
        if not self.hasdata():
            self.reset()
        while self.hasdata():
            yield self.next()

    def reset(self) -> None:
        """Go back to the first mini-batch; the order of observations stays."""
        self._at = 0

    def shuffle(self, generator: Generator | None = None) -> None:
        """Put the observations in a random order, and go back to the first mini-batch.

        Args:
            generator: source of the order; None for that of rng(), so that one seed gives the same order.

        Raises:
            ArgumentError: `generator` is no Generator.
        """
        if generator is None:
            self._shuffled_at = rng()
        elif isinstance(generator, Generator):
            self._shuffled_at = generator.state
        else:
            raise ArgumentError(
                f"{_FUNCTION}.shuffle: generator must be a Generator or None, not {brief(generator)}."
            )
        self._order = self._members[np.asarray(randperm(len(self._members), generator=generator))]
        self._at = 0

    def partition(self, num_partitions: int, index: int) -> "minibatchqueue":
        """Return a queue of a part of the observations, which are cut into parts of about equal length.

        Args:
            num_partitions: number of parts.
            index: of the part, from 0 on.

        Raises:
            ArgumentError: either is no integer, or not valid.
        """
        parts = integer(f"{_FUNCTION}.partition", "num_partitions", num_partitions)
        number = integer(f"{_FUNCTION}.partition", "index", index)
        if parts < 1 or not 0 <= number < parts:
            raise ArgumentValueError(
                f"{_FUNCTION}.partition: index must be from 0 to num_partitions - 1, not {number} of {parts}."
            )
        part = object.__new__(minibatchqueue)
        part.__dict__.update(self.__dict__)
        part._members = np.array_split(self._members, parts)[number]
        part._order, part._shuffled_at, part._at = part._members, None, 0
        return part

    # Where it stands.

    @property
    def state(self) -> dict[str, Any]:
        """The place at which the queue stands, as a dict of plain numbers, which JSON can hold."""
        return {"position": self._at, "shuffle": None if self._shuffled_at is None else [*self._shuffled_at]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the observations in the order, and the queue at the mini-batch, of a state of this or an equal queue.

        Args:
            state: as the attribute ``state`` gave it.

        Raises:
            ArgumentError: `state` is none, or of a longer queue.
        """
        try:
            position, shuffled = as_index(state["position"]), state["shuffle"]
            at = None if shuffled is None else RngState(*shuffled)
        except (TypeError, KeyError, ValueError):
            position = at = None
        if position is None or not 0 <= position <= self.num_mini_batches:
            raise ArgumentError(
                f"{_FUNCTION}.restore: state must be that of a queue of {count(self.num_mini_batches, 'mini-batch')}, "
                f"not {brief(state)}."
            )
        self._order = self._members
        if at is not None:
            with rng(at):
                self._order = self._members[np.asarray(randperm(len(self._members)))]
        self._shuffled_at, self._at = at, position

    # A mini-batch.

    def _made(self, numbers: np.ndarray) -> Any:
        parts = [part for one in self._collections for part in one.take(numbers)]
        if self._function is not None:
            made = self._function(*parts)
            parts = [*made] if isinstance(made, (tuple, list)) else [made]
        formats = _one_each("mini_batch_format", self._formats, len(parts))
        dtypes = _one_each("output_cast", self._dtypes, len(parts))
        explicit = isinstance(self._dtypes, tuple)
        results = [
            self._result(part, number, format, dtype, explicit)
            for number, (part, format, dtype) in enumerate(zip(parts, formats, dtypes, strict=True))
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def _result(
        self, part: Any, number: int, format: str | None, dtype: np.dtype | None, explicit: bool
    ) -> Any:
        place = f"result {number}"
        if isinstance(part, (list, tuple)):
            part = stacked(part, place)
        array = as_array(part, _FUNCTION, place)
        if dtype is not None and array.dtype != dtype and (explicit or array.dtype.kind == "f"):
            array = array.astype(dtype)
        if not self._as_dlarray:
            return np.asarray(array)
        if array.format is not None or format is None:
            return array
        return dlarray(array, check_format(_FUNCTION, format, array.ndim, "mini_batch_format"))


def _check_counts(collections: list[Observations], names: list[str]) -> None:
    first = collections[0].length
    for one, name in zip(collections, names, strict=True):
        if one.length != first:
            raise DimsError(
                f"{_FUNCTION}: {names[0]} has {count(first, 'observation')} and {name} {one.length}; the numbers must "
                "be equal."
            )


def _formats(given: Any) -> Any:
    formats = given if isinstance(given, tuple) else (given,)
    if not all(format is None or isinstance(format, str) for format in formats):
        raise ArgumentError(
            f"{_FUNCTION}: mini_batch_format must be labels, a tuple with labels or None for each result, or None, not "
            f"{brief(given)}."
        )
    return given


def _dtypes(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(
            [None if dtype is None else wanted_dtype(f"{_FUNCTION}: output_cast", dtype) for dtype in given]
        )
    return None if given is None else wanted_dtype(f"{_FUNCTION}: output_cast", given)


def _one_each(option: str, given: Any, results: int) -> tuple[Any, ...]:
    if not isinstance(given, tuple):
        return (given,) * results
    if len(given) != results:
        raise ArgumentError(
            f"{_FUNCTION}: {option} has {count(len(given), 'entry')} for {count(results, 'result')} of a "
            "mini-batch; give one for each."
        )
    return given
