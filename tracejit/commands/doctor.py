# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit doctor`: what tracejit runs on, whether it works here, and what slows it down."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import DONE, FAILED, Result
from tracejit.words import count, size


def add(commands: Any) -> None:
    """Add the command to a parser."""
    add_command(
        commands,
        "doctor",
        _doctor,
        "say whether tracejit works here, and what slows it down",
        description="Say what tracejit runs on, try whether it works here, and name what slows it down: what was "
        "found, what it costs, what to do. Exits with 1 if something is broken.",
    )


def _doctor(_: argparse.Namespace) -> Result:
    # This compiles.
    from tracejit.doctor import examine

    report = examine()
    return Result(report, text_of(report), FAILED if report.broken else DONE)


def text_of(report: Any) -> str:
    """Return a report in words."""
    facts, lines = report.facts, []
    sections = (
        ("versions", _versions(facts)), ("machine", _machine(facts.machine)), ("BLAS", _blas(facts)),
        ("CUDA", [("", _cuda(facts.cuda))]), ("cache", _cache(facts.cache)), ("settings", _settings(facts)),
        ("tried", _tried(report.trial)),
    )  # fmt: skip
    for title, rows in sections:
        lines.append(title)
        lines += [f"  {name:<12}{value}" if name else f"  {value}" for name, value in rows]
    lines.append("")
    for finding in report.findings:
        lines += [
            f"{finding.level}: {finding.found}", f"  costs: {finding.cost}", f"  do: {finding.remedy}", "",
        ]  # fmt: skip
    lines.append(_summary(report))
    return "\n".join(lines)


Rows = list[tuple[str, str]]


def _versions(facts: Any) -> Rows:
    rows = [(name, version or "not installed") for name, version in facts.versions.items()]
    return [*rows, ("Python", facts.python.version)]


def _machine(machine: Any) -> Rows:
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


def _blas(facts: Any) -> Rows:
    rows = []
    for blas in facts.blas:
        threads = "" if blas.threads is None else f", {count(blas.threads, 'thread')}"
        layer = f" ({blas.layer})" if blas.layer else ""
        rows.append((blas.package, f"{blas.name} {blas.version}{threads}{layer}"))
    return rows


def _cuda(cuda: Any) -> str:
    if not cuda.devices and cuda.driver is None:
        return "no NVIDIA device"
    devices = ", ".join(cuda.devices) or "no device"
    return f"{devices}; driver {cuda.driver or 'unknown'}; this version of tracejit runs on the CPU only"


def _cache(cache: Any) -> Rows:
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


def _settings(facts: Any) -> Rows:
    rows = []
    for setting in facts.settings:
        value = "the system's place" if setting.value is None else str(setting.value)
        rows.append((setting.name.replace("flush_denormals", "denormals"), f"{value} ({setting.source})"))
    return rows


def _tried(trial: Any) -> Rows:
    compiling, step, threads = trial.compiling, trial.step, trial.threads
    if compiling.error is not None:
        return [("compiling", compiling.error)]
    rows = [
        (
            "compiling",
            f"Numba imported in {compiling.numba_ms} ms, a kernel compiled in {compiling.kernel_ms} ms",
        )
    ]
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


def _summary(report: Any) -> str:
    levels = [finding.level for finding in report.findings]
    broken, slow, notes = (levels.count(level) for level in ("broken", "slow", "note"))
    if broken:
        return f"{count(broken, 'thing')} {'is' if broken == 1 else 'are'} broken."
    if slow or notes:
        slows = "slows" if slow == 1 else "slow"
        return f"It works; {count(slow, 'thing')} that {slows} it down, {count(notes, 'note')}."
    return "It works, and nothing slows it down."
