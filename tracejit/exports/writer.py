# SPDX-License-Identifier: BSD-3-Clause
"""export(): the traces of an accelerated function as a folder.

Note [exported state]
A trace depends on more than its arguments:
- Captured arrays are inputs of the program. If the caller allows it, they are exported as constants with their current
  contents. They keep their layout, so that the kernels stay the same.
- Other captured values are constants of the trace already. They are listed by name.
- Random numbers come from the default generator of the process that loads the function. Any other generator is refused.
- Guards on the values of arguments are computed by the program, as in a replay.
A trace whose captured state has changed, or that no second recording has confirmed, is refused.
"""

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.accelerate.function import AcceleratedFunction
from tracejit.call.copies import copied
from tracejit.call.explain import describe, leaf_names
from tracejit.call.result import is_output
from tracejit.call.signature import ArrayPart, NumberPart, key_fits
from tracejit.capture.guards import CONTENTS_OF
from tracejit.codegen.emit import module_source
from tracejit.codegen.target import of_this_machine
from tracejit.compile.capability import Capability
from tracejit.errors import ArgumentError, CodegenError, ExportError
from tracejit.exports import files, values
from tracejit.exports.device import CUDA, checked_capabilities, code_of, neutral
from tracejit.exports.freezing import frozen, laid_out
from tracejit.exports.machine import HOST, checked_targets, executor_hash, system
from tracejit.functions import rng
from tracejit.ops import Kind
from tracejit.ops.op import Passed
from tracejit.passes.graph.bodies import with_bodies
from tracejit.program import Kernel, Program
from tracejit.record import recorder
from tracejit.record.recorder import at_location
from tracejit.record.state import State
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Variants
from tracejit.util.arguments import flag, is_option, listed, named
from tracejit.util.arguments import path as checked_path
from tracejit.util.devices import on_host
from tracejit.util.files import hash_of
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, name_of

