# SPDX-License-Identifier: BSD-3-Clause
"""Findings: problems and slowdowns, each with its cost and its remedy. A rule is a function of facts and trial."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from tracejit.doctor.facts import Facts
from tracejit.doctor.trial import Trial

BROKEN, SLOW, NOTE = "broken", "slow", "note"
LEVELS = (BROKEN, SLOW, NOTE)

_BUSY = 0.75  # processes that want to run, for each CPU


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: its level ("broken", "slow", "note"), a name for programs, the problem, its cost, its remedy."""

    level: str
    name: str
    problem: str
    cost: str
    remedy: str


Rule = Callable[[Facts, Trial], Iterator[Finding]]


def judge(facts: Facts, trial: Trial) -> list[Finding]:
    """Return all findings, the worst first."""
    findings = [finding for rule in RULES for finding in rule(facts, trial)]
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def _trial(facts: Facts, trial: Trial) -> Iterator[Finding]:
    versions = facts.versions
    missing = [name for name in ("numba", "llvmlite", "scipy") if versions[name] is None]
    if missing:
        what = "no kernel" if trial.error else "no large matrix product"
        yield Finding(
            BROKEN, "packages", f"not installed: {', '.join(missing)}", f"{what} can be compiled",
            f"pip install {' '.join(missing)}",
        )  # fmt: skip
    elif trial.error is not None:
        variables = [name for name in facts.environment if name.startswith("NUMBA_")]
        unset = f"unset {', '.join(variables)}; then " if variables else ""
        yield Finding(
            BROKEN, "step", f"a small training step cannot be compiled and replayed: {trial.error}",
            "accelerated functions fail at their third call; TRACEJIT_BACKEND=python runs them, slowly",
            f"{unset}pip install --upgrade tracejit numba (installed: Numba {versions['numba']}, llvmlite "
            f"{versions['llvmlite']}); if that does not help, report it with this output",
        )  # fmt: skip
    elif trial.difference is not None:
        yield Finding(
            BROKEN, "results", f"a small training step has a different result when it is replayed: {trial.difference}",
            "results may be wrong", "do not use tracejit on this machine; report it with this output",
        )  # fmt: skip


def _cache(facts: Facts, trial: Trial) -> Iterator[Finding]:
    cache = facts.cache
    cost = "each process imports Numba, 0.2 s, and compiles its kernels again, about 40 ms each"
    if cache.setting == "off":
        yield Finding(
            NOTE, "cache-off", "the cache on disk is off (TRACEJIT_CACHE=off)", cost, "unset TRACEJIT_CACHE"
        )
    elif cache.problem is not None:
        yield Finding(
            BROKEN, "cache-refused", f"the cache on disk is not used: {cache.problem}", cost,
            "set TRACEJIT_CACHE_DIR to a folder of your own, or repair this one (chmod 700)",
        )  # fmt: skip
    elif not facts.cache_writable:
        yield Finding(
            SLOW, "cache-read-only", f"the cache folder {cache.folder} cannot be written", cost,
            "set TRACEJIT_CACHE_DIR to a folder that you may write to",
        )  # fmt: skip


