# SPDX-License-Identifier: BSD-3-Clause
"""The text of a report."""

from collections.abc import Sequence

from tracejit.doctor.facts import Facts
from tracejit.doctor.findings import BROKEN, NOTE, SLOW, Finding
from tracejit.doctor.trial import Trial
from tracejit.util.text import count, size

Rows = list[tuple[str, str]]
NO_BLAS = 'unknown; pip install "tracejit[cli]" to see it'


def text_of(facts: Facts, trial: Trial, findings: Sequence[Finding]) -> str:
    """Return the text: facts and trial in sections, findings, and a line that sums them up."""
    sections: dict[str, Rows] = {
        "versions": [(name, version or "not installed") for name, version in facts.versions.items()],
        "machine": _machine(facts),
        "cache": _cache(facts),
        "settings": [
            (name, f"{_shown(name, value)} ({facts.sources[name]})") for name, value in facts.settings.items()
        ],
        "trial": _trial(trial),
    }
    lines = []
    for title, rows in sections.items():
        lines += [title, *(f"  {name:<16}{value}" for name, value in rows)]
    lines.append("")
    for finding in findings:
        lines += [
            f"{finding.level}: {finding.problem}", f"  costs: {finding.cost}", f"  do: {finding.remedy}", "",
        ]  # fmt: skip
    return "\n".join([*lines, _summary(findings)])


def _machine(facts: Facts) -> Rows:
    named = f" ({facts.compiler_name})" if facts.compiler_name else ""
    load = "" if facts.load is None else f"; load {facts.load:g}"
    blas = [
        f"{library['internal_api']} {library['version']}, {count(library['num_threads'], 'thread')} "
        f"({library.get('threading_layer', 'unknown layer')}), {library['filepath']}"
        for library in facts.blas or []
    ]
    driver = facts.cuda_driver
    return [
        ("system", facts.system),
        ("CPU", f"{facts.processor}{named}"),
        ("features", " ".join(facts.features) or "unknown"),
        ("vectors", f"{facts.vector_bits} bits"),
        ("CPUs", f"{facts.cpus}, {facts.allowed} for this process{load}"),
        *[("BLAS", line) for line in (blas or ["none"] if facts.blas is not None else [NO_BLAS])],
        ("CUDA", facts.gpu or f"{f'driver {driver}' if driver else 'no NVIDIA driver'}; the CPU is used"),
    ]


def _cache(facts: Facts) -> Rows:
    cache = facts.cache
    problem = "TRACEJIT_CACHE=off" if cache.setting == "off" else cache.problem
    return [
        ("folder", cache.folder),
        ("used", "yes" if problem is None else f"no: {problem}"),
        ("kernels", f"{cache.kernels}, {size(cache.kernel_bytes)} of {size(cache.limit_bytes)}"),
        ("programs", str(cache.programs)),
    ]


_UNSET = {"cache_dir": "the system's cache folder", "cublas_from": "off"}


def _shown(name: str, value: object) -> str:
    """Return the value of a setting as its environment variable has it."""
    if value is None:
        return _UNSET[name]
    return str(int(value) if isinstance(value, bool) else value)


def _trial(trial: Trial) -> Rows:
    if trial.error is not None:
        return [("training step", f"failed: {trial.error}")]
    return [
        (
            "training step",
            f"{count(trial.compiled, 'kernel')} compiled in {trial.compile_ms} ms",
        ),
        ("replay", f"{trial.replay_us} us; the plain function takes {trial.uncompiled_us} us"),
        ("result", "as the plain function's" if trial.difference is None else trial.difference),
    ]


def _summary(findings: Sequence[Finding]) -> str:
    levels = [finding.level for finding in findings]
    broken, slow, notes = (levels.count(level) for level in (BROKEN, SLOW, NOTE))
    if broken:
        return f"Broken: {count(broken, 'finding')}."
    if slow or notes:
        slows = "slows" if slow == 1 else "slow"
        return f"It works; {count(slow, 'finding')} that {slows} it down, {count(notes, 'note')}."
    return "It works, and nothing slows it down."
