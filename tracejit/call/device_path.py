# SPDX-License-Identifier: BSD-3-Clause
"""The call path of a trace whose arrays lie on a device.

It is like that of call/path.py, with two differences: an array is compared by its kind, one object for each shape,
dtype and layout, and a launch makes the results. For step(x) that returns y it is

    def replay(args):
        ...
        if type(a1) is not dlarray or a1._format is not None or a1._value is not None:
            return MISS
        a1 = a1._data
        if type(a1) is not DeviceArray or a1.kind is not k0:
            return MISS
        try:
            new_arrays = launch((a1,))
        except GuardFailed:
            return MISS
        if new_arrays is None:
            return MISS
        r0 = new(dlarray)
        ...
"""

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.call.path import PathGenerator, Stored, UncheckableError
from tracejit.call.path_text import GeneratedPath
from tracejit.call.result import ResultArray, ResultLayout
from tracejit.call.signature import ArrayPart, Key, other_format
from tracejit.record.state import State

_INDENT = "    "


def generate_for_device(
    key: Key,
    result: ResultLayout,
    outputs: Sequence[ResultArray],
    launch: Callable[[tuple[Any, ...]], Sequence[Any] | None],
    array_type: type,
    kind_of: Callable[[ArrayPart], Any],
    state: State,
    stores: Stored | None = None,
) -> GeneratedPath | None:
    """Return the call path of a trace on a device, or None if its arguments cannot be compared fast.

    Args:
        key: the key of the trace; its structure is that of (args, kwargs).
        result: the structure of the result.
        outputs: shape, dtype and format of the outputs of the program among its leaves.
        launch: runs the program on the data of the arguments and of what is read besides; returns the data of new
            arrays, None where it does not apply.
        array_type: of the data of arrays on the device.
        kind_of: returns the kind of arrays that a part of a key stands for.
        state: what the trace reads besides arguments.
        stores: what is done with the second part of the result; only the first part is returned.
    """
    generator = _DeviceGenerator(launch, state, array_type, kind_of)
    generator.keep_arguments(stores)
    try:
        arrays = [*generator.flatten(key), *generator.read()]
    except UncheckableError:
        return None
    generator.launch(outputs, arrays)
    generator.assemble(result, stores)
    if stores is not None:
        generator.store(stores)
    return generator.function()


class _DeviceGenerator(PathGenerator):
    def __init__(
        self, launch: Callable[..., Any], state: State, array_type: type, kind_of: Callable[[ArrayPart], Any]
    ) -> None:
        super().__init__(launch, state, False, ())
        self.names["DeviceArray"] = array_type
        self.kind_of = kind_of

    def launch(self, outputs: Sequence[ResultArray], arrays: Sequence[str]) -> None:
        """Emit the launch, and the dlarrays of what it returns."""
        for line in (
            "try:",
            f"{_INDENT}new_arrays = launch(({''.join(f'{name}, ' for name in arrays)}))",
            "except GuardFailed:",
            *self.dropped(1),
            "if new_arrays is None:",
            *self.dropped(1),
        ):
            self.line(line)
        self.accept()
        for i in range(len(outputs)):
            self.line(f"o{i} = new_arrays[{i}]")
        self.wrap(outputs)

    def leaf(self, source: str, part: Any, is_written: bool) -> bool:
        if not isinstance(part, ArrayPart):
            return super().leaf(source, part, is_written)
        self.miss_if(
            f"type({source}) is not dlarray or {other_format(source, part.format)} or {source}._value is not None"
        )
        self.line(f"{source} = {source}._data")
        self.miss_if(
            f"type({source}) is not DeviceArray or {source}.kind is not {self.constant(self.kind_of(part))}"
        )
        return True