def _cpus(facts: Facts, trial: Trial) -> Iterator[Finding]:
    threads, source, allowed = facts.settings["threads"], facts.sources["threads"], facts.allowed
    if not facts.has_threads:
        yield Finding(
            NOTE, "threads-none", "programs run on one thread, as this system has threads of neither POSIX nor Windows",
            "launches above 40 us run in one part; large matrix products use the threads of BLAS all the same",
            "nothing; or use Linux, macOS or Windows",
        )  # fmt: skip
    elif threads > allowed:
        yield Finding(
            SLOW, "threads-many", f"{threads} threads ({source}) share {allowed} CPUs",
            "threads wait for each other in each large launch", f"TRACEJIT_THREADS={allowed}, or leave it unset",
        )  # fmt: skip
    elif threads < allowed and source != "default":
        yield Finding(
            NOTE, "threads-few", f"tracejit uses {threads} of {allowed} CPUs ({source}={threads})",
            "launches above 40 us could run in more parts",
            f"TRACEJIT_THREADS={allowed}, if nothing else needs the CPUs",
        )  # fmt: skip
    is_busy = facts.load is not None and facts.load > _BUSY * facts.cpus
    if is_busy:
        yield Finding(
            SLOW, "busy", f"{facts.load:g} processes wanted to run in the last minute, on {facts.cpus} CPUs",
            "steps take longer, and times measured now mean little",
            "wait for the other processes, or give each process its own CPUs (taskset, TRACEJIT_THREADS)",
        )  # fmt: skip
    blas_threads = max([library["num_threads"] for library in facts.blas or []], default=1)
    spins = any(library.get("threading_layer") == "pthreads" for library in facts.blas or [])
    if blas_threads > allowed:
        yield Finding(
            SLOW, "blas-threads", f"BLAS uses {blas_threads} threads on {allowed} CPUs",
            "its threads take turns, and spin while they wait",
            f"OPENBLAS_NUM_THREADS={allowed} (MKL_NUM_THREADS for MKL)",
        )  # fmt: skip
    elif spins and is_busy and blas_threads > 1:
        yield Finding(
            SLOW, "blas-spinning", f"BLAS has {blas_threads} threads that spin, on a busy machine",
            "a product takes several times as long when one of its threads is suspended", "OPENBLAS_NUM_THREADS=1",
        )  # fmt: skip


def _settings(facts: Facts, trial: Trial) -> Iterator[Finding]:
    if facts.settings["backend"] == "python":
        yield Finding(
            SLOW, "backend", f"programs run uncompiled ({_origin(facts, 'backend')})",
            "a replay takes longer than the plain function", "unset TRACEJIT_BACKEND",
        )  # fmt: skip
    if facts.settings["verify"]:
        yield Finding(
            SLOW, "verify", f"each graph is checked ({_origin(facts, 'verify')})",
            "building takes longer; replays do not", "unset TRACEJIT_VERIFY",
        )  # fmt: skip
    if facts.settings["log"] == "debug":
        yield Finding(
            SLOW, "log", f"each replay is logged ({_origin(facts, 'log')})",
            "about 100 us for each call of an accelerated function", "TRACEJIT_LOG=info",
        )  # fmt: skip
    names = [name.upper() for name in facts.settings]
    for variable in facts.environment:
        prefix, _, name = variable.partition("_")
        if prefix == "TRACEJIT" and name not in names:
            close = get_close_matches(name, names, 1)
            yield Finding(
                NOTE, "variable", f"{variable} is set, and no setting has that name", "the variable has no effect",
                f"did you mean {prefix}_{close[0]}?" if close else f"unset {variable}",
            )  # fmt: skip
    are_kept = not facts.settings["flush_denormals"]
    if are_kept or not facts.flushes:
        reason = (
            _origin(facts, "flush_denormals") if are_kept else "this kind of CPU cannot flush them to zero"
        )
        yield Finding(
            NOTE, "denormals", f"numbers too small for full precision are kept ({reason})",
            "a step whose gradients become that small may take several times as long",
            "unset TRACEJIT_FLUSH_DENORMALS" if are_kept else "scale the loss, so that gradients stay larger",
        )  # fmt: skip


def _origin(facts: Facts, name: str) -> str:
    """Return where a setting comes from, as a variable of the environment has it."""
    source, value = facts.sources[name], facts.settings[name]
    return (
        f"{source}={int(value) if isinstance(value, bool) else value}"
        if source.isupper()
        else f"set by {source}"
    )


def _python(facts: Facts, trial: Trial) -> Iterator[Finding]:
    if facts.watched_by:
        yield Finding(
            SLOW, "watched", f"each line or call of Python is watched by {', '.join(facts.watched_by)}",
            "a small step takes about three times as long, a recording even more",
            "measure without debugger, profiler and coverage",
        )  # fmt: skip


def _gpu(facts: Facts, trial: Trial) -> Iterator[Finding]:
    if facts.cuda_driver is not None and facts.gpu_problem is not None:
        yield Finding(
            NOTE, "gpu", f"there is an NVIDIA driver, and no GPU can be used: {facts.gpu_problem}",
            'target="cuda" is an error', "follow the message, if functions are to run on a GPU",
        )  # fmt: skip


RULES: tuple[Rule, ...] = (_trial, _cache, _cpus, _settings, _python, _gpu)
