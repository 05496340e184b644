# SPDX-License-Identifier: BSD-3-Clause
"""Findings: what is wrong or slow here, what that costs, and what to do. Each rule is a function of facts and trial."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from tracejit.doctor.facts import VARIABLES, Facts
from tracejit.doctor.trial import Trial
from tracejit.util.text import count

BROKEN, SLOW, NOTE = "broken", "slow", "note"
LEVELS = (BROKEN, SLOW, NOTE)

_NETWORK = (
    "nfs", "cifs", "smb", "afs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "fuse.sshfs", "fuse.s3fs",
)  # fmt: skip
_OURS = "TRACEJIT_"
_FEW_BYTES = 100 << 20  # left on a disk
_FULL = 0.9  # of the limit of the cache
_SLOW_KERNEL_MS = 500.0  # usually 20 to 100 for the first one
_SLOW_ROUND_US = 50.0  # usually 1 to 5
_BUSY = 0.75  # processes that want to run, for each CPU
_POOR_SPEEDUP = 0.6  # of the number of threads


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its level ("broken", "slow", "note"), a name for programs, what was found, its cost, what to do."""

    level: str
    name: str
    found: str
    cost: str
    remedy: str


Rule = Callable[[Facts, Trial], Iterator[Finding]]


def judge(facts: Facts, trial: Trial) -> list[Finding]:
    """Return all findings, the worst first."""
    found = [finding for rule in RULES for finding in rule(facts, trial)]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def _compiler(facts: Facts, trial: Trial) -> Iterator[Finding]:
    error, versions = trial.compiling.error, facts.versions
    missing = [name for name in ("numba", "llvmlite", "scipy") if versions[name] is None]
    if missing:
        packages = " ".join(missing)
        yield Finding(
            BROKEN, "packages", f"{' and '.join(missing)} cannot be found",
            "nothing can be compiled" if error else "large matrix products cannot be compiled",
            f"pip install {packages}",
        )  # fmt: skip
    if error is not None and not missing:
        variables = [name for name in facts.environment if name.startswith("NUMBA_")]
        unset = f"unset {', '.join(variables)}; then " if variables else ""
        yield Finding(
            BROKEN, "compiler", f"a small kernel cannot be compiled: {error}",
            "accelerated functions fail at their third call; TRACEJIT_BACKEND=python runs them slowly",
            f"{unset}pip install --upgrade tracejit numba (here: Numba {versions['numba']}, llvmlite "
            f"{versions['llvmlite']}); if that does not help, report it",
        )  # fmt: skip
    took = trial.compiling.kernel_ms
    if took is not None and took > _SLOW_KERNEL_MS:
        yield Finding(
            SLOW, "compiler-slow", f"compiling a small kernel took {took:.0f} ms, usually 20 to 100",
            "each kernel that is new on this machine takes so much longer, once",
            "see what keeps the CPUs busy, and whether the packages lie on a network disk",
        )  # fmt: skip


def _step(facts: Facts, trial: Trial) -> Iterator[Finding]:
    step = trial.step
    if step is None:
        return
    if step.error is not None:
        yield Finding(
            BROKEN, "step", f"a small step cannot be replayed: {step.error}", "accelerated functions fail",
            "report it, with what this command prints",
        )  # fmt: skip
    elif step.difference is not None:
        yield Finding(
            BROKEN, "results", f"a small step gives something else compiled than uncompiled: {step.difference}",
            "results may be wrong", "do not use it here; report it, with what this command prints",
        )  # fmt: skip
    elif step.kept < step.kernels:
        yield Finding(
            SLOW, "not-kept", f"of {step.kernels} kernels, {step.kept} could be loaded again from a cache folder",
            "each process compiles anew, some 40 ms for each kernel",
            "see whether tracejit's source files are installed beside it and temporary folders are your own",
        )  # fmt: skip


