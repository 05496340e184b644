# SPDX-License-Identifier: BSD-3-Clause
"""load(): an exported folder as a function, which neither traces nor compiles."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.explain import leaf_names
from tracejit.call.path import MISS
from tracejit.call.recycle import Entry
from tracejit.call.signature import ArrayPart, Call, Key, NumberPart, bind_arguments, key_call, layouts
from tracejit.call.tables import Pattern, Recipe
from tracejit.codegen.emit import module_source
from tracejit.errors import ArgumentError, CodegenError, ExportError, RetraceError, TraceError, TraceJitError
from tracejit.export import files, values
from tracejit.export.fitting import covers, fits
from tracejit.export.machine import HOST, executor_hash, system
from tracejit.functions import rng
from tracejit.program import Program
from tracejit.record import recorder as trace
from tracejit.record.guards import GuardFailed
from tracejit.record.state import NOTHING, State
from tracejit.traces.trace import ArrayLeaf, NumberLeaf, Replayable
from tracejit.util import logs
from tracejit.util.text import count, milliseconds

_CALL_PATHS = 4  # tried in turn before the key of a call is made
_SHOWN = 5
_WRONG = (
    TraceJitError, AttributeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """What a loaded function takes and gives: one trace.

    inputs      arguments in words: size with labels, dtype and layout of arrays, values of others
    outputs     arrays and numbers of the result in words
    guards      what values of the arguments have to decide
    constants   what the function read around its arguments when it was exported: names and values
    draws       whether it draws random numbers
    """

    inputs: str
    outputs: tuple[str, ...]
    guards: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    draws: bool

    def __str__(self) -> str:
        result = ", ".join(self.outputs) or "nothing computed"
        return f"({self.inputs}) -> {result}{''.join(f', if {guard}' for guard in self.guards)}"


class _Blocks(NamedTuple):
    blocks: int


class _Replay:
    """A program that was read, compiled."""

    def __init__(self, program: Program, key: Key, extra: int, code: Any, title: str) -> None:
        from tracejit.runtime.cpu import CpuExecutable

        self.program = program
        self.title = title
        self._executable = CpuExecutable(program, [*layouts(key), *[None] * extra], code)

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
    ) -> Entry | None:
        return self._executable.entry(formats, guarded, pattern, recipe)


class _Variant(Replayable):
    """A trace that was read."""

    def __init__(
        self,
        results: list[Any],
        treedef: tree.TreeDef,
        key: Key,
        state: State,
        replay: _Replay,
        signature: Signature,
    ) -> None:
        super().__init__(results, treedef, key, state, replay.program.guard)
        self.replay = replay
        self.signature = signature


@final
class LoadedFunction:
    """A function that was exported. Made by load.

    It takes what the accelerated function was called with before it was exported, by the same rules, and gives the same
    result. Several threads may call it at once.

    Attributes:
        path: the folder.
        sha256: the hash of the folder's manifest.
        cpu: what its object code is for: "host" or the name of a level.
        signature: what it takes and gives, for each trace.
    """

    def __init__(
        self, path: str, shared: bool, classes: Mapping[str, type], cpu: str | None, content: files.Content
    ) -> None:
        self.path = path
        self.sha256 = content.sha256
        self._shared = shared
        self._classes = dict(classes)
        manifest = content.manifest
        told = manifest["function"]
        self.__name__ = self.__qualname__ = self._name = values._text(told["name"])
        self.__module__ = values._text(told["module"])
        self.__doc__ = None if told["doc"] is None else values._text(told["doc"])
        self.__signature__ = values.decode_signature(told["parameters"])
        chosen = _chosen(manifest, path, cpu)
        self.cpu: str = chosen["name"]
        self._wanted = cpu
        self._variants = _variants(path, content, chosen, values.Classes(classes))
        self._by_key: dict[Key, list[_Variant]] = {}
        for known in self._variants:
            self._by_key.setdefault(known.key, []).append(known)
        self._numbers = [key for key in self._by_key if any(type(part) is NumberPart for part in key.parts)]
        self._fast: tuple[Any, ...] = ()  # call paths, latest first

    @property
    def signature(self) -> tuple[Signature, ...]:
        """What the function takes and gives, for each trace."""
        return tuple([known.signature for known in self._variants])

    def source(self) -> str:
        """Return the emitted Python module of each trace, with the lines of the user beside each launch."""
        return "\n\n".join(
            module_source(known.replay.program, known.replay.title) for known in self._variants
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises:
            ArgumentError: if it was not exported for such arguments.
            RetraceError: if the values of the arguments decide something that no exported trace has.
            TraceError: if an argument is traced, or the call is inside an accelerated function.
        """
        recorder = trace.recorder()
        if kwargs and self.__signature__ is not None:
            args, kwargs = bind_arguments(self._name, self.__signature__, args, kwargs)
        if recorder is None:
            whole = (args, kwargs)
            for call_path in self._fast:
                result = call_path(whole)
                if result is not MISS:
                    return result
        elif recorder.accelerating:
            raise TraceError(
                f"{self._name} was loaded and cannot be recorded, as a call inside an accelerated function would be. "
                "Call it outside, and pass its result."
            )
        return self._call(key_call(self._name, (args, kwargs), self._leaf_name), recorder is None)

    def _call(self, call: Call, is_alone: bool) -> Any:
        """Call the function the general way."""
        for leaf, name in zip(call.leaves, self._names(call.key), strict=True):
            if type(leaf) is dlarray and leaf._value is not None:
                trace.check_open(leaf)
                raise TraceError(
                    f"{self._name} was loaded and has no derivative: {name} is an array of an evaluation that goes on. "
                    "Call it outside of dlfeval, or with extractdata(...) of the argument."
                )
        is_known = False
        for key, arrays in self._fitting(call):
            is_known = True
            for known in reversed(self._by_key[key]):
                result = known.run(arrays)
                if result is not MISS:
                    if is_alone:
                        self._remember(known)
                    return result
        if not is_known:
            raise ArgumentError(f"{self._unlike(call)} {self._remedy()}")
        tried = [known for key, _ in self._fitting(call) for known in self._by_key[key]]
        guards = [guard for known in tried for guard in known.signature.guards]
        raise RetraceError(
            f"{self._name}: the values of the arguments decide something else than in each trace that was exported: "
            f"{'; '.join(dict.fromkeys(guards))}. {self._remedy()}"
        )

    def _fitting(self, call: Call) -> list[tuple[Key, list[dlarray]]]:
        """Return the keys that a call fits, with its arrays: its own, then those in which numbers vary."""
        found = [(call.key, call.arrays)] if call.key in self._by_key else []
        for key in self._numbers:
            arrays = _as_arrays(key, call)
            if arrays is not None:
                found.append((key, arrays))
        return found

    def _remember(self, known: _Variant) -> None:
        """Try the call path of a trace first at the next call."""
        call_path = known.call_path()
        if call_path is not None:
            others = [path for path in self._fast if path is not call_path]
            self._fast = (call_path, *others[: _CALL_PATHS - 1])

    def _names(self, key: Key) -> list[str]:
        return leaf_names(self, key.structure)

    def _leaf_name(self, number: int, treedef: tree.TreeDef) -> str:
        return leaf_names(self, treedef.structure)[number]

    def _unlike(self, call: Call) -> str:
        """Return in what the arguments of a call differ from those of the trace that is nearest."""
        alike = [key for key in self._by_key if key.structure == call.key.structure]
        alike.sort(key=lambda key: -sum(type(part) is NumberPart for part in key.parts))
        if not alike:
            return self._other_containers(call)
        names = self._names(call.key)
        compared = [
            [
                i
                for i, (want, have) in enumerate(zip(key.parts, call.key.parts, strict=True))
                if not fits(want, have)
            ]
            for key in alike
        ]
        places, key = min(zip(compared, alike, strict=True), key=lambda pair: len(pair[0]))
        if not places:
            return f"{self._name}: the keys of a dict are in another order than in what was exported."
        found = [f"{names[i]} is {call.key.parts[i]}, expected {key.parts[i]}" for i in places[:_SHOWN]]
        return f"{self._name}: {'; '.join(found)}{'; ...' if len(places) > _SHOWN else ''}."

    def _other_containers(self, call: Call) -> str:
        given = set(self._names(call.key))
        expected = min((set(self._names(key)) for key in self._by_key), key=lambda names: len(names ^ given))
        parts = []
        for verb, names in (("Missing", expected - given), ("Not expected", given - expected)):
            if names:
                shown = sorted(names)
                parts.append(
                    f"{verb}: {', '.join([*shown[:_SHOWN], *(['...'] if len(shown) > _SHOWN else [])])}"
                )
        if parts:
            return f"{self._name}: not the arguments that it was exported for. {'. '.join(parts)}."
        key = next(iter(self._by_key))
        place = tree.difference(
            tree.TreeDef(key.structure, [], 0), tree.TreeDef(call.key.structure, [], 0), "(args, kwargs)",
            "what was exported", "this call",
        )  # fmt: skip
        return f"{self._name}: the containers of the arguments are others: {place}."

    def _remedy(self) -> str:
        count = len(self._variants)
        return (
            f"It was exported with {count} trace{'s' if count > 1 else ''} (.signature) and records no others. Call "
            "the function that it was made of with such arguments, and export it again."
        )

    def __repr__(self) -> str:
        where = f"{self.__module__}.{self._name}" if self.__module__ else self._name
        first, *more = self.signature
        rest = f" and {len(more)} more" if more else ""
        return (
            "LoadedFunction with properties:\n\n"
            f"   function: {where}\n"
            f"       path: {self.path}\n"
            f"        cpu: {self.cpu}\n"
            f"  signature: {first}{rest}\n"
            f"     sha256: {self.sha256}"
        )

    def __reduce__(self) -> Any:
        return (_reloaded, (self.path, self._shared, self._classes, self.sha256, self._wanted))

    def __copy__(self) -> "LoadedFunction":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoadedFunction":
        return self