CAPTURED = ("refuse", "constants")
_MORE_CALLS = 4  # than confirmations, until a call with the same arguments has to be a replay
_SHOWN = 5
_VERSIONS = ("numba", "llvmlite", "numpy", "python")


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of export().

    path        the folder
    sha256      the hash of its manifest, which identifies its content
    traces      the number of traces
    kernels     the number of kernels
    cpus        the targets of its object code: CPUs, or GPUs such as "cuda 9.0"
    bytes       the size of all files
    constants   captured state, which is fixed from now on: names and values
    """

    path: str
    sha256: str
    traces: int
    kernels: int
    cpus: tuple[str, ...]
    bytes: int
    constants: tuple[tuple[str, str], ...]


def export(
    accfun: AcceleratedFunction[..., Any],
    path: "str | os.PathLike[str]",
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    cpus: str | Iterable[str] = HOST,
    captured: str = "refuse",
    replace: bool = False,
    target: str = "cpu",
    capabilities: str | Iterable[str] | None = None,
) -> Exported:
    """Write the traces of an accelerated function to a folder, from which load() makes a function.

    Args:
        accfun: the accelerated function.
        path: of the folder, which must not exist yet.
        args, kwargs: arguments of a call. The function is called with copies of them until the call is a replay, and
            only the traces for these arguments are exported. Without them, all its traces are. These are calls like
            any other: what the function changes besides its arguments, as attributes of an object, is changed.
        cpus: the targets of the object code: "host", the CPU of this machine; or one or more of "x86-64-v4" (AVX-512),
            "x86-64-v3" (AVX2), "x86-64-v2" and "x86-64", each for all CPUs of that level and above.
        captured: "refuse" raises an error if the function captures arrays; "constants" exports their current contents.
        replace: whether an existing exported folder is replaced.
        target: "cpu", or "cuda" for a function that runs on a GPU, also where none is at hand.
        capabilities: the compute capabilities of these GPUs, such as "9.0" or ("8.0", "9.0"); None is that of the GPU
            of this process. Code for 8.0 runs on 8.6 and 8.9 too.

    Returns:
        What was written, as an Exported.

    Raises:
        ArgumentError: if an argument is of the wrong kind.
        DeviceError: if no capabilities are given, and there is no GPU.
        ExportError: if the function has no traces, or they cannot be exported: it captures arrays, draws from its own
            random generator, or takes or returns objects that are known by identity only; or the folder cannot be
            written.

    Examples:
        >>> import tempfile, numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def double(x):
        ...     return 2 * x
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = tj.export(double, f"{folder}/double.tj", args=(np.ones(3),))
        ...     loaded = tj.load(f"{folder}/double.tj")
        >>> loaded(np.array([1.0, 2.0, 3.0])).tolist()
        [2.0, 4.0, 6.0]
    """
    if not isinstance(accfun, AcceleratedFunction):
        raise ArgumentError(
            f"export: expected an accelerated function, not {type(accfun).__name__}; pass dlaccelerate(function)."
        )
    if not is_option(captured, CAPTURED):
        raise ArgumentError(f"export: captured: expected one of {CAPTURED}, not {brief(captured)}.")
    devices = checked_capabilities(target, cpus, capabilities)
    targets = () if devices else checked_targets(cpus)
    path = checked_path("export", "path", path)
    args = None if args is None else listed("export", "args", args)
    kwargs = None if kwargs is None else named("export", "kwargs", kwargs)
    replace = flag("export", "replace", replace)
    if recorder.recorder() is not None:
        raise ExportError(
            "export: a function cannot be exported while dlfeval or an accelerated function runs; call export() "
            "afterwards."
        )
    every_key = args is None and kwargs is None
    keys = accfun.variants() if every_key else _call_until_replayed(accfun, args or (), kwargs or {})
    writer = _Writer(accfun, captured, bool(devices))
    for trace in _exportable(accfun, keys):
        writer.add(trace)
    for name in targets:
        writer.compile(name)
    for capability in devices:
        writer.compile_for_device(capability)
    sha256 = files.write(path, writer.manifest(), writer.files, replace)
    kernels = {name for table in writer.code.values() for name in table}
    return Exported(
        os.path.abspath(path), sha256, len(writer.traces), len(kernels), targets or tuple(map(str, devices)),
        sum(map(len, writer.files.values())), tuple(writer.fixed.items()),
    )  # fmt: skip


def _call_until_replayed(
    accfun: AcceleratedFunction[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Variants]:
    """Call a function until the call is a replay.

    Returns:
        The variants of its key, after those of keys in which its numbers vary.
    """
    leaves, treedef = tree.flatten((tuple(args), dict(kwargs)))
    for _ in range(accfun.confirm + _MORE_CALLS):
        before = accfun.stats.hits
        own_args, own_kwargs = tree.unflatten(treedef, copied(leaves))  # which the function may write
        accfun(*own_args, **own_kwargs)
        variants = accfun.variants_of(args, kwargs)
        if accfun.stats.hits > before or (variants is not None and variants.refusal is not None):
            break
    else:
        why = accfun.explain() if accfun.enabled else "Set its option enabled to True."
        raise ExportError(f"export: calls with these arguments are not replayed. {why}")
    assert variants is not None
    return [*_covering(variants, accfun.variants(), accfun.confirm), variants]


def _exportable(accfun: AcceleratedFunction[..., Any], keys: Sequence[Variants]) -> list[Trace]:
    """Return the traces to export, oldest first.

    Raises:
        ExportError: if there are none, or one cannot be replayed now.
    """
    name = name_of(accfun.function)
    if not keys:
        raise ExportError(
            f"export: {name} has no traces. Call it {accfun.confirm + 1} times with the arguments to export it for, or "
            "give them: export(function, path, args=(...))."
        )
    traces: list[Trace] = []
    for variants in keys:
        what = f"export: {name}, for {describe(accfun.function, variants.key)}"
        one = "Or export the traces for other arguments only: export(function, path, args=(...))."
        if variants.refusal is not None:
            place = at_location(variants.refusal.where)
            raise ExportError(f"{what}: it runs uncompiled, because {variants.refusal.reason}{place}. {one}")
        applicable = [trace for trace in variants.traces if trace.state.applies()]
        replayed = [trace for trace in variants.replayable(accfun.confirm) if trace in applicable]
        if len(replayed) < max(1, len(applicable)) and _is_covered(variants, keys, accfun.confirm):
            traces += reversed(replayed)
            continue
        if not applicable:
            failed = next(
                (trace.state.failed() for trace in variants.traces if trace.state.failed() is not None), None
            )
            why = "it was not recorded" if failed is None else failed.no_longer()
            raise ExportError(
                f"{what}: its trace no longer applies, because {why}. Call the function again. {one}"
            )
        if len(replayed) < len(applicable):
            raise ExportError(
                f"{what}: no second recording has confirmed a trace. Call the function with the same values again, or "
                f"set confirm = 0. {one}"
            )
        traces += applicable
    return traces


def _is_covered(variants: Variants, keys: Sequence[Variants], confirm: int) -> bool:
    """Return whether a key in which numbers vary also serves the calls of this key, recorded before they varied."""
    return bool(_covering(variants, keys, confirm))


def _covering(variants: Variants, keys: Sequence[Variants], confirm: int) -> list[Variants]:
    """Return the keys in which numbers vary that serve the calls of this key too."""
    return [
        other
        for other in keys
        if other is not variants and other.replayable(confirm) and key_fits(other.key, variants.key)
    ]


class _Selected(NamedTuple):
    """A trace to export.

    trace       the trace
    record      its record in the manifest
    captured    its captured arrays, which become constants: memory, and the byte in it at which the array begins
    first       the number of the program's input that is the first captured array
    """

    trace: Trace
    record: dict[str, Any]
    captured: list[tuple[np.ndarray, int]]
    first: int


class _Writer:
    """Collects the files and the manifest of a folder."""

    def __init__(self, accfun: AcceleratedFunction[..., Any], captured: str, on_device: bool) -> None:
        self._function = accfun.function
        self._name = name_of(self._function)
        self._captured = captured
        self._on_device = on_device
        self._selected: list[_Selected] = []
        self._programs: dict[str, list[Program]] = {}  # folder -> a program for each trace
        self._targets: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.code: dict[str, dict[str, Any]] = {}
        self.fixed: dict[str, str] = {}

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The records of the traces in the manifest."""
        return [selected.record for selected in self._selected]

    def add(self, trace: Trace) -> None:
        """Add a trace.

        Raises:
            ExportError: if it cannot be exported.
        """
        for node in with_bodies(trace.graph):
            if node.op.kind is Kind.HOST and not isinstance(node.op.emit, Passed):
                raise self._refusal(
                    trace,
                    f"it calls {node.op.name}{at_location(node.where)}, Python code that runs between the kernels and "
                    "that a loaded function does not have. Write it with functions of tracejit.",
                )
        reads, blocks = rng.without_draws(trace.state)
        self._check_generators(trace, blocks)
        fixed = {guard.name: guard.value for guard in reads.guards() if guard.name}
        captured = self._captured_arrays(trace, reads, fixed)
        names = leaf_names(self._function, trace.key.structure)
        key = neutral(trace.key) if self._on_device else trace.key
        try:
            record: dict[str, Any] = {
                "key": values.encode_key(key, names.__getitem__),
                "results": values.encode_results(trace.result, self._keep),
            }
        except values.UnwritableError as error:
            raise self._refusal(
                trace,
                f"{error}. Arguments and results of an exported function are arrays, numbers, strings, None, dtypes "
                "and containers of these. Bind other objects inside the function, or in a lambda around it.",
            ) from None
        self.fixed |= fixed
        record |= {
            "title": trace.replay.title,
            "inputs": describe(self._function, key),
            "outputs": _outputs(trace),
            "guards": [str(guard) for guard in trace.guards],
            "constants": fixed,
            "draws": sum(count for _, count in blocks) if blocks else None,
            "writes": self._written(trace, names),
            "meets_numbers": trace.effects.numbers,
        }
        first = sum(isinstance(part, ArrayPart | NumberPart) for part in trace.key.parts)
        self._selected.append(_Selected(trace, record, captured, first))

    def _refusal(self, trace: Trace, why: str) -> ExportError:
        return ExportError(f"export: {self._name}, for {describe(self._function, trace.key)}: {why}")

    def _check_generators(self, trace: Trace, blocks: list[tuple[rng.Generator, int]]) -> None:
        others = [repr(generator) for generator, _ in blocks if generator is not rng.default]
        if names := [*others, *trace.state.generator_draws]:
            raise self._refusal(
                trace,
                f"it draws random numbers from {names[0]}, which a loaded function does not have. Draw from the "
                "default generator, which rng() seeds, or pass random numbers as an argument.",
            )

    def _written(self, trace: Trace, names: Sequence[str]) -> list[str]:
        """Return the names of the arguments that a trace writes."""
        if trace.stores is not None:
            first = trace.stores.stores[0]
            place = first.change.place
            why = f"it assigns {place}, which a loaded function does not have. Return the new value."
            if first.is_passed:
                why = f"it assigns {place}, which a loaded function does not do. Assign it in a copy, and return that."
            raise self._refusal(trace, why)
        targets = trace.effects.targets
        arrays = [
            name
            for name, part in zip(names, trace.key.parts, strict=True)
            if isinstance(part, ArrayPart | NumberPart)
        ]
        captured = [trace.state.names[number - len(arrays)] for number in targets if number >= len(arrays)]
        if captured:
            raise self._refusal(
                trace,
                f"it writes {captured[0]}, an array that it captures, which a loaded function does not have. Pass it "
                "as an argument.",
            )
        if targets and not trace.writes_inputs:
            raise self._refusal(
                trace,
                f"it writes {arrays[targets[0]]}, whose memory is that of another argument, or overlaps itself. Export "
                "it with arguments that share no memory.",
            )
        return [arrays[number] for number in targets]

    def _captured_arrays(
        self, trace: Trace, reads: State, fixed: Mapping[str, str]
    ) -> list[tuple[np.ndarray, int]]:
        """Return copies of the captured arrays, and the byte at which each begins in its memory."""
        compared = [name.removeprefix(CONTENTS_OF) for name in fixed if name.startswith(CONTENTS_OF)]
        names = list(dict.fromkeys([*map(str, reads.names), *compared]))
        if names and self._captured == "refuse":
            shown = ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])
            raise self._refusal(
                trace,
                f"it captures arrays: {shown}. Pass them as arguments, or export their current contents as constants: "
                'export(..., captured="constants").',
            )
        arrays = reads.fetch_checked()
        if arrays is None:
            raise self._refusal(trace, "captured state changed during the export. Export it again.")
        arrays = tuple(map(on_host, arrays))
        if self._on_device:  # where they lie one after the other
            return [(np.ascontiguousarray(array).reshape(array.shape), 0) for array in arrays]
        return [laid_out(array) for array in arrays]

    def _keep(self, array: np.ndarray) -> str:
        content = files.encode_array(array)
        name = f"constants/{hash_of(content)}.npy"
        self.files[name] = content
        return name

    def compile(self, name: str) -> None:
        """Add programs and object code for a target."""
        from tracejit.compile import ahead
        from tracejit.compile.objects import Cpu, host

        if name == HOST:
            _, cpu_name, features = host()
            cpu, vector_bytes = None, of_this_machine()
        else:
            cpu_name, features = name, ""
            cpu, vector_bytes = Cpu(name, ""), ahead.LEVELS[name].vector_bytes
        programs = self._programs_for(
            f"programs/vectors-{vector_bytes}", lambda trace: trace.replay.program_for(vector_bytes)
        )
        kernels = dict.fromkeys(kernel for program in programs for kernel in program.kernels)
        table: dict[str, Any] = {}
        functions: list[Kernel | str] = [*ahead.FUNCTIONS, *kernels]
        for function in functions:
            entry = ahead.object_code(function, cpu)
            stem = function if isinstance(function, str) else function.name
            self.files[f"code/{name}/{stem}.o"] = entry.code
            table[stem] = {"symbol": entry.symbol, "needs": list(entry.needs)}
        self.code[name] = table
        self._targets.append(
            {
                "name": name,
                "cpu": cpu_name,
                "features": features,
                "vector_bytes": vector_bytes,
                "code": table,
            }
        )

    def compile_for_device(self, capability: Capability) -> None:
        """Add programs and code for GPUs of a capability."""
        programs = self._programs_for(f"programs/{CUDA}", self._program_for_device)
        kernels = list(dict.fromkeys(kernel for program in programs for kernel in program.kernels))
        form, code = code_of(kernels, capability)
        for name, content in code.items():
            self.files[f"code/{CUDA}-{capability.dotted}/{name}.{form}"] = content
        self.code[str(capability)] = dict.fromkeys(code)
        self._targets.append({"name": str(capability), "form": form, "code": list(code)})

    def _program_for_device(self, trace: Trace) -> Program:
        try:
            return trace.replay.program_for_device()
        except CodegenError as error:
            raise self._refusal(
                trace, f'it has no program for a GPU: {error} Export it with target="cpu".'
            ) from error

    def _programs_for(self, folder: str, program_of: Callable[[Trace], Program]) -> list[Program]:
        """Return the programs of all traces, whose files are added to a folder at the first call."""
        from tracejit.exports import program_json

        if folder not in self._programs:
            programs = self._programs[folder] = [
                frozen(program_of(trace), captured, first) for trace, _, captured, first in self._selected
            ]
            for i, (program, selected) in enumerate(zip(programs, self._selected, strict=True)):
                stem = f"{folder}/trace-{i}"
                constants = [self._keep(array) for array in program.constants]
                source = module_source(program, selected.trace.replay.title)
                self.files[f"{stem}.json"] = _json(program_json.encoded(program, constants))
                self.files[f"{stem}.py"] = source.encode(errors="backslashreplace")
        return self._programs[folder]

    def manifest(self) -> dict[str, Any]:
        """Return the manifest, without the list of the files."""
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
            CUDA if self._on_device else "cpus": self._targets,
            "traces": self.traces,
        }  # fmt: skip


def _outputs(trace: Trace) -> list[str]:
    """Return the arrays and numbers of a result, in words."""
    outputs = iter(trace.graph.outputs)
    return [
        str(next(outputs).aval._replace(format=leaf.format))
        for leaf in trace.result.leaves
        if is_output(leaf)
    ]


def _json(data: dict[str, Any]) -> bytes:
    """Return a program as JSON, with a line for each row."""
    head = json.dumps({name: value for name, value in data.items() if name != "rows"}, allow_nan=False)
    rows = ",\n".join([json.dumps(row, allow_nan=False) for row in data["rows"]])
    return f'{head[:-1]}, "rows": [\n{rows}\n]}}\n'.encode()
