# SPDX-License-Identifier: BSD-3-Clause
"""dlaccelerate: a function that is recorded once for each signature of its arguments and replayed afterwards."""

import copy
import functools
import inspect
import os
import sys
import threading
import time
import types
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final, overload

from tracejit import tree
from tracejit.accelerate import policy
from tracejit.accelerate.options import NAMES, Options
from tracejit.array import dlarray
from tracejit.call.dynamic import Needed, Varying
from tracejit.call.explain import describe, leaf_names, who_needs
from tracejit.call.path import MISS
from tracejit.call.signature import Call, Key, bound, read
from tracejit.errors import (
    ArgumentError,
    CacheError,
    LostChangeWarning,
    NotAcceleratedWarning,
    OutputsDifferWarning,
    RetraceError,
    RetraceWarning,
)
from tracejit.functions import rng
from tracejit.functions.evaluate import dlfeval
from tracejit.ir import Where
from tracejit.record import recorder as trace
from tracejit.traces.compare import first_difference
from tracejit.traces.record import record
from tracejit.traces.report import Explanation, Miss, explain_hit, explain_miss, report_of
from tracejit.traces.stats import Stats, Tally, ms
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Entry, Notice
from tracejit.util import html, logs
from tracejit.util.locks import new_lock
from tracejit.util.text import count

if TYPE_CHECKING:
    from tracejit.view.live import Running

_CALL_PATHS = 4  # tried in turn before the key of a call is made
_POLICY = 'set_policy("default") allows recordings.'
_EVICTED_KEPT = 1000  # remembered so that explain() can tell
_SHOWN = 20  # signatures in a notebook
_RARE_HITS = (
    50.0  # percent of calls; with fewer, and with as many evicted as are kept and as these, users are told
)
_MANY_EVICTED = 20
_HISTORY = 50  # calls that were recorded, remembered so that view() can show them


class _Refused(threading.local):
    """The lines for which accelerated functions that are running in this thread run uncompiled, innermost last."""

    lines: tuple[Where, ...] = ()


_refused = _Refused()


