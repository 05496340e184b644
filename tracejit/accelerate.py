# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: a function that is recorded once for each signature of its arguments and replayed afterwards."""

import copy
import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final, overload

import numpy as np

from tracejit import generator, state, trace, tree
from tracejit.array import dlarray
from tracejit.callpath import MISS
from tracejit.compare import first_difference
from tracejit.errors import ArgumentError, CacheError, OutputsDifferWarning
from tracejit.evaluate import dlfeval
from tracejit.explain import describe, leaf_names, why_missed
from tracejit.signature import Call, Key, read
from tracejit.traces import ArrayLeaf, Trace

CHECK_MODES = ("none", "tolerance")
_CALL_PATHS = 4  # tried in turn before the key of a call is made
_EVICTED_KEPT = 1000  # remembered so that explain() can tell


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and times of an accelerated function since its cache was last cleared.

    calls, hits     calls while enabled, and those served by a trace
    traces          recordings of the underlying function
    programs        programs built; kernels that they launch, each counted once
    build_ns        time spent on building programs, without compiling them
    """

    calls: int
    hits: int
    traces: int
    programs: int
    kernels: int
    build_ns: int


@final
class AcceleratedFunction:
    """A function whose operations are recorded at the first call and replayed, compiled, at later ones.

    A trace is found by the arguments: arrays by size, format, dtype and memory layout, containers by
    structure, everything else by value. Made by dlaccelerate.

    Attributes:
        function: the underlying function.
        enabled: False runs the underlying function at each call.
        cache_size: largest number of traces kept; the least recently used one goes first.
        hit_rate: percentage (0 to 100) of calls served by a cached trace since the cache was cleared.
        occupancy: percentage (0 to 100) of the cache in use: one trace of 50 is 2.
        check_mode: "none", or "tolerance": each replay also runs the underlying function and warns
            (OutputsDifferWarning) where outputs differ.
        check_tolerance: largest accepted difference, absolute or relative to the output's magnitude.

    Examples:
        >>> import tracejit as tj
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     return tj.dlgradient((x ** 3).sum(), x)
        >>> x = tj.dlarray([1.0, 2.0])
        >>> slope(x).tolist(), slope(x).tolist()
        ([3.0, 12.0], [3.0, 12.0])
        >>> slope.hit_rate, slope.occupancy
        (50.0, 2.0)
    """

    evaluates_itself = True  # a call outside any evaluation needs no dlfeval around it

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        cache_size: int = 50,
        check_mode: str = "none",
        check_tolerance: float = 1e-4,
        enabled: bool = True,
    ) -> None:
        _check_function(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._name = _name(function)
        self._slot = f"_accelerated_{self._name}"  # of an instance's __dict__, if this is a method
        self._lock = threading.RLock()
        self._traces: dict[Key, Trace] = {}
        self._fast: tuple[tuple[Callable[[Any], Any], Trace], ...] = ()  # call paths, latest first
        self._last_trace: Trace | None = None
        # The key, those that there were, and whether its trace had been evicted.
        self._last_miss: tuple[Key, list[Key], bool] | None = None
        self._evicted: dict[int, None] = {}  # hashes of the latest keys
        self._calls = self._hits = self._recorded = 0
        self._signature: inspect.Signature | None = None
        self.enabled = enabled
        self.cache_size = cache_size
        self.check_mode = check_mode
        self.check_tolerance = check_tolerance

    @property
    def function(self) -> Callable[..., Any]:
        """The underlying function."""
        return self._function

    @property
    def enabled(self) -> bool:
        """Whether calls are accelerated."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"enabled: expected True or False, not {value!r}.")
        self._enabled = bool(value)

    @property
    def cache_size(self) -> int:
        """Largest number of traces kept."""
        return self._cache_size

    @cache_size.setter
    def cache_size(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ArgumentError(f"cache_size: expected a positive integer, not {value!r}.")
        with self._lock:
            self._cache_size = int(value)
            self._evict()

    @property
    def check_mode(self) -> str:
        """ "none" or "tolerance"."""
        return self._check_mode

    @check_mode.setter
    def check_mode(self, value: str) -> None:
        if value not in CHECK_MODES:
            raise ArgumentError(f"check_mode: expected one of {CHECK_MODES}, not {value!r}.")
        self._check_mode = value

    @property
    def check_tolerance(self) -> float:
        """Largest accepted difference, absolute or relative."""
        return self._check_tolerance

    @check_tolerance.setter
    def check_tolerance(self, value: float) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
            raise ArgumentError(f"check_tolerance: expected a positive number, not {value!r}.")
        self._check_tolerance = float(value)

    @property
    def hit_rate(self) -> float:
        """Percentage of calls served by a cached trace since the cache was cleared."""
        return 100.0 * self._hits / self._calls if self._calls else 0.0

    @property
    def occupancy(self) -> float:
        """Percentage of the cache in use."""
        return 100.0 * len(self._traces) / self._cache_size

    @property
    def stats(self) -> Stats:
        """Counts and times since the cache was cleared."""
        with self._lock:
            replays = [r for t in self._traces.values() for r in t.replays() if r.is_built]
            kernels = {kernel for r in replays for kernel in r.program.kernels}
            return Stats(
                calls=self._calls,
                hits=self._hits,
                traces=self._recorded,
                programs=len(replays),
                kernels=len(kernels),
                build_ns=sum(r.build_ns for r in replays),
            )

    def clear_cache(self) -> None:
        """Forget all traces and statistics."""
        with self._lock:
            self._traces.clear()
            self._fast = ()
            self._calls = self._hits = self._recorded = 0
            self._evicted.clear()
            self._last_trace = self._last_miss = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function: by replay where a trace fits, otherwise recording one."""
        recorder = trace.recorder()
        if not self._enabled or (recorder is not None and recorder.accelerating):  # then it is traced through
            return dlfeval(self._function, *args, **kwargs)
        if kwargs:
            args, kwargs = self._normalised(args, kwargs)
        if recorder is None and self._check_mode == "none":
            whole = (args, kwargs)
            for call_path, known in self._fast:
                result = call_path(whole)
                if result is not MISS:
                    with self._lock:
                        self._calls += 1
                        self._count_hit(known)
                    return result
        call = read(self._name, (args, kwargs), self._leaf_name)
        for array in call.arrays:
            trace.check_open(array)
        if recorder is not None:
            return self._call_within(recorder, call)
        found = self._find(call)
        if found is None:
            return self._record(call)[1]
        result = found.run(call.arrays)
        if result is MISS:
            return self._record(call)[1]
        self._remember(found)
        if self._check_mode == "tolerance":
            self._check(call, found, result)
        return result

    def source(self) -> str:
        """Return the emitted Python module of the trace that was used last.

        Raises:
            CacheError: if there is no trace.
        """
        if self._last_trace is None:
            raise CacheError(f"{self._name}: there is no emitted source yet; call the function first.")
        return "\n\n".join(replay.source() for replay in self._last_trace.replays())

    def explain(self) -> str:
        """Return in words what the last call did and why."""
        with self._lock:
            if self._last_miss is not None:
                return self._explain_miss(*self._last_miss)
            if self._last_trace is not None:
                described = describe(self._function, self._last_trace.key)
                return f"{self._name}: hit. The call was replayed from the trace for {described}."
        return f"{self._name} has not been called since its cache was cleared."

    def __repr__(self) -> str:
        name = getattr(self._function, "__module__", None)
        where = f"{name}.{self._name}" if name else self._name
        return (
            "AcceleratedFunction with properties:\n\n"
            f"         function: {where}\n"
            f"          enabled: {self.enabled}\n"
            f"       cache_size: {self.cache_size}\n"
            f"         hit_rate: {self.hit_rate:g}\n"
            f"        occupancy: {self.occupancy:g}\n"
            f"       check_mode: {self.check_mode!r}\n"
            f"  check_tolerance: {self.check_tolerance:g}"
        )

    def __set_name__(self, owner: type, name: str) -> None:
        self._slot = f"_accelerated_{owner.__qualname__}.{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of an instance, with a cache of its own that lives as long as the instance."""
        if instance is None:
            return self
        if isinstance(instance, type):  # under classmethod: the class is an argument like others
            return types.MethodType(self, instance)
        try:
            methods = instance.__dict__
        except AttributeError:
            raise ArgumentError(
                f"{self._name}: instances of {type(instance).__name__} have no __dict__ to keep the cache of an "
                "accelerated method in; remove __slots__, or accelerate a function that takes the arrays."
            ) from None
        method = methods.get(self._slot)
        # The __dict__ of a copied instance has the method of the other one.
        if method is None or method.function.__self__ is not instance:
            function = types.MethodType(self._function, instance)
            method = methods[self._slot] = AcceleratedFunction(function, **self._settings())
            method._slot = self._slot
        return method

    def _settings(self) -> dict[str, Any]:
        return {
            "cache_size": self._cache_size,
            "check_mode": self._check_mode,
            "check_tolerance": self._check_tolerance,
            "enabled": self._enabled,
        }

    # Copies and pickles have the settings but not the traces.

    def __copy__(self) -> "AcceleratedFunction":
        return AcceleratedFunction(self._function, **self._settings())

    def __deepcopy__(self, memo: dict[int, Any]) -> "AcceleratedFunction":
        return AcceleratedFunction(copy.deepcopy(self._function, memo), **self._settings())

    def __reduce__(self) -> Any:
        if isinstance(self._function, types.MethodType):
            instance, name = self._function.__self__, self._slot.rpartition(".")[2]
            if getattr(instance, name, None) is self:
                return (getattr, (instance, name), self._settings())
        name = getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for step in name.split("."):
            found = getattr(found, step, None)
        if found is self:
            return name  # as functions are pickled
        return (functools.partial(AcceleratedFunction, **self._settings()), (self._function,))

    def __setstate__(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def _find(self, call: Call) -> Trace | None:
        """Return the trace for a call, counting a hit or a miss."""
        with self._lock:
            self._calls += 1
            found = self._traces.get(call.key)
            if found is None:
                self._last_miss = (call.key, list(self._traces), hash(call.key) in self._evicted)
                return None
            self._count_hit(found)
            return found

    def _count_hit(self, found: Trace) -> None:
        self._hits += 1
        found.used = self._calls
        self._last_trace = found
        self._last_miss = None

    def _remember(self, found: Trace) -> None:
        """Try the call path of a trace first at the next call."""
        with self._lock:
            others = tuple(pair for pair in self._fast if pair[1] is not found)
            pair = next((pair for pair in self._fast if pair[1] is found), None)
            if pair is None:
                path = found.call_path()
                if path is None:
                    return
                pair = (path, found)
            self._fast = (pair, *others[: _CALL_PATHS - 1])

    def _record(self, call: Call) -> tuple[Trace, Any]:
        """Run the function on a new trace, keep the trace, and return both it and the result."""
        reads = state.reads_of(self._function)
        with trace.Recorder(self._name, accelerating=True, state=reads) as recorder:
            inputs = [recorder.input(leaf) if type(leaf) is dlarray else leaf for leaf in call.leaves]
            args, kwargs = tree.unflatten(call.treedef, inputs)
            leaves, treedef = tree.flatten(self._function(*args, **kwargs))
            # Outputs of a replay are contiguous arrays of their own; so are those of the recording.
            held = {id(value.data) for value in (*recorder.graph.inputs, *recorder.graph.constants)}
            results: list[Any] = []
            arrays: list[dlarray] = []
            for leaf in leaves:
                if type(leaf) is not dlarray:
                    if isinstance(leaf, Iterator):
                        raise ArgumentError(
                            f"{self._name}: the result holds a {type(leaf).__name__}, which could be run through "
                            "only once, and not by a replay; return a list."
                        )
                    results.append(leaf.copy() if isinstance(leaf, np.ndarray) else leaf)
                    continue
                trace.check_open(leaf)
                recorder.graph.outputs.append(recorder.value(leaf))
                results.append(ArrayLeaf(leaf._format))
                data = leaf._data
                own = leaf._value is not None and data.base is None and id(data) not in held
                if not own or not data.flags.c_contiguous:
                    data = data.copy()
                held.add(id(data))
                arrays.append(dlarray._wrap(data, leaf._format, None))
        reads = generator.joined(reads, recorder)
        made = Trace(recorder.graph, results, treedef, self._name, call.key, reads)
        with self._lock:
            self._recorded += 1
            made.used = self._calls
            if recorder.replayable:
                self._traces[call.key] = made
                self._last_trace = made
                self._evict()
        return made, made.assemble(arrays)

    def _call_within(self, recorder: trace.Recorder, call: Call) -> Any:
        """Record the call as one op of the evaluation around it."""
        found = self._find(call)
        known = found is not None
        read = None if found is None else found.state.fetch()
        if found is None or read is None:
            known = False
            with generator.apart():  # the op draws once more what is drawn here
                found, _ = self._record(call._replace(leaves=_untraced(call.leaves)))
            read = found.state.fetch()
            assert read is not None  # it was recorded just now
        outputs = trace.apply_op(found.op(), [*call.arrays, *map(trace.wrap, read)], {})
        found.state.accepted()
        count = sum(1 for leaf in found.results if type(leaf) is ArrayLeaf)
        result = found.assemble(list(outputs[:count]))
        if known and self._check_mode == "tolerance":
            self._check(call, found, result, stacklevel=4)
        return result

    def _check(self, call: Call, found: Trace, result: Any, stacklevel: int = 3) -> None:
        """Warn if the underlying function gives other outputs than a replay gave."""
        args, kwargs = tree.unflatten(call.treedef, _untraced(call.leaves))
        with trace.suspended(), generator.apart(found.state.drawn()):
            expected = dlfeval(self._function, *args, **kwargs)
        difference = first_difference(result, expected, self._check_tolerance)
        if difference is not None:
            warnings.warn(
                f"Accelerated outputs differ from underlying function outputs. {self._name}: {difference}. Values that "
                "do not come from array arguments are constants of a trace (numbers from closures, NumPy's "
                "random numbers, the outcome of an if); pass them as arguments.",
                OutputsDifferWarning,
                stacklevel=stacklevel,
            )

    def _evict(self) -> None:
        while len(self._traces) > self._cache_size:
            oldest = min(self._traces.values(), key=lambda kept: kept.used)
            del self._traces[oldest.key]
            self._evicted[hash(oldest.key)] = None
            if len(self._evicted) > _EVICTED_KEPT:
                del self._evicted[next(iter(self._evicted))]
            self._fast = tuple(pair for pair in self._fast if pair[1] is not oldest)

    def _normalised(self, args: Any, kwargs: Any) -> Any:
        """Return arguments as the signature orders them, so that f(x, y) and f(x, y=y) share a trace."""
        if self._signature is None:
            try:
                self._signature = inspect.signature(self._function)
            except (TypeError, ValueError):
                return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs

    def _leaf_name(self, number: int, treedef: tree.TreeDef) -> str:
        return leaf_names(self._function, treedef.structure)[number]

    def _explain_miss(self, key: Key, known: list[Key], evicted: bool) -> str:
        described = describe(self._function, key)
        if key not in self._traces:
            return f"{self._name}: miss. The function raised an error for {described}, and no trace was kept."
        head = f"{self._name}: miss. A new trace was recorded for {described}"
        if evicted:
            return (
                f"{head}, because the trace that there was had been evicted: more than cache_size "
                f"({self._cache_size}) are in use. Increase cache_size, or pass arrays of fewer sizes."
            )
        return f"{head}, {why_missed(self._function, key, known)}"


def _check_function(function: Any) -> None:
    if isinstance(function, AcceleratedFunction):
        raise ArgumentError("dlaccelerate: the function is accelerated already.")
    if isinstance(function, (staticmethod, classmethod)):
        kind = type(function).__name__
        raise ArgumentError(
            f"dlaccelerate: expected a function, not a {kind}; put @{kind} above @dlaccelerate."
        )
    if not callable(function):
        raise ArgumentError(f"dlaccelerate: expected a function, not {type(function).__name__}.")
    for code in (function, type(function).__call__):
        if inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code):
            raise ArgumentError(
                f"dlaccelerate: {_name(function)} is async; accelerate the functions it awaits."
            )
        if inspect.isgeneratorfunction(code):
            raise ArgumentError(
                f"dlaccelerate: {_name(function)} is a generator; accelerate the function that makes one element."
            )


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _untraced(leaves: list[Any]) -> list[Any]:
    return [
        dlarray._wrap(leaf._data, leaf._format, None) if type(leaf) is dlarray else leaf for leaf in leaves
    ]


@overload
def dlaccelerate(function: Callable[..., Any], /) -> AcceleratedFunction: ...


@overload
def dlaccelerate(
    function: None = None, /, *, cache_size: int = 50, check_mode: str = "none", check_tolerance: float = 1e-4,
    enabled: bool = True,
) -> Callable[[Callable[..., Any]], AcceleratedFunction]: ...  # fmt: skip


def dlaccelerate(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return an accelerated version of a function; also a decorator, with and without arguments.

    Args:
        function: a function of dlarrays, containers of them and values; it may call dlgradient.
        options: cache_size (50), check_mode ("none"), check_tolerance (1e-4), enabled (True): see
            AcceleratedFunction.

    Returns:
        An AcceleratedFunction, or, without `function`, a decorator that makes one.

    Raises:
        ArgumentError: if `function` cannot be accelerated (not callable, async, a generator), or an option
            is unknown or not valid.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> @tj.dlaccelerate(cache_size=10)
        ... def loss(w, x):
        ...     y = ((x @ w) ** 2).mean()
        ...     return y, tj.dlgradient(y, w)
        >>> y, grad = loss(tj.dlarray(np.ones((2, 1))), tj.dlarray(np.eye(2)))
        >>> y.item(), grad.tolist()
        (1.0, [[1.0], [1.0]])
    """
    unknown = options.keys() - {"cache_size", "check_mode", "check_tolerance", "enabled"}
    if unknown:
        raise ArgumentError(
            f"dlaccelerate: unknown option {sorted(unknown)[0]!r}; options are cache_size, check_mode, "
            "check_tolerance and enabled."
        )
    if function is None:
        return lambda decorated: AcceleratedFunction(decorated, **options)
    return AcceleratedFunction(function, **options)


def clear_cache(accfun: AcceleratedFunction) -> None:
    """Forget all traces and statistics of an accelerated function.

    Args:
        accfun: what dlaccelerate returned.

    Raises:
        ArgumentError: if `accfun` is not an accelerated function.

    Examples:
        >>> import tracejit as tj
        >>> double = tj.dlaccelerate(lambda x: 2 * x)
        >>> double(tj.dlarray([1.0])).tolist(), double.occupancy
        ([2.0], 2.0)
        >>> tj.clear_cache(double)
        >>> double.occupancy
        0.0
    """
    if not isinstance(accfun, AcceleratedFunction):
        raise ArgumentError(f"clear_cache: expected an accelerated function, not {type(accfun).__name__}.")
    accfun.clear_cache()
