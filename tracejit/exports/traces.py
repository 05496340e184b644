# SPDX-License-Identifier: BSD-3-Clause
"""The traces of an exported folder: read, checked, and ready to run on this CPU, or this GPU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.call.recycle import EntryPoint
from tracejit.call.result import NumberLeaf, ResultLayout, is_output
from tracejit.call.signature import ArrayPart, Key, NumberPart, layouts
from tracejit.call.tables import Pattern, Recipe
from tracejit.errors import ExportError
from tracejit.exports import files, values
from tracejit.exports.device import CUDA, DeviceCode, LoadedDeviceReplay, choose_code, on_device
from tracejit.exports.machine import HOST, executor_hash, system
from tracejit.functions import rng
from tracejit.program import Program
from tracejit.record.guards import GuardFailed
from tracejit.record.state import NOTHING, State
from tracejit.traces.effects import Effects
from tracejit.traces.trace import Replayable
from tracejit.util.named_tuples import NamedTuple

ClassOf = Callable[[str, tuple[str, ...]], type]
"""Gives the class of a name and its fields."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments and the result of one exported trace.

    inputs      arguments in words: size with labels, dtype and layout of arrays; other values
    outputs     arrays and numbers of the result in words
    guards      conditions on the values of the arguments
    constants   state that the function captured when it was exported: names and values
    draws       whether it draws random numbers
    writes      the arguments that it writes
    """

    inputs: str
    outputs: tuple[str, ...]
    guards: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    draws: bool
    writes: tuple[str, ...] = ()

    def __str__(self) -> str:
        result = ", ".join(self.outputs) or "nothing computed"
        written = f"; writes {', '.join(self.writes)}" if self.writes else ""
        return f"({self.inputs}) -> {result}{written}{''.join(f', if {guard}' for guard in self.guards)}"


class _Blocks(NamedTuple):
    """The number of blocks of random numbers that a program draws."""

    blocks: int


class LoadedReplay:
    """A program of an exported folder, compiled.

    Args:
        program: the program.
        key: of the calls that it serves.
        draws: whether its last input is the state of a random number generator.
        code: the object code of its kernels.
        title: of its emitted source.
    """

    def __init__(self, program: Program, key: Key, draws: bool, code: Any, title: str) -> None:
        from tracejit.runtime.cpu import CpuExecutable

        self.program = program
        self.title = title
        self._executable = CpuExecutable(program, [*layouts(key), *[None] * draws], code)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        outputs = self._executable(arrays)
        if self.program.guard is not None and not outputs[self.program.guard]:
            raise GuardFailed
        return outputs

    @property
    def launch(self) -> Any:
        return self._executable.launch

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint | None:
        return self._executable.entry(formats, guarded, pattern, recipe)


class LoadedTrace(Replayable):
    """A trace of an exported folder."""

    def __init__(
        self, result: ResultLayout, key: Key, state: State, replay: LoadedReplay | LoadedDeviceReplay,
        signature: Signature, effects: Effects,
    ) -> None:  # fmt: skip
        super().__init__(result, key, state, replay.program.guard, effects)
        self.replay = replay
        self.signature = signature

    def can_write(self, memory: Sequence[Any]) -> bool:
        """Return whether the arguments of a call can be written as those of the recording were."""
        return self.effects.fit(memory)


def choose_target(manifest: Mapping[str, Any], path: str, wanted: str | None) -> dict[str, Any]:
    """Return the entry of a manifest with the best object code for the CPU of this process.

    Args:
        manifest: of the folder.
        path: of the folder.
        wanted: the name of the only target to choose, or None.

    Raises:
        ExportError: if there is none.
    """
    from tracejit.compile.ahead import LEVELS, runs_here
    from tracejit.compile.objects import host

    if manifest["executor"] != executor_hash():
        raise ExportError(
            f"load: {path} was exported by a version of tracejit with a different executor. Export the function again "
            "with this version, or load it with that one."
        )
    if CUDA in manifest:
        return choose_code(manifest, path, wanted)
    targets: dict[str, dict[str, Any]] = {
        values.checked_text(target["name"]): target for target in manifest["cpus"]
    }
    if manifest["system"] == system():
        _, name, features = host()
        is_same_cpu = HOST in targets and targets[HOST]["cpu"] == name
        for choice in (*([HOST] if is_same_cpu else []), *reversed(LEVELS), HOST):
            if choice not in targets or wanted not in (None, choice):
                continue
            if _runs_on(targets[choice], name, features) if choice == HOST else runs_here(choice):
                return targets[choice]
    available = ", ".join(
        f"{name} ({target['cpu']})" if name == HOST else name for name, target in targets.items()
    )
    what = "" if wanted is None else f" {wanted!r}"
    raise ExportError(
        f"load: {path} has no object code{what} for this machine ({system()}, {host()[1]}); it has code for "
        f"{manifest['system']!s:.40}: {available}. Export the function on this machine, or with cpus= that include it."
    )


def _runs_on(target: Mapping[str, Any], name: str, features: str) -> bool:
    """Return whether a CPU has all features that the code for the exporting CPU may use."""
    needed = {feature for feature in target["features"].split(",") if feature.startswith("+")}
    return needed <= {*features.split(",")} and (bool(needed) or target["cpu"] == name)


def read_traces(
    path: str, content: files.Content, target: dict[str, Any], class_of: ClassOf
) -> list[LoadedTrace]:
    """Return the traces of a folder, ready to run.

    Args:
        path: of the folder.
        content: of the folder.
        target: the entry of the manifest with the object code to use.
        class_of: gives named tuples and dataclasses by name.

    Raises:
        ExportError: if a file cannot be read. What is wrong in one raises many kinds of errors.
    """
    arrays = {
        name: files.decode_array(data)
        for name, data in content.files.items()
        if name.startswith("constants/")
    }
    is_of_device = CUDA in content.manifest
    code = DeviceCode.of(content.files, target) if is_of_device else _object_code(content, target)
    folder = f"programs/{CUDA}" if is_of_device else f"programs/vectors-{target['vector_bytes']}"
    traces = []
    for number, record in enumerate(content.manifest["traces"]):
        file = f"{folder}/trace-{number}.json"
        program = files.parse(path, file, content.files[file])
        traces.append(_read_trace(record, program, arrays, code, class_of))
    if not traces:
        raise ValueError("there are no traces")
    return traces


def _object_code(content: files.Content, target: Mapping[str, Any]) -> Any:
    """Return the object code of all kernels and of the executor, by name."""
    from tracejit.exports.code import ExportedCode, ObjectFile

    return ExportedCode(
        {
            name: ObjectFile(
                values.checked_text(record["symbol"]),
                tuple([values.checked_text(need) for need in record["needs"]]),
                content.files[f"code/{target['name']}/{name}.o"],
            )
            for name, record in target["code"].items()
        }
    )


def _read_trace(
    record: Mapping[str, Any], data: Any, arrays: Mapping[str, np.ndarray], code: Any, class_of: ClassOf
) -> LoadedTrace:
    """Return a trace, given its record in the manifest and its program as data."""
    from tracejit.exports import program_json

    text = values.checked_text
    key = values.decode_key(record["key"], class_of)
    result = values.decode_results(record["results"], arrays, class_of)
    draws = record["draws"] is not None
    state: State = NOTHING
    if draws:
        blocks = program_json.whole(record["draws"], 0, program_json.MOST_BYTES, "the number of blocks")
        state = rng.Draws(NOTHING, {rng.default: _Blocks(blocks)})  # type: ignore[dict-item]
    program = program_json.decoded(data, arrays, layouts(key))
    _check_fits(program, key, result.leaves, draws)
    signature = Signature(
        text(record["inputs"]),
        tuple([text(output) for output in record["outputs"]]),
        tuple([text(guard) for guard in record["guards"]]),
        tuple([(text(name), text(value)) for name, value in record["constants"].items()]),
        draws,
        tuple([text(name) for name in record["writes"]]),
    )
    effects = Effects(program.written, numbers=record["meets_numbers"] is not False)
    title = text(record["title"])
    replay: LoadedReplay | LoadedDeviceReplay
    if isinstance(code, DeviceCode):
        key, replay = on_device(key), LoadedDeviceReplay(program, code, title)
    else:
        replay = LoadedReplay(program, key, draws, code, title)
    return LoadedTrace(result, key, state, replay, signature, effects)


def _check_fits(program: Program, key: Key, results: Sequence[Any], draws: bool) -> None:
    """Check that a program takes the arrays of a key and returns those of a result."""
    expected: list[Any] = []
    for part in key.parts:
        if type(part) is NumberPart:
            expected.append(((), np.dtype(part.kind)))
        elif isinstance(part, ArrayPart):
            expected.append((part.shape, part.dtype))
    if draws:
        expected.append(((2,), np.dtype(np.int64)))
    arguments = len(expected) - draws
    is_written = all(number < arguments for number in program.written)
    if not is_written or [(aval.shape, aval.dtype) for aval in program.inputs] != expected:
        raise ValueError("the inputs of a program are not the arrays of its arguments")
    computed = [leaf for leaf in results if is_output(leaf)]
    guarded = program.guard is not None
    if len(program.outputs) != len(computed) + guarded or (guarded and program.guard != len(computed)):
        raise ValueError("the outputs of a program are not the arrays of its result")
    for leaf, aval in zip(computed, program.outputs, strict=False):
        if leaf.format is not None and len(leaf.format) != aval.ndim:
            raise ValueError("the labels of a result are not those of its array")
        if type(leaf) is NumberLeaf and aval.shape != ():
            raise ValueError("a number of the result is an array")
