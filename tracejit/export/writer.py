# SPDX-License-Identifier: BSD-3-Clause
"""export(): the traces of an accelerated function as a folder.

Note [what is exported]
A trace depends on more than its arguments. Of that
- arrays that it reads around its arguments are constants of what is exported, if the caller says so, with what is in
  them now: its inputs that they are become constants of the program, in place, so that the kernels stay the same;
- other values that it reads are constants of the trace already, and are written down by name;
- the default generator of random numbers is that of the process that loads; another one is refused;
- what values of its arguments decide is computed by the program, as in a replay.
A trace whose state is no longer what it was, or that no second recording has confirmed, is refused.
"""

import inspect
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracejit.accelerate.function import AcceleratedFunction
from tracejit.call.explain import describe, leaf_names
from tracejit.call.signature import ArrayPart, NumberPart
from tracejit.codegen.emit import module_source
from tracejit.codegen.target import of_this_machine
from tracejit.errors import ArgumentError, ExportError
from tracejit.export import files, values
from tracejit.export.fitting import covers
from tracejit.export.machine import HOST, executor_hash, system
from tracejit.functions import rng
from tracejit.program import Kernel, Place, Pointer, Program
from tracejit.record import recorder
from tracejit.record.recorder import describe_location
from tracejit.record.state import State
from tracejit.traces.trace import ArrayLeaf, NumberLeaf, Trace
from tracejit.traces.variants import Variants

CAPTURED = ("refuse", "constants")
_CONTENT = "what is in "  # begins the names of guards that compare the elements of an array
_MORE_CALLS = 4  # than confirmations, until a call with the same arguments has to be a replay
_SHOWN = 5
_VERSIONS = ("numba", "llvmlite", "numpy", "python")


@dataclass(frozen=True, slots=True)
class Exported:
    """What export() wrote.

    path        the folder
    sha256      the hash of its manifest, which stands for all of it
    traces      the number of traces
    kernels     the number of kernels
    cpus        what there is object code for
    bytes       the size of all files
    constants   what the function read around its arguments, and is now fixed: names and values
    """

    path: str
    sha256: str
    traces: int
    kernels: int
    cpus: tuple[str, ...]
    bytes: int
    constants: tuple[tuple[str, str], ...]


def export(
    accfun: AcceleratedFunction,
    path: "str | os.PathLike[str]",
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    cpus: str | Iterable[str] = HOST,
    captured: str = "refuse",
    replace: bool = False,
) -> Exported:
    """Write the traces of an accelerated function as a folder, which load() makes a function of.

    Args:
        accfun: what dlaccelerate returned.
        path: of the folder, which must not be there yet.
        args, kwargs: arguments of a call: the function is called with them until that is a replay, and only its traces
            for such arguments are exported. Without them, all that it holds.
        cpus: what object code is for: "host", the CPU of this machine; or one or more of "x86-64-v4" (AVX-512),
            "x86-64-v3" (AVX2), "x86-64-v2" and "x86-64", which run on every CPU that has these.
        captured: what becomes of arrays that the function reads around its arguments: "refuse", or "constants": they
            stay as they are now.
        replace: an exported folder that is there already is replaced.

    Returns:
        What was written.

    Raises:
        ArgumentError: if an argument is of the wrong kind.
        ExportError: if the function has no traces, or they cannot be exported: it reads arrays, draws from a generator
            of its own, takes or returns objects that are known by identity only; or the folder cannot be written.

    Examples:
        >>> import tempfile, numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def double(x):
        ...     return 2 * x
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = tj.export(double, f"{folder}/double.tj", args=(np.ones(3),))
        ...     loaded = tj.load(f"{folder}/double.tj")
        >>> loaded(np.array([1.0, 2.0, 3.0])).tolist()
        [2.0, 4.0, 6.0]
    """
    names = _checked(accfun, cpus, captured)
    if recorder.recorder() is not None:
        raise ExportError(
            "export: a function cannot be exported inside an evaluation; call export() outside of it."
        )
    every_key = args is None and kwargs is None
    keys = accfun.variants() if every_key else [_called(accfun, args or (), kwargs or {})]
    writer = _Writer(accfun, captured)
    for known in _exportable(accfun, keys):
        writer.add(known)
    for name in names:
        writer.compile(name)
    sha256 = files.write(os.fsdecode(path), writer.manifest(), writer.files, replace)
    kernels = {name for table in writer.code.values() for name in table}
    return Exported(
        os.path.abspath(os.fsdecode(path)), sha256, len(writer.traces), len(kernels), names,
        sum(map(len, writer.files.values())), tuple(writer.fixed.items()),
    )  # fmt: skip


