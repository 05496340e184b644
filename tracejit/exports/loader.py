# SPDX-License-Identifier: BSD-3-Clause
"""load(): an exported folder as a function that neither traces nor compiles."""

import os
import time
from collections.abc import Mapping
from typing import Any, Generic, ParamSpec, TypeVar, final

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.explain import dict_names, leaf_names
from tracejit.call.result import MISS
from tracejit.call.signature import Call, Key, NumberPart, bind_arguments, key_call, key_fits
from tracejit.codegen.emit import module_source
from tracejit.errors import (
    ArgumentError,
    CodegenError,
    ExportError,
    RetraceError,
    TraceError,
    TraceJitError,
    WriteError,
)
from tracejit.exports import files, values
from tracejit.exports.device import CUDA
from tracejit.exports.mismatch import mismatch
from tracejit.exports.traces import LoadedTrace, Signature, choose_target, read_traces
from tracejit.record import recorder
from tracejit.traces.placing import placed
from tracejit.util import arguments, logs
from tracejit.util.room import check_room
from tracejit.util.text import count, milliseconds

_CALL_PATHS = 4  # tried in turn before the key of a call is computed
_DAMAGE = (  # errors that a damaged or forged folder may raise
    TraceJitError, AttributeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError,
)  # fmt: skip

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