@final
class AcceleratedFunction(Options):
    """A function whose operations are recorded at its first calls and replayed, compiled, at later ones.

    A trace is found by the arguments: arrays by size, format, dtype and memory layout, containers by
    structure, everything else by value. Made by dlaccelerate.

    Attributes:
        function: the underlying function.
        enabled: False runs the underlying function at each call.
        confirm: how many later calls with the same key (1) have to record the same before a trace is replayed. 0:
            a trace is replayed at once, and constants that are others in each call are not noticed.
        audit: whether calls 8, 64, 512, ... of a key record again, to notice constants that change later.
        max_variants: largest number of traces of one key (8), where values of arrays decide what is recorded.
        cache_size: largest number of keys kept (50); the least recently used one goes first.
        stats: counts and times since the cache was cleared (tracejit.traces.stats.Stats): misses by reason, what was
            recorded, built and compiled, and how long that took.
        hit_rate: percentage (0 to 100) of calls served by a cached trace since the cache was cleared.
        occupancy: percentage (0 to 100) of the cache in use: one key of 50 is 2.
        check_mode: "none"; "tolerance": each replay also runs the underlying function and warns
            (OutputsDifferWarning) where outputs differ; "sample": one of check_every calls of a key does.
        check_every: with check_mode="sample" (100).
        check_tolerance: largest accepted difference, absolute or relative to the output's magnitude.

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

    # What each replay reads or writes; as slots, whatever the number of the other attributes: CPython keeps those of
    # instances with less than 30 in a table that takes 0.2 us longer here.
    __slots__ = ("_calls", "_check_mode", "_enabled", "_fast", "_last_miss", "_last_trace", "_lock")

    evaluates_itself = True  # a call outside any evaluation needs no dlfeval around it

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        cache_size: int = 50,
        check_mode: str = "none",
        check_tolerance: float = 1e-4,
        enabled: bool = True,
        confirm: int = 1,
        audit: bool = True,
        max_variants: int = 8,
        check_every: int = 100,
    ) -> None:
        _check_function(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._name = _name(function)
        self._slot = f"_accelerated_{self._name}"  # of an instance's __dict__, if this is a method
        self._lock = new_lock()
        self._entries: dict[Key, Entry] = {}
        self._fast: tuple[tuple[Callable[[Any], Any], Trace, Entry], ...] = ()  # call paths, latest first
        self._last_trace: Trace | None = None
        self._last_miss: Miss | None = None
        self._history: deque[tuple[int, Miss]] = deque(maxlen=_HISTORY)  # by the number of the call
        self._varying = Varying()
        self._told: set[Any] = set()  # causes of warnings
        self._evicted: dict[int, None] = {}  # hashes of the latest keys
        self._calls = self._misses = 0
        self._cleared = False
        self._tally = Tally(self._name, function)
        self._signature: inspect.Signature | None = None
        self._set({
            "cache_size": cache_size, "check_mode": check_mode, "check_tolerance": check_tolerance,
            "enabled": enabled, "confirm": confirm, "audit": audit, "max_variants": max_variants,
            "check_every": check_every,
        })  # fmt: skip

    @property
    def function(self) -> Callable[..., Any]:
        """The underlying function."""
        return self._function

    def _changed(self) -> None:
        with self._lock:
            self._evict()
            self._fast = ()  # calls go the general way once, where all that is due is seen
            for entry in self._entries.values():
                self._schedule(entry)

    @property
    def hit_rate(self) -> float:
        """Percentage of calls served by a cached trace since the cache was cleared."""
        return 100.0 * (self._calls - self._misses) / self._calls if self._calls else 0.0

    @property
    def occupancy(self) -> float:
        """Percentage of the cache in use."""
        return 100.0 * len(self._entries) / self._cache_size

    @property
    def stats(self) -> Stats:
        """Counts and times since the cache was cleared."""
        with self._lock:
            traces = [known for entry in self._entries.values() for known in entry.variants]
            programs = [r.program for known in traces for r in known.replays() if r.is_built]
            return self._tally.stats(
                calls=self._calls,
                hits=self._calls - self._misses,
                keys=len(self._entries),
                kept=len(traces),
                guards=sum(len(known.guards) + len(known.state.guards()) for known in traces),
                programs=programs,
            )

    def clear_cache(self) -> None:
        """Forget all traces and statistics."""
        with self._lock:
            self._cleared = self._cleared or self._calls > 0
            self._entries.clear()
            self._fast = ()
            self._calls = self._misses = 0
            self._tally.clear()
            self._evicted.clear()
            self._varying.clear()
            self._last_trace = self._last_miss = None
            self._history.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function: by replay where a trace fits, otherwise recording one."""
        recorder = trace.thread.recorder
        if (
            not self._enabled
            or policy.uncompiled
            or (recorder is not None and recorder.accelerating)  # then it is traced through
        ):
            return dlfeval(self._function, *args, **kwargs)
        if kwargs:
            args, kwargs = self._normalised(args, kwargs)
        if recorder is None and self._check_mode != "tolerance":
            whole = (args, kwargs)
            for call_path, known, entry in self._fast:
                result = call_path(whole)
                if result is not MISS:
                    with self._lock:  # as in _count_hit, which would take a tenth of a short call
                        entry.used = self._calls = self._calls + 1
                        entry.calls = calls = entry.calls + 1
                        self._last_trace = known
                        self._last_miss = None
                        if calls >= entry.pause_at:
                            self._pause(entry)
                    return result
        call = read(self._name, (args, kwargs), self._leaf_name)
        for array in call.arrays:
            trace.check_open(array)
        with self._lock:
            call = self._varying.taken_in(call, self._entries)
        return self._call(call, recorder)

    def entries(self) -> list[Entry]:
        """Return what is known of each key, for export()."""
        with self._lock:
            return list(self._entries.values())

    def entry_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Entry | None:
        """Return what is known of the key of a call, or None, for export()."""
        if kwargs:
            args, kwargs = self._normalised(args, kwargs)
        call = read(self._name, (tuple(args), dict(kwargs)), self._leaf_name)
        with self._lock:
            return self._entries.get(self._varying.taken_in(call, self._entries).key)

    def source(self) -> str:
        """Return the emitted Python module of the trace that was used last.

        Raises:
            CacheError: if there is no trace.
        """
        if self._last_trace is None:
            raise CacheError(
                f"{self._name}: there is no emitted source; call the function first, with arguments for which it is "
                "accelerated (explain() tells)."
            )
        return "\n\n".join(replay.source() for replay in self._last_trace.replays())

    def explain(self) -> Explanation:
        """Return in words what the last call did and why; its attribute `keys` has what is known of each key."""
        with self._lock:
            known = list(self._entries)
            keys = [
                report_of(self._function, entry, self._confirm, known) for entry in self._entries.values()
            ]
            if self._last_miss is not None:
                last = self._explain_miss(self._last_miss)
            elif self._last_trace is not None:
                last = explain_hit(self._name, self._function, self._last_trace.key, known)
            else:
                last = f"{self._name} has not been called {'since its cache was cleared' if self._cleared else 'yet'}."
        return Explanation(last, keys)

    def view(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write a page that shows what was compiled, to be opened in a browser, and return where it is.

        The page has the graph of each program, the user's lines, the emitted source, what each launch takes, the
        memory plan, the guards and the traces. It holds lines of the user's files; it loads nothing and sends nothing.

        Args:
            path: of the HTML file; by default tracejit-<function>.html in the current folder.

        Raises:
            OSError: if the file cannot be written.
        """
        from tracejit.view import live, page

        made = Path(f"tracejit-{page.file_name(self._name)}.html" if path is None else path)
        made.write_text(page.render(live.page(self._running())), encoding="utf-8")
        return made

    def _running(self) -> "Running":
        """Return what the page shows of this function."""
        from tracejit.view.live import Running

        explanation = self.explain()
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: entry.used, reverse=True)
            history = list(self._history)
        stats = self.stats
        facts = [
            ("function", self._tally.label),
            ("calls", f"{stats.calls}, of which {stats.hits} were replayed"),
            ("traces", f"{stats.traces} recorded in {ms(stats.record_ns)}"),
            ("programs", f"{stats.programs} built in {ms(stats.build_ns)}"),
            (
                "kernels",
                f"{stats.kernels}; {stats.compiled} compiled in {ms(stats.compile_ns)}, {stats.loaded} loaded",
            ),
        ]
        events = [(call, miss.outcome, self._explain_miss(miss)) for call, miss in history]
        return Running(self._name, self._function, entries, self._last_trace, explanation, events, facts)

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

    def _repr_html_(self) -> str:
        stats = self.stats
        programs, kernels = count(stats.programs, "program"), count(stats.kernels, "kernel")
        note = f"{count(stats.calls, 'call')}, hit rate {self.hit_rate:.4g} %; {programs} of {kernels}"
        rows = [
            (
                key.arguments,
                key.calls,
                len(key.variants),
                sum(len(each.guards) for each in key.variants),
                key.state,
            )
            for key in self.explain().keys
        ]
        header = ["arguments", "calls", "traces", "guards", "state"]
        table = html.table(header, rows, _SHOWN, "signatures") if rows else ""
        return html.block(self._tally.label, note, table)

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
            method._told = self._told  # what is said of one instance need not be said of the next
        return method

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

    def _call(self, call: Call, recorder: trace.Recorder | None) -> Any:
        """Call the function the general way; `recorder` is that of the evaluation around the call."""
        with self._lock:
            self._calls += 1
            entry = self._entries.get(call.key)
            if entry is not None:
                entry.calls += 1
                entry.used = self._calls
        if entry is None:
            return self._learn(call, recorder, (), False)
        if entry.refusal is not None and entry.calls < entry.retry_at:
            return self._run_uncompiled(call, entry.refusal)
        if self._audit and entry.calls >= entry.audit_at and policy.current == "default":
            return self._learn(call, recorder, (), True)
        failed = []
        checked = self._is_checked(entry)
        for known in entry.replayable(self._confirm):
            result = known.run(call.arrays) if recorder is None else known.run_within(call.arrays)
            if result is MISS:
                failed.append(known)
                continue
            self._log_hit(known)
            with self._lock:
                self._count_hit(known, entry)
                self._schedule(entry)
                if recorder is None:
                    self._remember(known, entry)
            if checked:
                self._check(call, known, result)
            return result
        return self._learn(call, recorder, failed, False)

    def _count_hit(self, known: Trace, entry: Entry) -> None:
        entry.used = self._calls
        self._last_trace = known
        self._last_miss = None
        if entry.calls >= entry.pause_at:
            self._pause(entry)

    def _pause(self, entry: Entry) -> None:
        """Have the next call of a key go the general way."""
        self._fast = tuple([path for path in self._fast if path[2] is not entry])

    def _schedule(self, entry: Entry) -> None:
        entry.schedule(self._audit, self._check_every if self._check_mode == "sample" else 0)

    def _remember(self, known: Trace, entry: Entry) -> None:
        """Try the call path of a trace first at the next call, if nothing is due then."""
        if entry.calls >= entry.pause_at or logs.each_call():  # Note [hits]
            return
        found = next((path for path in self._fast if path[1] is known), None)
        if found is None:
            call_path = known.call_path()
            if call_path is None:
                return
            found = (call_path, known, entry)
        others = [path for path in self._fast if path[1] is not known]
        self._fast = (found, *others[: _CALL_PATHS - 1])

    def _learn(
        self, call: Call, recorder: trace.Recorder | None, failed: Sequence[Trace], audit: bool
    ) -> Any:
        """Run the function on a new trace, take the trace in, and return the result."""
        changed = [found for found in [known.state.failed() for known in failed] if found is not None]
        with self._lock:
            self._misses += 1
            known = list(self._entries)
            miss = self._last_miss = Miss(call.key, known, hash(call.key) in self._evicted)
            self._history.append((self._calls, miss))
            self._tally.misses[_reason(self._entries.get(call.key), miss, failed, audit)] += 1
        if changed:
            miss.why = changed[0].no_longer()
        if policy.current != "default":
            self._retraces(miss)
        untraced = call if recorder is None else call._replace(leaves=_untraced(call.leaves))
        needed: dict[int, Any] = {}
        started = time.perf_counter_ns()
        try:
            made, result = record(self._tally, self._function, untraced, needed, recorder)
        except BaseException as error:
            self._log_miss(miss, f" ({type(error).__name__})")
            raise
        record_ns = time.perf_counter_ns() - started
        if made is None:
            with self._lock:
                miss.outcome = "needed" if needed else "alone"
                self._tally.record_ns += record_ns
                self._varying.need(call, needed)
            self._log_miss(miss, f" {ms(record_ns)}.")
            return result
        with self._lock:
            self._tally.recorded += 1
            self._tally.record_ns += record_ns
            entry = self._entries.get(call.key)
            if entry is None:
                entry = self._entries[call.key] = Entry(call.key)
                entry.calls = 1
            entry.used = self._calls
            finding = entry.add(self._name, made, failed, self._confirm, self._max_variants, audit)
            self._schedule(entry)
            self._fast = tuple(
                [path for path in self._fast if path[2] is not entry or path[1] in entry.variants]
            )
            self._last_trace = finding.trace
            miss.outcome, miss.why = finding.outcome, finding.why or miss.why
            if entry.refusal is not None:
                miss.outcome = "refused"
            self._tally.outcomes[miss.outcome] += 1
            self._evict()
            churning = self._varying.churning(call, self._max_variants, self._calls - self._misses)
        self._log_miss(miss, f" {count(made.length, 'operation')} in {ms(record_ns)}.")
        if finding.notice is not None:
            self._tell(finding.notice)
        if churning is not None:
            self._tell(self._churns(call, *churning))
        if made.lost_change is not None:
            self._tell(self._loses(*made.lost_change))
        if self._tally.evicted >= max(self._cache_size, _MANY_EVICTED) and self.hit_rate < _RARE_HITS:
            self._tell(self._turns_over(miss))
        return result

    def _churns(self, call: Call, place: int, needed: Needed) -> Notice:
        """Return what is to be said of a number argument of which each value is recorded, and hardly any replayed."""
        name = self._leaf_name(place, call.treedef)
        return Notice(
            f"{self._name} is recorded anew for each value of {name}, because {who_needs('it', *needed)}. "
            "Pass it as a dlarray, or use "
            "tracejit's and NumPy's functions instead of math's; if each value is meant to have a trace, raise "
            "max_variants.",
            RetraceWarning, needed.where, (needed.where, name),
        )  # fmt: skip

    def _loses(self, place: int, treedef: tree.TreeDef) -> Notice:
        """Return what is to be said of a change of an argument that nobody will see."""
        name = self._leaf_name(place, treedef)
        return Notice(
            f"{self._name} sets {name} and does not return what it set. Containers in arguments are copies, so "
            "that the change is lost; return what has changed.",
            LostChangeWarning, trace.user_location(), name,
        )  # fmt: skip

    def _turns_over(self, miss: Miss) -> Notice:
        """Return what is to be said of a cache in which traces do not stay until they are used again."""
        larger = f" If so many signatures are meant, raise cache_size ({self._cache_size})."
        return Notice(
            f"{self._name} is recorded in most calls: {self._tally.evicted} signatures of arguments were evicted, and "
            f"{self.hit_rate:.0f} % of {self._calls} calls were replayed. "
            f"{self._explain_miss(miss)}{'' if miss.evicted else larger}",
            RetraceWarning, trace.user_location(), "turnover",
        )  # fmt: skip

    def _run_uncompiled(self, call: Call, refusal: trace.Refusal) -> Any:
        with self._lock:
            self._misses += 1
            self._tally.misses["refused"] += 1
            self._tally.uncompiled += 1
            miss = self._last_miss = Miss(call.key, [], False, "refused")
        if policy.current == "error-on-retrace":
            raise RetraceError(f"{self._explain_miss(miss)} {_POLICY}")
        if logs.each_call():
            self._log_miss(miss, level=logs.DEBUG)
        args, kwargs = tree.unflatten(call.treedef, call.leaves)
        around = _refused.lines
        _refused.lines = (*around, refusal.where)
        try:
            return dlfeval(self._function, *args, **kwargs)
        finally:
            _refused.lines = around

    def _log_hit(self, known: Trace) -> None:
        """Log a replay: the first one of a trace, or each one if somebody wants to know that."""
        is_first, known.replayed = not known.replayed, True
        if logs.enabled(logs.INFO) if is_first else logs.each_call():
            level = logs.INFO if is_first else logs.DEBUG
            logs.write(level, "hit", explain_hit(self._tally.label, self._function, known.key))

    def _log_miss(self, miss: Miss, more: str = "", level: int = logs.INFO) -> None:
        if logs.enabled(level):
            logs.write(level, "miss", f"{self._explain_miss(miss, self._tally.label)}{more}")

    def _retraces(self, miss: Miss) -> None:
        """Do what the policy asks for where a call has to be recorded."""
        miss.outcome = "forbidden"
        text = f"{self._explain_miss(miss)} {_POLICY}"
        if policy.current == "error-on-retrace":
            self._log_miss(miss)
            raise RetraceError(text)
        miss.outcome = "raised"
        self._tell(Notice(text, RetraceWarning, trace.user_location(), miss.key))

    def _tell(self, notice: Notice) -> None:
        """Give a warning, once for each cause; of a line for which the function around runs uncompiled, none."""
        if (notice.category, notice.cause) not in self._told:
            logs.write(logs.WARNING, "warning", self._tally.label + notice.text.removeprefix(self._name))
            if notice.category is NotAcceleratedWarning and notice.where and notice.where in _refused.lines:
                return
            self._told.add((notice.category, notice.cause))
            file, line = notice.where or trace.user_location() or ("<unknown>", 0)
            warnings.warn_explicit(notice.text, notice.category, file, line)

    def _is_checked(self, entry: Entry) -> bool:
        if self._check_mode == "sample":
            return entry.calls % self._check_every == 0
        return self._check_mode == "tolerance"

    def _check(self, call: Call, known: Trace, result: Any) -> None:
        """Warn if the underlying function gives other outputs than a replay of `known` gave."""
        args, kwargs = tree.unflatten(call.treedef, _untraced(call.leaves))
        with trace.suspended(), rng.apart(known.state.drawn()):
            expected = dlfeval(self._function, *args, **kwargs)
        found = first_difference(result, expected, self._check_tolerance)
        if found is not None:
            file, line = trace.user_location() or ("<unknown>", 0)
            text = (
                f"Accelerated outputs differ from underlying function outputs. {self._name}: {found}. Values that "
                "do not come from array arguments are constants of a trace (NumPy's random numbers, the time, a "
                "counter, a file); pass them as arguments."
            )
            logs.write(logs.WARNING, "warning", f"{self._tally.label}: {text}")
            warnings.warn_explicit(text, OutputsDifferWarning, file, line)

    def _evict(self) -> None:
        while len(self._entries) > self._cache_size:
            oldest = min(self._entries.values(), key=lambda kept: kept.used)
            del self._entries[oldest.key]
            self._tally.evicted += 1
            if logs.enabled(logs.INFO):
                described = describe(self._function, oldest.key)
                counted = f"more than cache_size ({self._cache_size}) are in use"
                logs.write(
                    logs.INFO,
                    "evict",
                    f"{self._tally.label}: evicted what there was for {described}: {counted}.",
                )
            self._evicted[hash(oldest.key)] = None
            if len(self._evicted) > _EVICTED_KEPT:
                del self._evicted[next(iter(self._evicted))]
            self._fast = tuple([path for path in self._fast if path[2] is not oldest])

    def _normalised(self, args: Any, kwargs: Any) -> Any:
        """Return arguments as the signature orders them, so that f(x, y) and f(x, y=y) share a trace."""
        if self._signature is None:
            try:
                self._signature = inspect.signature(self._function)
            except (TypeError, ValueError):
                return args, kwargs
        return bound(self._name, self._signature, args, kwargs)

    def _leaf_name(self, number: int, treedef: tree.TreeDef) -> str:
        return leaf_names(self._function, treedef.structure)[number]

    def _explain_miss(self, miss: Miss, name: str | None = None) -> str:
        entry = self._entries.get(miss.key)
        needed = self._varying.needed_in(miss.key)
        return explain_miss(name or self._name, self._function, miss, entry, self._cache_size, needed)


def _reason(entry: Entry | None, miss: Miss, failed: Sequence[Trace], audit: bool) -> str:
    """Return why a call is no hit: one of REASONS."""
    if entry is None:
        return "evicted" if miss.evicted else "signature"
    return "refused" if entry.refusal else "audit" if audit else "guard" if failed else "unconfirmed"


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
def dlaccelerate(
    function: None = None, /, *, cache_size: int = 50, check_mode: str = "none", check_tolerance: float = 1e-4,
    enabled: bool = True, confirm: int = 1, audit: bool = True, max_variants: int = 8, check_every: int = 100,
) -> Callable[[Callable[..., Any]], AcceleratedFunction]: ...  # fmt: skip


@overload
def dlaccelerate(
    function: Callable[..., Any], /, *, cache_size: int = 50, check_mode: str = "none", check_tolerance: float = 1e-4,
    enabled: bool = True, confirm: int = 1, audit: bool = True, max_variants: int = 8, check_every: int = 100,
) -> AcceleratedFunction: ...  # fmt: skip


def dlaccelerate(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return an accelerated version of a function; also a decorator, with and without arguments.

    Args:
        function: a function of dlarrays, containers of them and values; it may call dlgradient.
        options: confirm (1), audit (True), max_variants (8), cache_size (50), check_mode ("none"), check_every
            (100), check_tolerance (1e-4), enabled (True): see AcceleratedFunction.

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
    unknown = options.keys() - set(NAMES)
    if unknown:
        raise ArgumentError(
            f"dlaccelerate: unknown option {sorted(unknown)[0]!r}; options are {', '.join(NAMES)}."
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