def load(
    path: "str | os.PathLike[str]",
    *,
    shared: bool = False,
    sha256: str | None = None,
    classes: Mapping[str, type] | None = None,
    cpu: str | None = None,
) -> LoadedFunction:
    """Return the function in a folder that export() wrote: it never traces, never compiles, and needs no Numba.

    What is in the folder runs as code, so it must belong to this user or the administrator, be writable by nobody else
    and be no link; each file must have the hash that it was written with.

    Args:
        path: of the folder.
        shared: the folder belongs to people who are trusted: who owns it and who may write to it is not asked.
        sha256: what `Exported.sha256` was; another one is an error.
        classes: named tuples and dataclasses among arguments and results, by their names; others are imported.
        cpu: which object code to use: one of `Exported.cpus`. Without it, the best for this CPU.

    Returns:
        A LoadedFunction.

    Raises:
        ExportError: if the folder is damaged, of another version, made for other machines, or not to be trusted.

    Examples:
        >>> import tempfile, numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     return tj.dlgradient((x**3).sum(), x)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = tj.export(slope, f"{folder}/slope.tj", args=(np.ones(2),))
        ...     loaded = tj.load(f"{folder}/slope.tj", sha256=made.sha256)
        >>> loaded(np.array([1.0, 2.0])).tolist()
        [3.0, 12.0]
        >>> print(loaded.signature[0])
        (x: 2 float64) -> 2 float64
    """
    started_ns = time.perf_counter_ns()
    path = os.path.abspath(os.fsdecode(path))
    _check_process()
    try:
        content = files.read(path, shared, sha256)
        made = LoadedFunction(path, shared, classes or {}, cpu, content)
    except ExportError:
        raise
    except ImportError as error:
        raise ExportError(f"load: {path} needs a package that is not there ({error}).") from error
    except _WRONG as error:
        raise ExportError(
            f"load: {path} is not what export() writes ({type(error).__name__}: {error!s:.200}). Export the function "
            "again."
        ) from error
    if logs.enabled(logs.INFO):
        told = (
            f"{made.__name__}: loaded from {path}, {count(len(made.signature), 'trace')}, code for {made.cpu}"
        )
        logs.write(logs.INFO, "load", f"{told}, in {milliseconds(time.perf_counter_ns() - started_ns)} ms.")
    return made


