# SPDX-License-Identifier: BSD-3-Clause
"""The compiled entry of a program on the device: a call of one function flattens, checks, launches and assembles.

Note [entries of a device]
In Python, a replay takes 5 to 8 us besides the driver's launch: it compares kinds of arrays, makes new ones and frees
old ones, and calls the driver by ctypes. So, as on the CPU, the entry (kernels/executor/device_entry.py) does all that:
it fills unused results again, and calls the driver by its address. Each frame has its own results, hence its own
addresses, and its own graphs. The arena is shared by all frames, whose launches follow each other on the stream. If a
call is unusual (arrays that are not aligned, a stream of the caller, a lost device), it is a miss, and Python decides.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.call.recycle import EntryPoint
from tracejit.call.tables import Pattern, Recipe
from tracejit.compile.registry import registry
from tracejit.kernels.executor import state as words
from tracejit.runtime import object_layout
from tracejit.runtime.c_function import python_function
from tracejit.runtime.cuda.arrays import ArrayKind, DeviceArray, empty_of
from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.launches import DeviceGraph

Graphs = dict[tuple[int, ...], DeviceGraph]
Place = Callable[[tuple[int, ...]], Graphs]
"""Returns all graphs of a frame, one of them for the given addresses."""


class _State(np.ndarray):
    """The state of a frame, with what has to live as long."""

    kept: Any


class DeviceEntry:
    """Makes the entry point of a program.

    Args:
        on: the device.
        inputs: the kinds of the inputs.
        outputs: those of the results.
        new_graphs: returns a function that places graphs; called for each frame.
    """

    def __init__(
        self,
        on: Driver,
        inputs: Sequence[ArrayKind],
        outputs: Sequence[ArrayKind],
        new_graphs: Callable[[], Place],
    ) -> None:
        self._on, self._inputs, self._outputs, self._new_graphs = on, inputs, outputs, new_graphs

    def point(self, formats: Sequence[str | None], pattern: Pattern, recipe: Recipe | None) -> EntryPoint:
        """Return the entry point that takes the arguments of a call and returns the result that a recipe builds.

        Args:
            formats: of the results.
            pattern: the table that the arguments have to match.
            recipe: the table that builds the result; None returns the list of results.
        """
        template = np.zeros(words.STATE_WORDS, np.intp)
        api, device, kinds, addresses, checked = (
            object_layout.api(), _device_words(), [*self._inputs, *self._outputs],
            np.array([id(format) for format in formats], np.intp), np.array(pattern.words, np.intp),
        )  # fmt: skip
        device[words.DEVICE_DRIVER] = self._on.words.ctypes.data
        checks = np.array([*map(id, kinds)], np.intp)
        template[words.API], template[words.DEVICE] = api.ctypes.data, device.ctypes.data
        template[words.CHECKS], template[words.ARRAY_TYPE] = checks.ctypes.data, id(DeviceArray)
        template[words.INPUT_COUNT], template[words.OUTPUT_COUNT] = len(self._inputs), len(self._outputs)
        template[words.TUPLE_HEAD] = tuple.__basicsize__
        template[words.RESULT_COUNT] = len(formats)
        template[words.RESULT_FORMATS], template[words.LABELLED_TYPE] = addresses.ctypes.data, id(dlarray)
        slots = (words.SLOT_DATA, words.SLOT_FORMAT, words.SLOT_VALUE, words.SLOT_WEAK)
        template[[*slots]] = object_layout.slots()
        template[words.SLOT_FIXED], template[words.SLOT_LEAVES] = object_layout.node_slots()
        template[words.PATTERN] = checked.ctypes.data
        template[words.PATTERN_END] = checked.ctypes.data + checked.nbytes
        template[words.TAKEN] = pattern.inputs
        objects = pattern.objects
        kept: list[Any] = [
            api,
            device,
            kinds,
            addresses,
            [*formats],
            checked,
            checks,
            pattern,
            recipe,
            self._on.words,
        ]
        if recipe is not None:
            table = np.array(recipe.words, np.intp)
            kept.append(table)
            template[words.RECIPE] = table.ctypes.data
            template[words.RECIPE_END] = table.ctypes.data + table.nbytes
            objects = max(objects, recipe.objects)

        def new_state() -> np.ndarray:
            data = len(kinds)
            size = words.STATE_WORDS + data + len(self._inputs) + objects + words.MOST_GRAPHS * (1 + data)
            block = np.zeros(size, np.intp).view(_State)
            start = block.ctypes.data
            block[: words.STATE_WORDS] = template
            places = np.cumsum([words.STATE_WORDS, data, len(self._inputs) + objects])
            block[[words.DATA, words.OBJECTS, words.GRAPHS]] = start + words.WORD_BYTES * places
            block.kept = kept, self._new_graphs()
            return block

        enter = python_function(registry.function("enter_on_device"))
        return EntryPoint(
            enter, new_state, lambda block: int(block[words.STATUS]), lambda block: int(block[words.TURN]),
            self._mend, lambda number: empty_of(self._on, self._outputs[number]),
        )  # fmt: skip

    def _mend(self, block: np.ndarray) -> bool:
        """Make or move a graph for the addresses of a call that has none; raise an error of the driver."""
        status, count = int(block[words.STATUS]), len(self._inputs) + len(self._outputs)
        if status == words.UNLAUNCHED:
            self._on.check_launch(int(block[words.FAULT]))
        if status != words.UNPLACED:
            return False
        assert isinstance(block, _State)
        place: Place = block.kept[1]
        at = words.STATE_WORDS
        graphs = place(tuple(block[at : at + count].tolist()))
        rows = [[graph.handle, *addresses] for addresses, graph in graphs.items()]
        table = block[len(block) - words.MOST_GRAPHS * (1 + count) :]
        table[: len(rows) * (1 + count)] = np.ravel(rows)
        block[words.GRAPH_COUNT] = len(rows)
        return True


@cache
def _slots() -> tuple[int, ...]:
    """Return the places, in words, of the attributes of an array on the device that the entry reads."""
    names = ("address", "kind", "owner", "base", "is_writeable")
    return object_layout.places_of(DeviceArray, names)


def _device_words() -> np.ndarray:
    device = np.zeros(words.DEVICE_WORDS, np.intp)
    device[words.DEVICE_DATA :] = _slots()
    return device
