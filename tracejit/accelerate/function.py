# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: a function that is recorded once for each signature of its arguments and replayed afterwards."""

import copy
import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, final, overload

from tracejit import config
from tracejit.accelerate import aim, display, messages, pickles, policy
from tracejit.accelerate.bound import BoundMethod, OfMethods
from tracejit.accelerate.cache import TraceCache
from tracejit.accelerate.checks import check_function
from tracejit.accelerate.dispatch import CallDispatcher
from tracejit.accelerate.options import NAMES, OptionProperties, Options
from tracejit.call.result import MISS
from tracejit.call.signature import bind_arguments
from tracejit.errors import ArgumentError, BoundsError, CacheError
from tracejit.functions.evaluate import evaluate
from tracejit.record import recorder as recorders
from tracejit.traces.report import Explanation, explain_hit, report_of
from tracejit.traces.variants import Variants
from tracejit.util.text import module_of, name_of

if TYPE_CHECKING:
    from tracejit.traces.stats import Stats
    from tracejit.view.live import Running

P = ParamSpec("P")
Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")
_MOST_NAMESAKES = 8  # methods of one name that an instance keeps


@final
class AcceleratedFunction(OptionProperties, BoundMethod, Generic[P, R_co], metaclass=OfMethods):
    """A function whose operations are recorded at its first calls and replayed, compiled, at later ones.

    The arguments select a trace: arrays by size, format, dtype and memory layout, containers by
    structure, everything else by value. Made by dlaccelerate. Setting any attribute besides the options is an
    AttributeError.

    Long because each of its options and figures has a line of documentation.

    Attributes:
        function: the underlying function.
        enabled: False runs the underlying function at each call.
        confirm: how many later calls with the same key (1) have to record the same before a trace is replayed. With 0
            a trace is replayed at once, and a constant that differs in each call goes unnoticed.
        audit: whether calls 8, 64, 512, ... of a key record again, to notice constants that change later.
        max_variants: largest number of traces of one key, if values of arrays decide what is recorded. None, the
            default, keeps 8 that differ by numbers which are taken out of arrays, and 64 that differ by branches.
        cache_size: largest number of keys kept (50); the least recently used one is evicted first.
        stats: counts and times since the cache was cleared (tracejit.traces.stats.Stats): misses by reason,
            recordings, programs, kernels, and the time they took.
        hit_rate: percentage (0 to 100) of calls served by a cached trace since the cache was cleared.
        occupancy: percentage (0 to 100) of the cache in use: one key of 50 is 2.
        check_mode: "none"; "tolerance": each replay also runs the underlying function and warns
            (OutputsDifferWarning) where outputs differ; "sample": one of check_every calls of a key does.
        check_every: with check_mode="sample" (100).
        write_arguments: whether what the function writes into an array that was passed (x += 1, x[0] = y), or puts
            into a dict, a list or a dataclass (p["w"] = y), is in the caller's afterwards, as in Python (True, or the
            setting); a change drops the traces.
        check_tolerance: largest accepted difference, absolute or relative to the output's magnitude.
        precision: "highest" computes convolutions of float32 as direct sums, so that a huge number, a NaN or an
            infinity reaches only the windows that see it; "default" also by Winograd's method, which is up to twice as
            fast (default: TRACEJIT_PRECISION). A change drops the traces.
        target: where calls run: "auto" (where their arrays are), "cpu", or "cuda" (a GPU, to which arrays of the host
            are copied at each call; results stay there).

    Examples:
        >>> import tracejit as tj
        >>> @tj.dlaccelerate
        ... def slope(x):
        ...     return tj.dlgradient((x ** 3).sum(), x)
        >>> x = tj.dlarray([1.0, 2.0])
        >>> [slope(x).tolist() for _ in range(4)]
        [[3.0, 12.0], [3.0, 12.0], [3.0, 12.0], [3.0, 12.0]]
        >>> slope.hit_rate, slope.occupancy
        (50.0, 2.0)
    """

    # Slots, because each replay reads them: CPython may keep other attributes in a table, which takes longer.
    __slots__ = ("_cache", "_dispatcher", "_function", "_method_name", "_name", "_signature", "_unbound")

    evaluates_itself = True  # a call outside any evaluation needs no dlfeval around it

    def __init__(
        self,
        function: Callable[P, R_co],
        *,
        cache_size: int = 50,
        check_mode: str = "none",
        check_tolerance: float = 1e-4,
        enabled: bool = True,
        confirm: int = 1,
        audit: bool = True,
        max_variants: int | None = None,
        check_every: int = 100,
        write_arguments: bool | None = None,
        target: str = "auto",
        precision: str | None = None,
    ) -> None:
        if isinstance(function, AcceleratedFunction):
            raise ArgumentError(
                "dlaccelerate: the function is accelerated already; pass its attribute function to accelerate it with "
                "different options."
            )
        check_function(function)
        # The function's attributes, but none that would hide those of this class.
        attributes = getattr(function, "__dict__", {})
        self.__dict__.update({name: attributes[name] for name in attributes if not hasattr(type(self), name)})
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._unbound: AcceleratedFunction[..., Any] | None = None  # of the class, whose method this is
        self._name = name_of(function)
        # If this is a method, the name under which an instance keeps its own.
        self._method_name = f"_accelerated_{self._name}"
        self._signature: inspect.Signature | None = None
        self._options = Options()
        self._dispatcher = CallDispatcher(self._name, function, self._options)
        self._cache = self._dispatcher.cache
        self._aim = self._cache.aim.target
        self._set({
            "cache_size": cache_size, "check_mode": check_mode, "check_tolerance": check_tolerance,
            "enabled": enabled, "confirm": confirm, "audit": audit, "max_variants": max_variants,
            "check_every": check_every, "target": target,
            "write_arguments": config.settings.write_arguments if write_arguments is None else write_arguments,
            "precision": config.settings.precision if precision is None else precision,
        })  # fmt: skip

    @property
    def function(self) -> Callable[P, R_co]:
        """The underlying function."""
        return self._function

    def _changed(self) -> None:
        self._dispatcher.options_changed()

    def _traces_changed(self) -> None:
        with self._cache.lock:
            self._cache.variants.clear()
            self._cache.route(())

    @property
    def hit_rate(self) -> float:
        """Percentage of calls served by a cached trace since the cache was cleared."""
        return self._counted().hit_rate

    @property
    def occupancy(self) -> float:
        """Percentage of the cache in use."""
        return 100.0 * len(self._cache.variants) / self._options.cache_size

    @property
    def stats(self) -> "Stats":
        """Counts and times since the cache was cleared."""
        cache = self._counted()
        with cache.lock:
            traces = [trace for variants in cache.variants.values() for trace in variants.traces]
            return self._dispatcher.counters.stats(
                calls=cache.calls,
                hits=cache.hits,
                keys=len(cache.variants),
                kept=len(traces),
                guards=sum(len(trace.guards) + len(trace.state.guards()) for trace in traces),
                programs=[r.program for trace in traces for r in trace.replays() if r.is_built],
            )

    def clear_cache(self) -> None:
        """Forget all traces and statistics."""
        with self._cache.lock:
            self._cache.clear()
            self._dispatcher.counters.clear()

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function: by replay where a trace fits, otherwise recording one."""
        recorder = recorders.thread.recorder
        if (
            not self._options.enabled
            or policy.uncompiled
            or (
                recorder is not None and (recorder.accelerating or recorder.maps)
            )  # then it is traced through
        ):
            takes = self._cache.takes_arrays
            return evaluate(self._function, args, kwargs, self._options.write_arguments, takes)
        if kwargs:
            args, kwargs = self._bound(args, kwargs)
        cache = self._cache
        if recorder is None:
            whole = (args, kwargs)
            for path in cache.paths:
                try:
                    result = path.run(whole)
                except BoundsError:
                    if path.handles_errors:
                        path.served[0].trace.state.rejected()
                        break
                    raise
                if result is not MISS:
                    with cache.lock:
                        cache.path_hit(path)
                    return result  # type: ignore[no-any-return]
        if _is_method_of(self._function, args):
            method: Callable[..., R_co] = self.__get__(args[0])
            return method(*args[1:], **kwargs)
        call = self._dispatcher.keyed(args, kwargs)
        for array in call.arrays:
            if array._value is not None and not recorders.is_open(array):
                call = self._dispatcher.keyed(
                    args, kwargs
                )  # kept of a recording; it has memory of its own now
        # Operations on a device are recorded one by one; what is written into a copy of an argument would be lost.
        if recorder is not None and (call.key.device is not None or call.originals):
            takes = cache.takes_arrays
            return evaluate(self._function, args, kwargs, self._options.write_arguments, takes)
        with cache.lock:
            cache.settle()
            call = cache.rekeyed(call)
        return self._dispatcher.serve(call, recorder)  # type: ignore[no-any-return]

    def variants(self) -> list[Variants]:
        """Return the variants of each key, for export()."""
        with self._cache.lock:
            return list(self._cache.variants.values())

    def variants_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Variants | None:
        """Return the variants of the key of a call, or None, for export()."""
        if kwargs:
            args, kwargs = self._bound(args, kwargs)
        call = self._dispatcher.keyed(tuple(args), dict(kwargs))
        with self._cache.lock:
            return self._cache.variants.get(self._cache.rekeyed(call).key)

    def source(self) -> str:
        """Return the emitted Python module of the trace that was used last.

        Raises:
            CacheError: if there is no trace.
        """
        trace = self._counted().last_trace
        if trace is None:
            raise CacheError(
                f"{self._name}: there is no emitted source; call the function first, with arguments for which it is "
                "accelerated (explain() tells)."
            )
        return "\n\n".join(replay.source() for replay in trace.replays())

    def explain(self) -> Explanation:
        """Return in words what the last call did and why; its attribute `keys` has the state of each key."""
        cache = self._counted()
        with cache.lock:
            cached = list(cache.variants)
            keys = [
                report_of(self._function, variants, self._options.confirm, cached)
                for variants in cache.variants.values()
            ]
            if cache.last_miss is not None:
                last = self._dispatcher.explain(cache.last_miss)
            elif cache.last_trace is not None:
                last = explain_hit(self._name, self._function, cache.last_trace.key, cached)
            else:
                last = f"{self._name} has not been called {'since its cache was cleared' if cache.cleared else 'yet'}."
        return Explanation(last, keys)

    def view(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write a page that shows what was compiled, to be opened in a browser, and return its path.

        The page has the graph of each program, the user's lines, the emitted source, the time of each launch, the
        memory plan, the guards and the traces. It holds lines of the user's files; it loads nothing and sends nothing.

        Args:
            path: of the HTML file; by default tracejit-<function>.html in the current folder.

        Raises:
            OSError: if the file cannot be written.
        """
        from tracejit.util.files import write_text
        from tracejit.view import live, page

        file = Path(f"tracejit-{page.file_name(self._name)}.html" if path is None else path)
        write_text(file, page.render(live.page(self._running())))
        return file

    def _counted(self) -> TraceCache:
        """Return the cache, in which all calls so far are counted."""
        with self._cache.lock:
            self._cache.settle()
        return self._cache

    def _running(self) -> "Running":
        self._counted()
        return display.running(self, self._name, self._dispatcher)

    def __repr__(self) -> str:
        return display.text_of(self, self._name)

    def _repr_html_(self) -> str:
        return display.html_of(self, self._dispatcher.counters.label)

    def __set_name__(self, owner: type, name: str) -> None:
        self._method_name = f"_accelerated_{owner.__qualname__}.{name}"

    # Of a class, any arguments: mypy also asks this for class methods and static methods, which take different ones.
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "AcceleratedFunction[..., R_co]": ...

    @overload
    def __get__(
        self: "AcceleratedFunction[Concatenate[S, Q], R_co]", instance: S, owner: type | None = None
    ) -> "AcceleratedFunction[Q, R_co]": ...

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
                "accelerated method in; remove __slots__ (slots=True of a dataclass), add '__dict__' to them, or "
                "accelerate a function that takes the arrays."
            ) from None
        method = methods.get(self._method_name)
        if method is not None:
            function = method._function
            if function.__self__ is instance and function.__func__ is self._function:
                return method
        return self._method_of(instance, methods)

    def _method_of(self, instance: Any, methods: dict[str, Any]) -> Any:
        """Return the method of an instance, which is made unless it is there by another name.

        Several functions of one name can be methods of an instance: that of a class, and that of the class above; that
        of a class, and the one by which somebody has replaced it. The __dict__ of a copied instance has the methods of
        the original.
        """
        function = types.MethodType(self._function, instance)
        for number in range(_MOST_NAMESAKES):
            key = f"{self._method_name} ({number})" if number else self._method_name
            method = methods.get(key)
            if method is None or method._function.__func__ is self._function:
                break
        if method is None or method._function != function:
            method = methods[key] = AcceleratedFunction(function, **self._as_options())
            method._method_name, method._unbound = self._method_name, self
            # One warning for all instances.
            method._dispatcher.reporter.warned = self._dispatcher.reporter.warned
        return method

    # Copies and pickles have the options but not the traces.

    def __copy__(self) -> "AcceleratedFunction[P, R_co]":
        return AcceleratedFunction(self._function, **self._as_options())

    def __deepcopy__(self, memo: dict[int, Any]) -> "AcceleratedFunction[P, R_co]":
        return AcceleratedFunction(copy.deepcopy(self._function, memo), **self._as_options())

    def __reduce__(self) -> Any:
        if isinstance(self._function, types.MethodType):
            instance, name = self._function.__self__, self._method_name.rpartition(".")[2]
            if getattr(instance, name, None) is self:
                return (getattr, (instance, name), self._as_options())
        public = pickles.name_to_import(self, sys._getframe(1))
        if public is not None:
            return public  # as functions are pickled
        return (_without_function, (), {"function": self._function, **self._as_options()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "function" in state:
            AcceleratedFunction.__init__(self, **state)
        else:
            self._set(state)

    def _bound(self, args: Any, kwargs: Any) -> Any:
        """Return arguments as the signature orders them, so that f(x, y) and f(x, y=y) share a trace."""
        if self._signature is None:
            try:
                self._signature = inspect.signature(self._function)
            except (TypeError, ValueError):
                return args, kwargs
        return bind_arguments(self._name, self._signature, args, kwargs)


aim.serve(AcceleratedFunction)


def _is_method_of(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Return whether a function stands in the class of the first argument, whose method it therefore is.

    So it is called by the class (Solver.step(solver, x)), by a property, and by other decorators around it.
    """
    if isinstance(function, types.MethodType):  # the first argument comes after its object
        return False
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    module = getattr(function, "__module__", None)
    kinds = type(args[0]).__mro__ if owner and args else ()
    return any(kind.__qualname__ == owner and module_of(kind) == module for kind in kinds)


def _without_function() -> AcceleratedFunction[..., Any]:
    """Return an object that __setstate__ makes an accelerated function (Note [pickles by value])."""
    return AcceleratedFunction.__new__(AcceleratedFunction)


@overload
def dlaccelerate(
    function: None = None, /, *, cache_size: int = 50, check_mode: str = "none", check_tolerance: float = 1e-4,
    enabled: bool = True, confirm: int = 1, audit: bool = True, max_variants: int | None = None, check_every: int = 100,
    write_arguments: bool | None = None, target: str = "auto", precision: str | None = None,
) -> Callable[[Callable[P, S]], AcceleratedFunction[P, S]]: ...  # fmt: skip


@overload
def dlaccelerate(
    function: Callable[P, S], /, *, cache_size: int = 50, check_mode: str = "none", check_tolerance: float = 1e-4,
    enabled: bool = True, confirm: int = 1, audit: bool = True, max_variants: int | None = None, check_every: int = 100,
    write_arguments: bool | None = None, target: str = "auto", precision: str | None = None,
) -> AcceleratedFunction[P, S]: ...  # fmt: skip


def dlaccelerate(function: Callable[..., Any] | None = None, /, *arguments: Any, **options: Any) -> Any:
    """Return an accelerated version of a function; also a decorator, with and without arguments.

    Args:
        function: a function of dlarrays, containers of them and values; it may call dlgradient.
        options: confirm (1), audit (True), max_variants (None), cache_size (50), check_mode ("none"), check_every
            (100), check_tolerance (1e-4), write_arguments (True), enabled (True), precision ("default"),
            target ("auto"): see AcceleratedFunction.

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
    if arguments:
        raise ArgumentError(
            "dlaccelerate: expected a function alone; call what it returns: dlaccelerate(f)(x)."
        )
    unknown = options.keys() - set(NAMES)
    if unknown:
        raise ArgumentError(messages.unknown_option(sorted(unknown)[0], NAMES))
    if function is None:
        return lambda decorated: AcceleratedFunction(decorated, **options)
    return AcceleratedFunction(function, **options)


def with_constants(function: Callable[..., Any]) -> AcceleratedFunction[..., Any]:
    """Return an accelerated function whose captured numbers and ndarrays that vary are constants of its traces.

    So two functions that call the same code of a user record the same operations of it.
    """
    accelerated = dlaccelerate(function)
    accelerated._cache.keeps_all = True
    return accelerated


def clear_cache(accfun: AcceleratedFunction[..., Any]) -> None:
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