def _check_process() -> None:
    """Check that arrays are laid out as the executor reads them.

    Raises:
        ExportError: if they are not.
    """
    from tracejit.runtime import object_layout

    try:
        object_layout.check_layout()
        object_layout.slots()
    except CodegenError as error:
        raise ExportError(f"load: {error}") from error


def _reloaded(
    path: str, shared: bool, classes: Mapping[str, type], sha256: str, cpu: str | None
) -> LoadedFunction:
    return load(path, shared=shared, classes=classes, sha256=sha256, cpu=cpu)


def _chosen(manifest: Mapping[str, Any], path: str, wanted: str | None) -> dict[str, Any]:
    """Return what is said of the object code for the CPU of this process.

    Raises:
        ExportError: if there is none.
    """

    from tracejit.compile.ahead import LEVELS, runs_here
    from tracejit.compile.objects import host

    if manifest["executor"] != executor_hash():
        raise ExportError(
            f"load: {path} was exported by another version of tracejit, whose executor is another. Export the function "
            "again with this one, or load it with that one."
        )
    cpus: dict[str, dict[str, Any]] = {values._text(each["name"]): each for each in manifest["cpus"]}
    if manifest["system"] == system():
        _, name, features = host()
        is_own = HOST in cpus and cpus[HOST]["cpu"] == name
        for each in (*([HOST] if is_own else []), *reversed(LEVELS), HOST):
            if each not in cpus or wanted not in (None, each):
                continue
            if _has(cpus[each], name, features) if each == HOST else runs_here(each):
                return cpus[each]
    known = ", ".join(f"{name} ({each['cpu']})" if name == HOST else name for name, each in cpus.items())
    what = "" if wanted is None else f" {wanted!r}"
    raise ExportError(
        f"load: {path} has no object code{what} for this machine ({system()}, {host()[1]}); it has code for "
        f"{manifest['system']!s:.40}: {known}. Export the function here, or with cpus= that this machine has."
    )


