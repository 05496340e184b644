# SPDX-License-Identifier: BSD-3-Clause
"""A report in words."""

from collections.abc import Sequence

from tracejit.doctor.facts import Blas, CacheFolder, Cuda, Facts, Machine
from tracejit.doctor.findings import BROKEN, NOTE, SLOW, Finding
from tracejit.doctor.trial import Trial
from tracejit.util.text import count, size

Rows = list[tuple[str, str]]


def text_of(facts: Facts, trial: Trial, findings: Sequence[Finding]) -> str:
    """Return what was gathered, tried and found."""
    lines: list[str] = []
    sections = (
        ("versions", _versions(facts)), ("machine", _machine(facts.machine)), ("BLAS", _blas(facts.blas)),
        ("CUDA", [("", _cuda(facts.cuda))]), ("cache", _cache(facts.cache)), ("settings", _settings(facts)),
        ("tried", _tried(trial)),
    )  # fmt: skip
    for title, rows in sections:
        lines.append(title)
        lines += [f"  {name:<12}{value}" if name else f"  {value}" for name, value in rows]
    lines.append("")
    for finding in findings:
        lines += [
            f"{finding.level}: {finding.found}", f"  costs: {finding.cost}", f"  do: {finding.remedy}", "",
        ]  # fmt: skip
    lines.append(_summary(findings))
    return "\n".join(lines)


def _versions(facts: Facts) -> Rows:
    rows = [(name, version or "not installed") for name, version in facts.versions.items()]
    return [*rows, ("Python", facts.python.version)]


def _machine(machine: Machine) -> Rows:
    named = f" ({machine.compiler_name})" if machine.compiler_name else ""
    quota = "no limit to their time" if machine.quota is None else f"the time of {machine.quota:g} of them"
    load = "" if machine.load is None else f"; load {machine.load:g}"
    return [
        ("system", machine.system),
        ("CPU", f"{machine.processor}{named}"),
        ("features", " ".join(machine.features) or "unknown"),
        ("vectors", f"{machine.vector_bits} bits"),
        ("CPUs", f"{machine.cpus}, of which this process may use {machine.allowed}, {quota}{load}"),
    ]


def _blas(found: Sequence[Blas]) -> Rows:
    rows = []
    for blas in found:
        threads = "" if blas.threads is None else f", {count(blas.threads, 'thread')}"
        layer = f" ({blas.layer})" if blas.layer else ""
        rows.append((blas.package, f"{blas.name} {blas.version}{threads}{layer}"))
    return rows


def _cuda(cuda: Cuda) -> str:
    if not cuda.devices and cuda.driver is None:
        return "no NVIDIA device"
    devices = ", ".join(cuda.devices) or "no device"
    return f"{devices}; driver {cuda.driver or 'unknown'}; this version of tracejit runs on the CPU only"


def _cache(cache: CacheFolder) -> Rows:
    info = cache.info
    why = "TRACEJIT_CACHE=off" if info.setting == "off" else info.problem
    owner = f"{cache.owner}, mode {cache.mode}" if cache.exists else "made when something is kept"
    good = (
        ""
        if cache.damaged is None
        else "; all good"
        if not cache.damaged
        else f"; {len(cache.damaged)} damaged"
    )
    free = "unknown" if cache.free_bytes is None else f"{size(cache.free_bytes)} free"
    return [
        ("folder", info.folder),
        ("used", "yes" if why is None else f"no: {why}"),
        ("owner", owner),
        ("kernels", f"{info.kernels}, {size(info.kernel_bytes)} of {size(info.limit_bytes)}{good}"),
        ("programs", str(info.programs)),
        ("disk", f"{free}, {cache.filesystem or 'unknown kind'}"),
    ]


def _settings(facts: Facts) -> Rows:
    rows = []
    for setting in facts.settings:
        name, value = setting.name, setting.value
        if name == "flush_denormals":
            name, value = "denormals", "flushed" if value else "kept"
        elif value is None:
            value = "the system's place"
        elif isinstance(value, bool):
            value = int(value)  # as the variable has it
        rows.append((name, f"{value} ({setting.source})"))
    return rows


def _tried(trial: Trial) -> Rows:
    compiling, step, threads = trial.compiling, trial.step, trial.threads
    if compiling.error is not None:
        return [("compiling", compiling.error)]
    rows = [
        (
            "compiling",
            f"Numba imported in {compiling.numba_ms} ms, a kernel compiled in {compiling.kernel_ms} ms",
        )
    ]
    assert step is not None and threads is not None
    if step.error is not None:
        rows.append(("step", step.error))
    else:
        rows += [
            ("step", f"recorded in {step.record_ms} ms, built in {step.build_ms} ms, {count(step.kernels, 'kernel')} "
             f"compiled in {step.compile_ms} ms, loaded again in {step.load_ms} ms"),
            ("replay", f"{step.replay_us} us, uncompiled {step.uncompiled_us} us"),
            ("result", "as uncompiled" if step.difference is None else step.difference),
        ]  # fmt: skip
    if threads.error is not None:
        rows.append(("threads", threads.error))
    elif threads.speedup is None:
        rows.append(("threads", "one"))
    else:
        rows.append(("threads", f"{threads.threads}, {threads.speedup:g} times as fast as one; there and back in "
                     f"{threads.round_trip_us} us"))  # fmt: skip
    return rows


def _summary(findings: Sequence[Finding]) -> str:
    levels = [finding.level for finding in findings]
    broken, slow, notes = (levels.count(level) for level in (BROKEN, SLOW, NOTE))
    if broken:
        return f"{count(broken, 'thing')} {'is' if broken == 1 else 'are'} broken."
    if slow or notes:
        slows = "slows" if slow == 1 else "slow"
        return f"It works; {count(slow, 'thing')} that {slows} it down, {count(notes, 'note')}."
    return "It works, and nothing slows it down."