def _threads(facts: Facts, trial: Trial) -> Iterator[Finding]:
    threads, source, machine = facts.setting("threads"), facts.source("threads"), facts.machine
    usable = machine.allowed
    if machine.quota is not None and machine.quota < min(threads, machine.allowed):
        usable = max(1, int(machine.quota))
        yield Finding(
            SLOW, "quota", f"{threads} threads share the time of {machine.quota:g} CPUs, which is what the group "
            "(cgroup) of this process gets",
            "the system stops all threads for tens of milliseconds when the time is used up",
            f"TRACEJIT_THREADS={usable}, or allow the group more",
        )  # fmt: skip
    elif threads > machine.allowed:
        yield Finding(
            SLOW, "threads-many", f"{threads} threads ({source}) run on {machine.allowed} CPUs",
            "threads wait for each other in each large launch",
            f"TRACEJIT_THREADS={machine.allowed}, or leave it unset",
        )  # fmt: skip
    elif threads < machine.allowed and source != "default":
        yield Finding(
            NOTE, "threads-few", f"{threads} of {machine.allowed} CPUs are used ({source}={threads})",
            "launches that take more than 40 us could run in more parts",
            f"TRACEJIT_THREADS={machine.allowed}, if nothing else needs the CPUs",
        )  # fmt: skip
    tried = trial.threads
    if tried is None:
        return
    if tried.error is not None:
        yield Finding(
            SLOW, "pool", f"the threads that run parts of launches cannot be started: {tried.error}",
            "large launches fail", "TRACEJIT_THREADS=1",
        )  # fmt: skip
    elif tried.speedup is not None and tried.speedup < _POOR_SPEEDUP * min(tried.threads, usable):
        yield Finding(
            SLOW, "pool-slow", f"{tried.threads} threads are {tried.speedup:g} times as fast as one",
            "large launches gain little by their parts, and wait for those that are suspended",
            "see what keeps the CPUs busy; or TRACEJIT_THREADS=1, which leaves them to others",
        )  # fmt: skip
    elif tried.round_trip_us is not None and tried.round_trip_us > _SLOW_ROUND_US:
        took = f"{tried.round_trip_us:.0f} us, usually less than 5"
        yield Finding(
            SLOW, "pool-late", f"a launch in parts that does nothing takes {took}",
            "as much for each large launch", "see what keeps the CPUs busy; or TRACEJIT_THREADS=1",
        )  # fmt: skip


def _busy(facts: Facts, trial: Trial) -> Iterator[Finding]:
    machine = facts.machine
    if machine.load is not None and machine.load > _BUSY * machine.cpus:
        yield Finding(
            SLOW, "busy", f"{machine.load:g} processes wanted to run in the last minute, on {machine.cpus} CPUs",
            "steps take longer, and times that are measured now say little",
            "wait until others are done, or give each process CPUs of its own (taskset, TRACEJIT_THREADS)",
        )  # fmt: skip
    if machine.governor == "powersave":
        yield Finding(
            NOTE, "governor", "the CPU's clock is set to save power (scaling_governor is powersave)",
            "a short step begins at a low clock", "cpupower frequency-set -g performance, if you may",
        )  # fmt: skip


def _blas(facts: Facts, trial: Trial) -> Iterator[Finding]:
    machine = facts.machine
    usable = machine.allowed if machine.quota is None else min(machine.allowed, machine.quota)
    is_busy = machine.load is not None and machine.load > _BUSY * machine.cpus
    # NumPy's computes while a function is recorded, SciPy's in large products.
    found = [blas for blas in facts.blas if blas.threads is not None]
    many = [blas for blas in found if blas.threads is not None and blas.threads > usable]
    spinning = [blas for blas in found if blas.layer == _SPINS and blas.threads != 1]
    if many:
        names = " and ".join(blas.package for blas in many)
        yield Finding(
            SLOW, "blas-threads", f"the BLAS of {names} uses {many[0].threads} threads on {usable:g} CPUs",
            "its threads take turns, and wait for each other by spinning",
            f"OPENBLAS_NUM_THREADS={max(1, int(usable))} (MKL_NUM_THREADS for MKL)",
        )  # fmt: skip
    elif spinning and is_busy:
        names = " and ".join(blas.package for blas in spinning)
        threads = spinning[0].threads
        yield Finding(
            SLOW, "blas-spinning", f"the BLAS of {names} has {threads} threads that spin, on a busy machine",
            "a product may take several times as long when a thread of it is suspended", "OPENBLAS_NUM_THREADS=1",
        )  # fmt: skip
    if facts.environment.get("OMP_WAIT_POLICY", "").lower() == "active" and is_busy:
        yield Finding(
            SLOW, "omp-active", "OMP_WAIT_POLICY=active: OpenMP's threads spin between two regions, on a busy machine",
            "they take CPUs from tracejit's threads", "OMP_WAIT_POLICY=passive",
        )  # fmt: skip


_SPINS = "threads that spin"