def _has(told: Mapping[str, Any], name: str, features: str) -> bool:
    """Return whether a CPU has all that code for another one may use."""
    needed = {each for each in told["features"].split(",") if each.startswith("+")}
    return needed <= {*features.split(",")} and (bool(needed) or told["cpu"] == name)


def _variants(path: str, content: files.Content, chosen: dict[str, Any], class_of: Any) -> list[_Variant]:
    """Return the traces of a folder, ready to run."""
    from tracejit.export import program_json
    from tracejit.export.code import ExportedCode, Object

    arrays = {
        name: files.decode_array(data)
        for name, data in content.files.items()
        if name.startswith("constants/")
    }
    name, table = chosen["name"], chosen["code"]
    code = ExportedCode(
        {
            stem: Object(
                values._text(told["symbol"]),
                tuple([values._text(need) for need in told["needs"]]),
                content.files[f"code/{name}/{stem}.o"],
            )
            for stem, told in table.items()
        }
    )
    stem = f"programs/vectors-{chosen['vector_bytes']}"
    made = []
    for number, told in enumerate(content.manifest["traces"]):
        key = values.decode_key(told["key"], class_of)
        results, treedef = values.decode_results(told["results"], arrays, class_of)
        draws = told["draws"]
        state: State = NOTHING
        if draws is not None:
            blocks = _Blocks(program_json.whole(draws, 0, program_json.MOST_BYTES, "the number of blocks"))
            state = rng.Draws(NOTHING, {rng.default: blocks})  # type: ignore[dict-item]
        file = f"{stem}/trace-{number}.json"
        data = files.parse(path, file, content.files[file])
        program = program_json.decoded(data, arrays, layouts(key))
        _check_fits(program, key, results, draws is not None)
        signature = Signature(
            values._text(told["inputs"]),
            tuple([values._text(text) for text in told["outputs"]]),
            tuple([values._text(text) for text in told["guards"]]),
            tuple([(values._text(name), values._text(value)) for name, value in told["constants"].items()]),
            draws is not None,
        )
        replay = _Replay(program, key, int(draws is not None), code, values._text(told["title"]))
        made.append(_Variant(results, treedef, key, state, replay, signature))
    if not made:
        raise ValueError("there are no traces")
    return made


def _check_fits(program: Program, key: Key, results: Sequence[Any], draws: bool) -> None:
    """Check that a program takes the arrays of a key and gives those of a result."""
    wanted: list[Any] = []
    for part in key.parts:
        if type(part) is NumberPart:
            wanted.append(((), np.dtype(np.int64 if part.kind is int else np.float64)))
        elif isinstance(part, ArrayPart):
            wanted.append((part.shape, part.dtype))
    if draws:
        wanted.append(((2,), np.dtype(np.int64)))
    if [(aval.shape, aval.dtype) for aval in program.inputs] != wanted:
        raise ValueError("the inputs of a program are not the arrays of its arguments")
    computed = [leaf for leaf in results if type(leaf) in (ArrayLeaf, NumberLeaf)]
    guarded = program.guard is not None
    if len(program.outputs) != len(computed) + guarded or (guarded and program.guard != len(computed)):
        raise ValueError("the outputs of a program are not the arrays of its result")
    for leaf, aval in zip(computed, program.outputs, strict=False):
        if leaf.format is not None and len(leaf.format) != aval.ndim:
            raise ValueError("the labels of a result are not those of its array")
        if type(leaf) is NumberLeaf and aval.shape != ():
            raise ValueError("a number of the result is an array")


def _as_arrays(key: Key, call: Call) -> list[dlarray] | None:
    """Return the arrays of a call with numbers that vary among them, or None if it does not fit a key."""
    if not covers(key, call.key):
        return None
    return [
        leaf if type(leaf) is dlarray else dlarray._wrap(np.asarray(leaf), None, None)
        for part, leaf in zip(key.parts, call.leaves, strict=True)
        if type(leaf) is dlarray or type(part) is NumberPart
    ]
