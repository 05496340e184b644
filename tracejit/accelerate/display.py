# SPDX-License-Identifier: BSD-3-Clause
"""An accelerated function as text, as HTML for notebooks, and as the data of its page."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from tracejit.accelerate.dispatch import CallDispatcher
from tracejit.traces.report import Explanation
from tracejit.util import html
from tracejit.util.text import count, ms

if TYPE_CHECKING:
    from tracejit.traces.stats import Stats
    from tracejit.view.live import Running

_MOST_SIGNATURES = 20  # in a notebook


class Displayed(Protocol):
    """The properties of an accelerated function that are displayed."""

    enabled: bool
    cache_size: int
    check_mode: str
    check_tolerance: float

    @property
    def function(self) -> Callable[..., Any]:
        """The underlying function."""

    @property
    def hit_rate(self) -> float:
        """The percentage of calls that were replayed."""

    @property
    def occupancy(self) -> float:
        """The percentage of the cache that is in use."""

    @property
    def stats(self) -> "Stats":
        """The counts of calls, traces and kernels."""

    def explain(self) -> Explanation:
        """Return the reason for what the last call did."""


def text_of(accelerated: Displayed, name: str) -> str:
    """Return the repr of an accelerated function."""
    module = getattr(accelerated.function, "__module__", None)
    where = f"{module}.{name}" if module else name
    return (
        "AcceleratedFunction with properties:\n\n"
        f"         function: {where}\n"
        f"          enabled: {accelerated.enabled}\n"
        f"       cache_size: {accelerated.cache_size}\n"
        f"         hit_rate: {accelerated.hit_rate:g}\n"
        f"        occupancy: {accelerated.occupancy:g}\n"
        f"       check_mode: {accelerated.check_mode!r}\n"
        f"  check_tolerance: {accelerated.check_tolerance:g}"
    )


def html_of(accelerated: Displayed, label: str) -> str:
    """Return the HTML of an accelerated function for a notebook; `label` is its name, file and line."""
    stats = accelerated.stats
    programs, kernels = count(stats.programs, "program"), count(stats.kernels, "kernel")
    note = f"{count(stats.calls, 'call')}, hit rate {accelerated.hit_rate:.4g} %; {programs} of {kernels}"
    rows = [
        (
            key.arguments,
            key.calls,
            len(key.variants),
            sum(len(variant.guards) for variant in key.variants),
            key.state,
        )
        for key in accelerated.explain().keys
    ]
    header = ["arguments", "calls", "traces", "guards", "state"]
    table = html.table(header, rows, _MOST_SIGNATURES, "signatures") if rows else ""
    return html.block(label, note, table)


def running(accelerated: Displayed, name: str, dispatcher: CallDispatcher) -> "Running":
    """Return the data of the page of an accelerated function."""
    from tracejit.view.live import Running

    cache = dispatcher.cache
    explanation = accelerated.explain()
    with cache.lock:
        variants = sorted(cache.variants.values(), key=lambda variants: variants.used, reverse=True)
        history = list(cache.history)
    stats = accelerated.stats
    kernels = f"{stats.kernels}; {stats.compiled} compiled in {ms(stats.compile_ns)}, {stats.loaded} loaded"
    facts = [
        ("function", dispatcher.counters.label),
        ("calls", f"{stats.calls}, {stats.hits} of them replayed"),
        ("traces", f"{stats.traces} recorded in {ms(stats.record_ns)}"),
        ("programs", f"{stats.programs} built in {ms(stats.build_ns)}"),
        ("kernels", kernels),
    ]
    events = [(call, miss.outcome, dispatcher.explain(miss)) for call, miss in history]
    return Running(name, accelerated.function, variants, cache.last_trace, explanation, events, facts)