def _cache(facts: Facts, trial: Trial) -> Iterator[Finding]:
    cache, info = facts.cache, facts.cache.info
    compiled_anew = "each process compiles its kernels anew, some 40 ms each, and imports Numba, 0.2 s"
    if info.setting == "off":
        yield Finding(
            NOTE,
            "cache-off",
            "nothing is kept on disk (TRACEJIT_CACHE=off)",
            compiled_anew,
            "unset TRACEJIT_CACHE",
        )
        return
    if info.problem is not None:
        yield Finding(
            BROKEN, "cache-refused", f"the cache is not used: {info.problem}", compiled_anew,
            "set TRACEJIT_CACHE_DIR to a folder of your own, or mend this one (chmod 700)",
        )  # fmt: skip
        return
    if not cache.writable:
        what = "cannot be written" if cache.exists else "does not exist, and cannot be made"
        yield Finding(
            SLOW, "cache-read-only", f"the cache folder {info.folder} {what}",
            f"kernels that are not in it are not kept: {compiled_anew}",
            "set TRACEJIT_CACHE_DIR to a folder that you may write to",
        )  # fmt: skip
    elif cache.free_bytes is not None and cache.free_bytes < _FEW_BYTES:
        yield Finding(
            SLOW, "disk-full", f"the disk of the cache has {cache.free_bytes >> 20} MiB left",
            f"when it is full, {compiled_anew}", "make room, or set TRACEJIT_CACHE_DIR to another disk",
        )  # fmt: skip
    if cache.filesystem is not None and cache.filesystem.startswith(_NETWORK):
        yield Finding(
            SLOW, "cache-network", f"the cache is on a network disk ({cache.filesystem})",
            "a new process waits for the network for each kernel",
            "set TRACEJIT_CACHE_DIR to a local disk; tracejit makes what it needs there",
        )  # fmt: skip
    if cache.damaged:
        yield Finding(
            NOTE, "cache-damaged", f"{count(len(cache.damaged), 'entry')} of the cache cannot be used; the first: "
            f"{cache.damaged[0]}",
            "what is needed of them is compiled again, and written over", "tracejit cache verify names all",
        )  # fmt: skip
    if info.kernel_bytes > _FULL * info.limit_bytes:
        yield Finding(
            NOTE, "cache-full", f"the cache holds {info.kernel_bytes >> 20} of {info.limit_bytes >> 20} MiB",
            "kernels that were not used for longest go, and are compiled again if they are needed",
            f"TRACEJIT_CACHE_MIB={2 * info.limit_bytes >> 20}",
        )  # fmt: skip


def _settings(facts: Facts, trial: Trial) -> Iterator[Finding]:
    if facts.setting("backend") == "python":
        yield Finding(
            SLOW, "backend", f"programs run uncompiled ({_said(facts, 'backend')})",
            "a replay takes longer than the plain function", "unset TRACEJIT_BACKEND",
        )  # fmt: skip
    if facts.setting("verify"):
        yield Finding(
            SLOW, "verify", f"each graph is checked ({_said(facts, 'verify')})",
            "building takes longer; replays do not", "unset TRACEJIT_VERIFY",
        )  # fmt: skip
    if facts.setting("log") == "debug":
        yield Finding(
            SLOW, "log", f"each replay is logged ({_said(facts, 'log')})",
            "some 100 us for each call of an accelerated function", "TRACEJIT_LOG=info",
        )  # fmt: skip
    known = [name.removeprefix(_OURS) for names in VARIABLES.values() for name in names]
    for name in facts.environment:
        if name.startswith(_OURS) and name.removeprefix(_OURS) not in known:
            close = get_close_matches(name.removeprefix(_OURS), known, 1)
            yield Finding(
                NOTE, "variable", f"{name} is set, and no setting has that name",
                "what it was to set is as ever", f"did you mean {_OURS}{close[0]}?" if close else f"unset {name}",
            )  # fmt: skip
    keeps = not facts.setting("flush_denormals")
    if keeps or not facts.machine.flushes:
        why = _said(facts, "flush_denormals") if keeps else "tracejit cannot flush them on this kind of CPU"
        yield Finding(
            NOTE, "denormals", f"numbers too small for full precision are kept ({why})",
            "a step whose gradients become that small may take several times as long",
            "unset TRACEJIT_FLUSH_DENORMALS" if keeps else "scale the loss, so that gradients stay larger",
        )  # fmt: skip


def _said(facts: Facts, name: str) -> str:
    source = facts.source(name)
    value = facts.setting(name)
    shown = str(int(value)) if isinstance(value, bool) else str(value)
    return f"{source}={shown}" if source.isupper() else f"set by {source}"


def _python(facts: Facts, trial: Trial) -> Iterator[Finding]:
    python = facts.python
    if python.watched_by:
        yield Finding(
            SLOW, "watched", f"each line or call of Python is watched by {', '.join(python.watched_by)}",
            "a small step takes about three times as long, recordings even more",
            "measure without the debugger, profiler or coverage",
        )  # fmt: skip
    if python.debug_build:
        yield Finding(
            SLOW, "debug-build", "this Python is a debug build", "all of Python takes several times as long",
            "use a release build to measure",
        )  # fmt: skip
    if python.developer_mode:
        yield Finding(
            SLOW, "developer-mode", "Python runs in its development mode (-X dev, PYTHONDEVMODE)",
            "memory is checked at each allocation", "measure without it",
        )  # fmt: skip


RULES: tuple[Rule, ...] = (_compiler, _step, _cache, _threads, _busy, _blas, _settings, _python)
