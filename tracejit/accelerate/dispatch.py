# SPDX-License-Identifier: BSD-3-Clause
"""The general way of a call: a replay of the trace that its key selects, a recording, or an uncompiled run."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.accelerate import messages, policy
from tracejit.accelerate.cache import TraceCache
from tracejit.accelerate.checks import Before, before, difference_from_function, untraced
from tracejit.accelerate.options import Options
from tracejit.accelerate.reporter import Reporter, running_uncompiled
from tracejit.call.copies import given
from tracejit.call.explain import container_names, leaf_names
from tracejit.call.result import MISS
from tracejit.call.signature import Call, key_call, may_vary
from tracejit.errors import BoundsError, DeviceError, GradientError, RetraceError
from tracejit.functions.evaluate import evaluate
from tracejit.record import recorder as recorders
from tracejit.record.argument_containers import ContainerCopies
from tracejit.record.number import KEPT
from tracejit.record.side_effects import SideEffect
from tracejit.record.state import NUMPYS_OWN, Exchange
from tracejit.traces import refusals
from tracejit.traces.counters import Counters
from tracejit.traces.placing import is_moved, placed
from tracejit.traces.record import Met, NotTakenError, Recording, record
from tracejit.traces.report import Miss
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Outcome, Variants
from tracejit.util import logs
from tracejit.util.devices import registered
from tracejit.util.precision import with_precision
from tracejit.util.room import NoRoomError
from tracejit.util.text import count, ms

# Users are told that traces are evicted before they are used again if at least this many were, and no fewer than
# cache_size, while the hit rate is below this percentage.
_LONG, _MANY_STEPS = 5000, 200  # operations of a trace, and those of one line, that are told of
_MANY_EVICTED = 20
_LOW_HIT_RATE = 50.0
_TOLD_AT = 2  # the call of a refused key that warns: by then it is known whether its numbers vary


class CallDispatcher:
    """Serves the calls of an accelerated function that no call path serves.

    Args:
        name: of the function.
        function: the underlying function.
        options: of the accelerated function, which may change.

    Attributes:
        cache: the traces.
        counters: counts and times.
        reporter: gives warnings and writes to the log.
    """

    def __init__(self, name: str, function: Callable[..., Any], options: Options) -> None:
        self._name = name
        self._function = function
        self._options = options
        self.cache = TraceCache()
        self.counters = Counters(name, function)
        self.reporter = Reporter(name, self.counters.label, function, self.cache)
        # Whether calls without arrays on a device run there, because the function meets some.
        self._follows = False

    def options_changed(self) -> None:
        """Act on options that have changed."""
        cache = self.cache
        with cache.lock:
            self._evict()
            cache.route(())  # each key goes the general way once, which reschedules audits and checks
            for variants in cache.variants.values():
                self._schedule(variants)

    def keyed(self, args: Any, kwargs: Any) -> Call:
        """Return a call with its key."""
        call = key_call(self._name, (args, kwargs), self.leaf_name)
        if self._options.target == "auto" and not registered.in_use:
            return call
        target = "cuda" if self._follows and self._options.target == "auto" else self._options.target
        return placed(call, target, self._name, self.leaf_name)

    def leaf_name(self, number: int, treedef: tree.TreeDef) -> str:
        """Return the name of a leaf of the arguments."""
        return leaf_names(self._function, treedef.structure)[number]

    def explain(self, miss: Miss) -> str:
        """Return in words why a call was no hit."""
        return self.reporter.explain(miss, self._options.cache_size)

    def serve(self, call: Call, recorder: recorders.Recorder | None) -> Any:
        """Call the function the general way; `recorder` is that of the evaluation around the call."""
        cache = self.cache
        with cache.lock:
            variants = cache.count_call(call.key)
        if variants is None:
            return self._record(call, recorder)
        if variants.refusal is not None and variants.calls < variants.retry_at:
            if variants.calls == _TOLD_AT and may_vary(call.key):
                self.reporter.warn(messages.not_accelerated(self._name, variants.refusal))
            return self._run_uncompiled(call, variants.refusal)
        if self._options.audit and variants.calls >= variants.audit_at and policy.current == "default":
            return self._record(call, recorder, audit=True)
        failed = []
        is_checked = self._options.check_mode == "tolerance" or (
            self._options.check_mode == "sample" and variants.calls % self._options.check_every == 0
        )
        for trace in variants.replayable(self._options.confirm):
            were = before(call, trace, recorder is not None) if is_checked else None
            try:
                result = trace.run(call) if recorder is None else trace.run_within(call)
            except GradientError as error:  # what it differentiates has no second derivative
                trace.state.rejected()
                return self._run_uncompiled(call, refusals.no_op(error))
            except NoRoomError as error:
                trace.state.rejected()
                return self._give_up(call, variants, refusals.no_room(error))
            except BoundsError:
                if not trace.handles_errors:
                    raise
                trace.state.rejected()
                result = MISS
            if result is MISS:
                failed.append(trace)
                continue
            self.reporter.log_hit(trace)
            with cache.lock:
                cache.count_hit(trace, variants)
                self._schedule(variants)
                # Call paths check nothing, so there are none while each replay is checked.
                # None either if calls have been told meanwhile to run the function.
                if recorder is None and self._options.check_mode != "tolerance" and self._options.enabled:
                    cache.remember(trace, variants)
            if were is not None:
                self._check(call, trace, result, were)
            return result
        return self._record(call, recorder, failed)

    def _record(
        self, call: Call, recorder: recorders.Recorder | None, failed: Sequence[Trace] = (), audit: bool = False
    ) -> Any:  # fmt: skip
        """Run the function while it is recorded, take the trace in, and return the result."""
        changed = [guard for guard in [trace.state.failed() for trace in failed] if guard is not None]
        with self.cache.lock:
            miss = self.cache.count_miss(call.key)
            reason = _reason(self.cache.variants.get(call.key), miss, failed, audit)
            self.counters.misses[reason] += 1
        if changed:
            miss.why = changed[0].no_longer()
        if policy.current != "default":
            self._apply_policy(miss)
        # What computes an attribute when it is first read (a cached property) does so for all of them, or for none:
        # the guards would else compute it after the recording, and fit a call that found nothing there.
        variants = self.cache.variants.get(call.key)
        for trace in [*variants.traces] if variants is not None else ():
            trace.state.failed()
        started = time.perf_counter_ns()
        try:
            if recorder is not None:
                call = call._replace(leaves=untraced(call.leaves))
            recording = self._recorded(call, recorder)
        except BaseException as error:
            recorders.unwind(recorder)
            self._log_miss(miss, f" ({type(error).__name__})")
            raise
        record_ns = time.perf_counter_ns() - started
        try:
            if self._options.target == "auto" and recording.met.read and call.key.device is None:
                self._follows = True
                miss.outcome = "moved"
                self._log_miss(miss, f" {ms(record_ns)}.")
            elif recording.trace is None or self._keeps_number(recording.trace):
                with self.cache.lock:
                    miss.outcome = "needed" if recording.needed else "alone"
                    self.counters.record_ns += record_ns
                    self.cache.numbers.need(call, recording.needed)
                self._log_miss(miss, f" {ms(record_ns)}.")
            else:
                self._take_in(call, recording.trace, failed, audit, miss, record_ns)
        finally:
            # Not before: the guards of other traces are those of the state before the call.
            recording.commit(call)
        return recording.result

    def _keeps_number(self, trace: Trace) -> bool:
        """Return whether a recording is refused because a captured number that was an input outlives the call."""
        if trace.refusal is None or not trace.refusal.reason.startswith(KEPT) or not trace.state.has_numbers:
            return False
        with self.cache.lock:
            return self.cache.keep_numbers()

    def _recorded(self, call: Call, recorder: recorders.Recorder | None) -> Recording:
        with with_precision(self._options.precision):
            return self._recorded_there(call, recorder)

    def _recorded_there(self, call: Call, recorder: recorders.Recorder | None) -> Recording:
        write = self._options.write_arguments
        if call.key.device is None:
            run = partial(record, self._name, self._function, call, recorder, write, self._placed)
            return _recorded(run, self.cache)
        from tracejit.traces.record_on_device import record_on_device

        run = partial(record_on_device, self._name, self._function, call, write)
        recording = _recorded(run, self.cache)
        if self._follows and not recording.met.read and is_moved(call):
            self._follows = False  # it meets none any more
        return recording

    def _placed(self, result: Any, met: Met) -> Any:
        """Return the result of a recording on the CPU, on the device if the function met arrays there.

        Raises:
            DeviceError: if it is not to run there.
        """
        if not met.read:
            return result
        from tracejit.traces.record_on_device import result_on_device

        if self._options.target == "cpu":
            raise DeviceError(
                f"{self._name}: an array that it reads besides its arguments lies on {met.read[0].device}, and "
                'target="cpu"; put gather(x) in its place, or set target="auto".'
            )
        return result_on_device(result)

    def _take_in(
        self, call: Call, trace: Trace, failed: Sequence[Trace], audit: bool, miss: Miss, record_ns: int
    ) -> None:
        """Add a new trace to the variants of its key, and tell the user what is worth a warning."""
        name, cache, counters, options = self._name, self.cache, self.counters, self._options
        trace.listen(counters.of_programs(call.key))
        with cache.lock:
            counters.recorded += 1
            counters.record_ns += record_ns
            variants = cache.of_recording(call.key)
            fits = partial(Trace.fits, call=call)
            if cache.tried:
                outcome = variants.try_again(trace)
            else:
                outcome = variants.add(trace, failed, fits, options.confirm, options.most, audit)
            self._schedule(variants)
            cache.settle_tried(trace.state.given)
            if outcome.varying:
                cache.vary(outcome.varying)
            if outcome.keeps_arrays:
                cache.keep_arrays()
            cache.drop_paths(variants)
            cache.last_trace = outcome.trace
            miss.outcome, miss.why = outcome.kind, outcome.why or miss.why
            if variants.refusal is not None:
                miss.outcome = "refused"
            counters.outcomes[miss.outcome] += 1
            self._evict()
            churning = cache.numbers.churning(call, options.most.values, cache.hits)
            changing = cache.changing_object(call.key)
        self._log_miss(miss, f" {count(trace.length, 'operation')} in {ms(record_ns)}.")
        warn = self.reporter.warn
        if outcome.refusal is not None and (variants.calls >= _TOLD_AT or not may_vary(call.key)):
            warn(messages.not_accelerated(name, outcome.refusal))
        if outcome.difference is not None:
            warn(messages.trace_replaced(name, outcome.difference))
        if trace.state.compared is not None and outcome.refusal is None:
            warn(messages.compares_much(name, *trace.state.compared))
        if trace.length >= _LONG and outcome.refusal is None:
            (where, times), *_ = Counter(node.where for node in trace.graph.nodes).most_common(1)
            if where is not None and times >= _MANY_STEPS:
                warn(messages.records_a_long_loop(name, trace.length, where, times))
        if churning is not None:
            place, needed = churning
            warn(messages.retraces_on_each_value(name, self.leaf_name(place, call.treedef), needed))
        if changing is not None:
            place, kind, number = changing
            warn(messages.retraces_on_each_object(name, self.leaf_name(place, call.treedef), kind, number))
        if trace.shared is not None:
            warn(messages.changes_by_another_name(name, trace.shared))
        if variants.refusal is None:
            lost = _lost_effect(trace, outcome, options)
            if lost is not None:
                warn(messages.happens_once(name, lost))
        if counters.evicted >= max(options.cache_size, _MANY_EVICTED) and cache.hit_rate < _LOW_HIT_RATE:
            explained = self.explain(miss)
            size = None if miss.evicted else options.cache_size
            warn(messages.turns_over(name, counters.evicted, cache.hit_rate, cache.calls, explained, size))

    def _give_up(self, call: Call, variants: Variants, refusal: recorders.Refusal) -> Any:
        """From now on, run uncompiled what this process cannot compile."""
        with self.cache.lock:
            variants.refuse(refusal)
            self.cache.drop_paths(variants)
        self.reporter.warn(messages.not_accelerated(self._name, refusal))
        return self._run_uncompiled(call, refusal)

    def _run_uncompiled(self, call: Call, refusal: recorders.Refusal) -> Any:
        with self.cache.lock:
            miss = self.cache.count_uncompiled(call.key)
            self.counters.misses["refused"] += 1
            self.counters.uncompiled += 1
        if policy.current == "error-on-retrace":
            raise RetraceError(f"{self.explain(miss)} {messages.POLICY}")
        if logs.each_call():
            self._log_miss(miss, level=logs.DEBUG)
        copy = tree.unflatten(call.treedef, given(call))
        copies = ContainerCopies(call.treedef, call.arguments, copy)
        args, kwargs = copy
        with running_uncompiled(refusal.where):
            takes = self.cache.takes_arrays
            result = evaluate(self._function, args, kwargs, self._options.write_arguments, takes)
        copies.check(self._name, partial(container_names, self._function, call.key.structure))
        result = copies.with_passed(result, copies.originals.__getitem__)
        copies.put_back(lambda leaf: leaf)()
        return result

    def _apply_policy(self, miss: Miss) -> None:
        """Do what the policy asks for where a call has to be recorded."""
        miss.outcome = "forbidden"
        explained = self.explain(miss)
        if policy.current == "error-on-retrace":
            self._log_miss(miss)
            raise RetraceError(f"{explained} {messages.POLICY}")
        miss.outcome = "raised"
        self.reporter.warn(messages.retrace(explained, miss.key))

    def _check(self, call: Call, trace: Trace, result: Any, were: Before) -> None:
        """Warn if the underlying function gives other outputs than a replay of `trace` gave."""
        difference = difference_from_function(
            self._function,
            call,
            trace,
            result,
            self._options.check_tolerance,
            were,
            self._options.write_arguments,
        )
        if difference is not None:
            self.reporter.warn_each_time(messages.outputs_differ(self._name, difference))

    def _log_miss(self, miss: Miss, more: str = "", level: int = logs.INFO) -> None:
        self.reporter.log_miss(miss, self._options.cache_size, more, level)

    def _evict(self) -> None:
        for key in self.cache.evict(self._options.cache_size):
            self.counters.evicted += 1
            self.reporter.log_eviction(key, self._options.cache_size)

    def _schedule(self, variants: Variants) -> None:
        options = self._options
        variants.schedule(options.audit, options.check_every if options.check_mode == "sample" else 0)


def _lost_effect(recording: Trace, outcome: Outcome, options: Options) -> SideEffect | None:
    """Return the side effect of a recording that replays will leave out, or None."""
    effect, kept = recording.side_effect, outcome.trace
    if (
        effect is None or outcome.kind == "unsettled"
    ):  # never replayed: it made what later calls find (a table, once)
        return None
    if not effect.may_end:
        return effect
    is_first = outcome.kind == "recorded" and bool(options.confirm)
    return None if is_first or kept is None or kept.side_effect is None else effect


def _reason(variants: Variants | None, miss: Miss, failed: Sequence[Trace], audit: bool) -> str:
    """Return why a call is a miss: one of REASONS."""
    if variants is None:
        return "evicted" if miss.evicted else "signature"
    if variants.refusal:
        return "refused"
    return "audit" if audit else "guard" if failed else "unconfirmed"


def _recorded(run: Callable[[Exchange], Recording], cache: TraceCache) -> Recording:
    """Record a call, or if it cannot be recorded so, with all places as they are."""
    try:
        return run(cache.exchange)
    except NotTakenError as error:
        before, is_undone, raised = error.before, error.is_undone, error.__cause__
    if not is_undone:
        with cache.lock:
            cache.keep_arrays()
        assert raised is not None
        raise raised
    try:
        recording = run(NUMPYS_OWN)
    except BaseException:
        for array, elements in before:  # NumPy has written them at once
            np.copyto(array, elements)
        raise
    with cache.lock:
        cache.keep_arrays()
    return recording