def _checked(accfun: Any, cpus: Any, captured: Any) -> tuple[str, ...]:
    """Check the arguments of export(), and return the names of CPUs."""
    if not isinstance(accfun, AcceleratedFunction):
        raise ArgumentError(f"export: expected an accelerated function, not {type(accfun).__name__}.")
    if captured not in CAPTURED:
        raise ArgumentError(f"export: captured: expected one of {CAPTURED}, not {captured!r}.")
    from tracejit.compile.ahead import LEVELS

    names = (cpus,) if isinstance(cpus, str) else tuple(cpus)
    for name in names:
        if name != HOST and name not in LEVELS:
            valid = ", ".join(map(repr, (HOST, *reversed(LEVELS))))
            raise ArgumentError(f"export: cpus: expected {valid}, not {name!r}.")
        if name != HOST and not system().startswith("x86_64 "):
            raise ExportError(
                f'export: object code for {name} cannot be made on {system()}; use cpus="{HOST}".'
            )
    if not names or len(set(names)) != len(names):
        raise ArgumentError(f"export: cpus: expected one or more different names, not {names!r}.")
    if executor_hash() is None:
        raise ExportError(
            "export: the sources of tracejit's kernels are not there, so that nobody could tell whether the folder "
            "fits where it is loaded. Install tracejit with its .py files."
        )
    return names