@final
class LoadedFunction(Generic[P, R_co]):
    """A function in an exported folder, as load() returns it.

    It takes the arguments of the exported traces, by the rules of the accelerated function, and returns the same
    result. Several threads may call it at once.

    Attributes:
        path: the folder.
        sha256: the hash of the folder's manifest.
        cpu: the target of its object code: "host", the name of a level, or a GPU such as "cuda 9.0".
        signature: the arguments and the result of each trace.
    """

    def __init__(
        self, path: str, shared: bool, classes: Mapping[str, type], cpu: str | None, content: files.Content
    ) -> None:
        self.path = path
        self.sha256 = content.sha256
        self._shared = shared
        self._classes = dict(classes)
        manifest = content.manifest
        text, record = values.checked_text, manifest["function"]
        self.__name__ = self.__qualname__ = self._name = text(record["name"])
        self.__module__ = text(record["module"])
        self.__doc__ = None if record["doc"] is None else text(record["doc"])
        self.__signature__ = values.decode_signature(record["parameters"])
        target = choose_target(manifest, path, cpu)
        self.cpu: str = target["name"]
        self._wanted_cpu = cpu
        self._on_device = CUDA in manifest
        self._traces = read_traces(path, content, target, values.Classes(classes))
        self._by_key: dict[Key, list[LoadedTrace]] = {}
        for trace in self._traces:
            self._by_key.setdefault(trace.key, []).append(trace)
        self._keys_with_numbers = [
            key for key in self._by_key if any(type(part) is NumberPart for part in key.parts)
        ]
        self._fast: tuple[Any, ...] = ()  # call paths, latest first

    @property
    def signature(self) -> tuple[Signature, ...]:
        """The arguments and the result of each trace."""
        return tuple([trace.signature for trace in self._traces])

    def source(self) -> str:
        """Return the emitted Python module of each trace, with the user's lines beside each launch."""
        return "\n\n".join(module_source(trace.replay.program, trace.replay.title) for trace in self._traces)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function.

        Raises:
            ArgumentError: if no exported trace has such arguments.
            RetraceError: if the values of the arguments lead to a branch that no exported trace has.
            TraceError: if an argument is traced, or the call is inside an accelerated function.
        """
        recording = recorder.recorder()
        if kwargs and self.__signature__ is not None:
            args, kwargs = bind_arguments(self._name, self.__signature__, args, kwargs)
        if recording is None:
            whole = (args, kwargs)
            for call_path in self._fast:
                result = call_path(whole)
                if result is not MISS:
                    return result  # type: ignore[no-any-return]
        elif recording.accelerating:
            raise TraceError(
                f"{self._name} is a loaded function, which cannot be recorded inside an accelerated function. Call it "
                "outside, and pass its result."
            )
        call = key_call(self._name, (args, kwargs), self._leaf_name)
        if self._on_device:
            call = placed(call, CUDA, self._name, self._leaf_name)
        return self._call(call, recording is None)  # type: ignore[no-any-return]

    def _call(self, call: Call, is_alone: bool) -> Any:
        """Look up the traces of a call by its key, and run the first whose guards hold."""
        for leaf, name in zip(call.leaves, self._names(call.key), strict=True):
            if type(leaf) is dlarray and recorder.is_open(leaf):
                raise TraceError(
                    f"{self._name} is a loaded function, which has no derivative, and {name} is traced by dlfeval. "
                    "Call it outside dlfeval, or with extractdata(...) of the argument."
                )
        candidates = [
            (trace, arrays) for key, arrays in self._fitting(call) for trace in reversed(self._by_key[key])
        ]
        for trace, arrays in candidates:
            result = trace.run(call._replace(key=trace.key, arrays=arrays))
            if result is not MISS:
                if is_alone:
                    self._remember(trace)
                return result
        if not candidates:
            difference = mismatch(call.key, list(self._by_key), self._names, self._dicts)
            raise ArgumentError(f"{self._name}: {difference} {self._remedy()}")
        for trace, arrays in candidates:
            if not trace.can_write(call._replace(key=trace.key, arrays=arrays).memory):
                raise WriteError(
                    f"{self._name}: it writes {', '.join(trace.signature.writes)}; one of them is read-only, or shares "
                    "memory with another argument, which no exported trace can follow. Pass a copy."
                )
        guards = dict.fromkeys(guard for trace, _ in reversed(candidates) for guard in trace.signature.guards)
        raise RetraceError(
            f"{self._name}: the values of the arguments lead to a branch that no exported trace has; the exported "
            f"traces hold where {'; '.join(guards)}. {self._remedy()}"
        )

    def _fitting(self, call: Call) -> list[tuple[Key, list[dlarray]]]:
        """Return the keys that a call fits, with its arrays: its own key, then those in which numbers vary."""
        fitting = [(call.key, call.arrays)] if call.key in self._by_key else []
        for key in self._keys_with_numbers:
            arrays = _as_arrays(key, call)
            if arrays is not None:
                fitting.append((key, arrays))
        return fitting

    def _remember(self, trace: LoadedTrace) -> None:
        """Try the call path of a trace first at the next call."""
        path = trace.call_path()
        if path is not None:
            call_path = path.run
            others = [path for path in self._fast if path is not call_path]
            self._fast = (call_path, *others[: _CALL_PATHS - 1])

    def _names(self, key: Key) -> list[str]:
        return leaf_names(self, key.structure)

    def _dicts(self, key: Key) -> list[tuple[str, tuple[Any, ...]]]:
        return dict_names(self, key.structure)

    def _leaf_name(self, number: int, treedef: tree.TreeDef) -> str:
        return leaf_names(self, treedef.structure)[number]

    def _remedy(self) -> str:
        return (
            f"A loaded function records nothing, and this one has {count(len(self._traces), 'exported trace')} "
            "(.signature). Call the original function with these arguments, and export it again."
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
        return (_reloaded, (self.path, self._shared, self._classes, self.sha256, self._wanted_cpu))

    def __copy__(self) -> "LoadedFunction[P, R_co]":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "LoadedFunction[P, R_co]":
        return self


def load(
    path: "str | os.PathLike[str]",
    *,
    shared: bool = False,
    sha256: str | None = None,
    classes: Mapping[str, type] | None = None,
    cpu: str | None = None,
) -> LoadedFunction[..., Any]:
    """Return the function in a folder that export() wrote. It never traces or compiles, and needs no Numba.

    The folder runs as code. So it must belong to this user or the administrator, be writable by nobody else and be no
    link; each file must have the hash that it was written with.

    Args:
        path: of the folder.
        shared: skips the check of owners and modes, for a folder of people who are trusted.
        sha256: the expected `Exported.sha256`; a different hash is an error.
        classes: named tuples and dataclasses among arguments and results, by their names; those not given are imported.
        cpu: the object code to use: one of `Exported.cpus`. Without it, the best for this CPU, or this GPU.

    Returns:
        A LoadedFunction.

    Raises:
        ExportError: if the folder is damaged, from a different version, made for different machines, or not to be
            trusted.

    Examples:
        >>> import tempfile, numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     return tj.dlgradient((x**3).sum(), x)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = tj.export(slope, f"{folder}/slope.tj", args=(np.ones(2),))
        ...     loaded = tj.load(f"{folder}/slope.tj", sha256=exported.sha256)
        >>> loaded(np.array([1.0, 2.0])).tolist()
        [3.0, 12.0]
        >>> print(loaded.signature[0])
        (x: 2 float64) -> 2 float64
    """
    started_ns = time.perf_counter_ns()
    path = os.path.abspath(arguments.path("load", "path", path))
    shared = arguments.flag("load", "shared", shared)
    sha256 = None if sha256 is None else arguments.text("load", "sha256", sha256)
    classes = None if classes is None else arguments.named("load", "classes", classes)
    cpu = None if cpu is None else arguments.text("load", "cpu", cpu)
    _check_process()
    try:
        content = files.read(path, shared, sha256)
        function: LoadedFunction[..., Any] = LoadedFunction(path, shared, classes or {}, cpu, content)
    except ExportError:
        raise
    except ImportError as error:
        raise ExportError(f"load: {path} needs a package that cannot be imported ({error}).") from error
    except _DAMAGE as error:
        raise ExportError(
            f"load: {path} is not what export() writes ({type(error).__name__}: {error!s:.200}). Export the function "
            "again."
        ) from error
    if logs.enabled(logs.INFO):
        traces = count(len(function.signature), "trace")
        took = milliseconds(time.perf_counter_ns() - started_ns)
        logs.write(
            logs.INFO,
            "load",
            f"{function.__name__}: loaded from {path}, {traces}, code for {function.cpu}, in {took} ms.",
        )
    return function


def _check_process() -> None:
    """Check that this process can load code, and lays arrays out as the executor reads them.

    Raises:
        ExportError: if it cannot, or does not.
    """
    from tracejit.runtime import object_layout

    try:
        check_room()
        object_layout.check_layout()
        object_layout.slots()
    except CodegenError as error:
        raise ExportError(f"load: {error}") from error


def _reloaded(
    path: str, shared: bool, classes: Mapping[str, type], sha256: str, cpu: str | None
) -> LoadedFunction[..., Any]:
    return load(path, shared=shared, classes=classes, sha256=sha256, cpu=cpu)


def _as_arrays(key: Key, call: Call) -> list[dlarray] | None:
    """Return the arrays of a call, numbers that vary among them, or None if the call does not fit a key."""
    if not key_fits(key, call.key):
        return None
    return [
        leaf if type(leaf) is dlarray else dlarray._wrap(np.asarray(leaf), None, None)
        for part, leaf in zip(key.parts, call.leaves, strict=True)
        if type(leaf) is dlarray or type(part) is NumberPart
    ]