def _called(accfun: AcceleratedFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Variants:
    """Call a function until that is a replay, and return the variants of its key."""
    for _ in range(accfun.confirm + _MORE_CALLS):
        before = accfun.stats.hits
        accfun(*args, **kwargs)
        variants = accfun.variants_of(args, kwargs)
        if accfun.stats.hits > before or (variants is not None and variants.refusal is not None):
            break
    else:
        raise ExportError(f"export: calls with these arguments are not replayed. {accfun.explain()}")
    assert variants is not None
    return variants


def _exportable(accfun: AcceleratedFunction, keys: Sequence[Variants]) -> list[Trace]:
    """Return the traces to export, oldest first.

    Raises:
        ExportError: if there are none, or one cannot be replayed now.
    """
    name = _name(accfun.function)
    if not keys:
        raise ExportError(
            f"export: {name} has no traces. Call it with arguments as those that it is to take, {accfun.confirm + 1} "
            "times, or give them: export(function, path, args=(...))."
        )
    traces: list[Trace] = []
    for variants in keys:
        what = f"export: {name}, for {describe(accfun.function, variants.key)}"
        one = "Or export one signature only: export(function, path, args=(...))."
        if variants.refusal is not None:
            place = describe_location(variants.refusal.where)
            raise ExportError(
                f"{what}: it runs uncompiled, because {variants.refusal.reason} at {place}. {one}"
            )
        applicable = [trace for trace in variants.traces if trace.state.applies()]
        replayed = [trace for trace in variants.replayable(accfun.confirm) if trace in applicable]
        if len(replayed) < max(1, len(applicable)) and _is_covered(variants, keys, accfun.confirm):
            traces += reversed(replayed)
            continue
        if not applicable:
            failed = next(
                (trace.state.failed() for trace in variants.traces if trace.state.failed() is not None), None
            )
            why = "it has not been recorded" if failed is None else failed.no_longer()
            raise ExportError(
                f"{what}: its trace does not apply any more, because {why}. Call it again. {one}"
            )
        if len(replayed) < len(applicable):
            raise ExportError(
                f"{what}: a trace has not been confirmed by a second recording. Call it with the same values again, or "
                f"set confirm = 0. {one}"
            )
        traces += applicable
    return traces


def _is_covered(variants: Variants, keys: Sequence[Variants], confirm: int) -> bool:
    """Return whether a key in which numbers vary serves the calls of another key too: its first calls had none yet."""
    return any(
        other is not variants and other.replayable(confirm) and covers(other.key, variants.key)
        for other in keys
    )


class _Described(NamedTuple):
    """A trace as it is written, the memory of its inputs that become constants, and how many others are before them."""

    data: dict[str, Any]
    memory: list[tuple[np.ndarray, int]]
    first: int


class _Writer:
    """What goes into the folder."""

    def __init__(self, accfun: AcceleratedFunction, captured: str) -> None:
        self._function = accfun.function
        self._name = _name(self._function)
        self._captured = captured
        self._made: list[tuple[Trace, _Described]] = []
        self._programs: dict[int, list[Program]] = {}  # by the size of vectors
        self._cpus: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.code: dict[str, dict[str, Any]] = {}
        self.fixed: dict[str, str] = {}

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The traces as they are written."""
        return [described.data for _, described in self._made]

    def add(self, known: Trace) -> None:
        """Take a trace in."""
        self._made.append((known, self._described(known)))

    def _refuse(self, known: Trace, why: str) -> ExportError:
        return ExportError(f"export: {self._name}, for {describe(self._function, known.key)}: {why}")

    def _described(self, known: Trace) -> _Described:
        reads, blocks = _taken_apart(known.state)
        if any(source is not rng.default for source, _ in blocks):
            own = next(source for source, _ in blocks if source is not rng.default)
            raise self._refuse(
                known,
                f"it draws random numbers from {own!r}, which the function that is loaded would not have. Draw from "
                "the default generator, which rng() seeds, or pass random numbers as an argument.",
            )
        fixed = {guard.name: guard.value for guard in reads.guards() if guard.name}
        memory = self._memory(known, reads, fixed)
        names = leaf_names(self._function, known.key.structure)
        try:
            data = {
                "key": values.encode_key(known.key, names.__getitem__),
                "results": values.encode_results(known.results, known.treedef, self._keep),
            }
        except values.UnwritableError as error:
            raise self._refuse(
                known,
                f"{error}. Arguments and results of an exported function are arrays, numbers, strings, None, dtypes "
                "and containers of these: set others inside of the function, or by a lambda around it.",
            ) from None
        self.fixed |= fixed
        first = sum(isinstance(part, ArrayPart | NumberPart) for part in known.key.parts)
        told = {
            "title": known.replay.title,
            "inputs": describe(self._function, known.key),
            "outputs": _outputs(known),
            "guards": [str(guard) for guard in known.guards],
            "constants": fixed,
            "draws": sum(count for _, count in blocks) if blocks else None,
        }
        return _Described(data | told, memory, first)

    def _memory(self, known: Trace, reads: State, fixed: Mapping[str, str]) -> list[tuple[np.ndarray, int]]:
        """Return copies of the arrays that a trace reads around its arguments, and where in each its elements begin."""
        names = [str(name) for name in reads.names]
        found = list(
            dict.fromkeys(
                names + [name.removeprefix(_CONTENT) for name in fixed if name.startswith(_CONTENT)]
            )
        )
        if found and self._captured == "refuse":
            shown = ", ".join([*found[:_SHOWN], *(["..."] if len(found) > _SHOWN else [])])
            raise self._refuse(
                known,
                f"it reads arrays around its arguments: {shown}. Pass them as arguments, or keep what is in them now "
                'as constants: export(..., captured="constants").',
            )
        arrays = reads.fetch_checked()
        if arrays is None:
            raise self._refuse(known, "what it reads changed while it was exported. Export it again.")
        return [_laid_out(array) for array in arrays]

    def _keep(self, array: np.ndarray) -> str:
        content = files.encode_array(array)
        name = f"constants/{files.hash_of(content)}.npy"
        self.files[name] = content
        return name

    def compile(self, name: str) -> None:
        """Add programs and object code for a CPU."""
        from tracejit.compile import ahead
        from tracejit.compile.objects import Cpu, host
        from tracejit.export import program_json

        if name == HOST:
            _, *target = host()
            cpu, vector_bytes = None, of_this_machine()
        else:
            target = [name, ""]
            cpu, vector_bytes = Cpu(name, ""), ahead.LEVELS[name].vector_bytes
        if vector_bytes not in self._programs:
            self._programs[vector_bytes] = [
                frozen(known.replay.program_for(vector_bytes), described.memory, described.first)
                for known, described in self._made
            ]
            for i, program in enumerate(self._programs[vector_bytes]):
                stem = f"programs/vectors-{vector_bytes}/trace-{i}"
                data = program_json.encoded(program, [self._keep(array) for array in program.constants])
                self.files[f"{stem}.json"] = _json(data)
                self.files[f"{stem}.py"] = module_source(program, self._made[i][0].replay.title).encode(
                    errors="backslashreplace"
                )
        table: dict[str, Any] = {}
        kernels = dict.fromkeys(k for program in self._programs[vector_bytes] for k in program.kernels)
        everything: list[Kernel | str] = [*ahead.FUNCTIONS, *kernels]
        for wanted in everything:
            entry = ahead.object_code(wanted, cpu)
            stem = wanted if isinstance(wanted, str) else wanted.name
            self.files[f"code/{name}/{stem}.o"] = entry.code
            table[stem] = {"symbol": entry.symbol, "needs": list(entry.needs)}
        self.code[name] = table
        self._cpus.append(
            {
                "name": name,
                "cpu": target[0],
                "features": target[1],
                "vector_bytes": vector_bytes,
                "code": table,
            }
        )

    def manifest(self) -> dict[str, Any]:
        """Return what is said of the folder."""
        from tracejit.compile.key import key_of

        key = key_of("kernel", "")
        made_with = () if key is None else key.parts
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):
            signature = None
        return {
            "function": {
                "name": self._name,
                "module": str(getattr(self._function, "__module__", "")),
                "doc": inspect.getdoc(self._function),
                "parameters": values.encode_signature(signature),
            },
            "system": system(),
            "executor": executor_hash(),
            "made_with": {name: value for name, value in made_with if name in _VERSIONS},
            "cpus": self._cpus,
            "traces": self.traces,
        }  # fmt: skip


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _taken_apart(state: State) -> tuple[State, list[tuple[rng.Generator, int]]]:
    """Return what a trace reads without random numbers, and how many blocks it draws from which generators."""
    return (state.reads, state.blocks) if isinstance(state, rng.Draws) else (state, [])


def _outputs(known: Trace) -> list[str]:
    """Return the arrays and numbers of a result in words."""
    outputs = iter(known.graph.outputs)
    return [
        str(next(outputs).aval._replace(format=leaf.format))
        for leaf in known.results
        if isinstance(leaf, ArrayLeaf | NumberLeaf)
    ]


def frozen(program: Program, memory: Sequence[tuple[np.ndarray, int]], first: int) -> Program:
    """Return a program whose inputs from the `first` on are constants, which lie in `memory` as those inputs did."""
    if not memory:
        return program
    last = first + len(memory)
    starts = [(len(program.constants) + i, start) for i, (_, start) in enumerate(memory)]
    constants = [*program.constants, *[array for array, _ in memory]]

    def moved(argument: Any) -> Any:
        if not isinstance(argument, Pointer) or argument.place.kind != "input":
            return argument
        number = argument.place.number
        if number < first:
            return argument
        if number >= last:
            return argument._replace(place=Place("input", number - len(memory), argument.place.offset))
        constant, start = starts[number - first]
        return argument._replace(
            place=Place("constant", constant, 0),
            offset_bytes=argument.place.offset + argument.offset_bytes + start,
        )

    rows = [row._replace(arguments=tuple(map(moved, row.arguments))) for row in program.rows]
    inputs = [*program.inputs[:first], *program.inputs[last:]]
    return program._replace(rows=rows, inputs=inputs, constants=constants)


def _laid_out(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a copy of an array with the same strides in contiguous memory, and the byte at which it begins."""
    if array.flags.c_contiguous:
        return array.copy(), 0
    low, high = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0] - low
    memory = np.zeros((high - low) // array.itemsize, array.dtype)
    view = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    view[...] = array
    return memory, start


def _json(data: dict[str, Any]) -> bytes:
    """Return a program as text, with a line for each row."""
    head = json.dumps({name: value for name, value in data.items() if name != "rows"}, allow_nan=False)
    rows = ",\n".join([json.dumps(row, allow_nan=False) for row in data["rows"]])
    return f'{head[:-1]}, "rows": [\n{rows}\n]}}\n'.encode()
