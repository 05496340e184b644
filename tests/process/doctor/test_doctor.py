# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: facts of this process, each finding provoked, the trial and its failures, and whole outputs."""

import dataclasses
import json
import logging
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from tracejit import cli, config, doctor
from tracejit.cache.inspect import Info
from tracejit.compile import numba_target, registry
from tracejit.doctor import facts, findings, trial
from tracejit.doctor.facts import Facts
from tracejit.doctor.trial import Trial

MIB = 1 << 20
BLAS = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.31", "num_threads": 4,
        "threading_layer": "pthreads", "filepath": "/numpy.libs/openblas.so"}  # fmt: skip
HEALTHY = Facts(
    versions={"tracejit": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1", "numba": "0.68.1", "llvmlite": "0.50.0",
              "Python": "3.11.7 (CPython)"},
    watched_by=[], system="Linux 6.1, x86_64", processor="A CPU @ 3 GHz", compiler_name="emeraldrapids",
    features=["avx2", "avx512f"], vector_bits=512, cpus=8, allowed=4, load=0.2, flushes=True, has_threads=True,
    blas=[BLAS], cuda_driver=None,
    cache=Info("/home/me/.cache/tracejit", "private", None, 12, 3 * MIB, 5, 9000, 1024 * MIB),
    cache_writable=True,
    settings={"backend": "cpu", "verify": False, "flush_denormals": True, "threads": 4, "cache": "private",
              "cache_dir": None, "cache_mib": 1024, "cublas_from": None, "log": "off"},
    sources={"backend": "default", "verify": "default", "flush_denormals": "default", "threads": "TRACEJIT_THREADS",
             "cache": "default", "cache_dir": "default", "cache_mib": "default",
             "cublas_from": "default", "log": "default"},
    environment={"TRACEJIT_THREADS": "4"},
)  # fmt: skip
WORKS = Trial(None, None, 3, 120.0, 2.3, 272.9)


def but(**changes) -> Facts:
    """Return healthy facts with other values; threads=(9, "OMP_NUM_THREADS") is a setting, cache__problem its field."""
    whole = HEALTHY
    for name, value in changes.items():
        if name in whole.settings:
            whole = dataclasses.replace(
                whole,
                settings=whole.settings | {name: value[0]},
                sources=whole.sources | {name: value[1]},
            )
        elif name.startswith("cache__"):
            info = dataclasses.replace(whole.cache, **{name.removeprefix("cache__"): value})
            whole = dataclasses.replace(whole, cache=info)
        else:
            whole = dataclasses.replace(whole, **{name: value})
    return whole


REBUILT = "each process imports Numba, 0.2 s, and compiles its kernels again, about 40 ms each"


def test_a_healthy_machine_has_no_findings() -> None:
    assert findings.judge(HEALTHY, WORKS) == []
    assert findings.judge(but(load=None, blas=None), WORKS) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"backend": ("python", "TRACEJIT_BACKEND")}, (
            "slow", "backend", "programs run uncompiled (TRACEJIT_BACKEND=python)",
            "a replay takes longer than the plain function", "unset TRACEJIT_BACKEND")),
        ({"verify": (True, "the program")}, (
            "slow", "verify", "each graph is checked (set by the program)", "building takes longer; replays do not",
            "unset TRACEJIT_VERIFY")),
        ({"log": ("debug", "TRACEJIT_LOG")}, (
            "slow", "log", "each replay is logged (TRACEJIT_LOG=debug)",
            "about 100 us for each call of an accelerated function", "TRACEJIT_LOG=info")),
        ({"flush_denormals": (False, "TRACEJIT_FLUSH_DENORMALS")}, (
            "note", "denormals", "numbers too small for full precision are kept (TRACEJIT_FLUSH_DENORMALS=0)",
            "a step whose gradients become that small may take several times as long",
            "unset TRACEJIT_FLUSH_DENORMALS")),
        ({"flushes": False}, (
            "note", "denormals",
            "numbers too small for full precision are kept (this kind of CPU cannot flush them to zero)",
            "a step whose gradients become that small may take several times as long",
            "scale the loss, so that gradients stay larger")),
        ({"environment": {"TRACEJIT_CAHCE": "off", "TRACEJIT_THREADS": "4"}}, (
            "note", "variable", "TRACEJIT_CAHCE is set, and no setting has that name", "the variable has no effect",
            "did you mean TRACEJIT_CACHE?")),
        ({"environment": {"TRACEJIT_Q": "1"}}, (
            "note", "variable", "TRACEJIT_Q is set, and no setting has that name", "the variable has no effect",
            "unset TRACEJIT_Q")),
        ({"has_threads": False, "threads": (9, "default")}, (
            "note", "threads-none",
            "programs run on one thread, as this system has threads of neither POSIX nor Windows",
            "launches above 40 us run in one part; large matrix products use the threads of BLAS all the same",
            "nothing; or use Linux, macOS or Windows")),
        ({"threads": (9, "OMP_NUM_THREADS")}, (
            "slow", "threads-many", "9 threads (OMP_NUM_THREADS) share 4 CPUs",
            "threads wait for each other in each large launch", "TRACEJIT_THREADS=4, or leave it unset")),
        ({"threads": (1, "OMP_NUM_THREADS")}, (
            "note", "threads-few", "tracejit uses 1 of 4 CPUs (OMP_NUM_THREADS=1)",
            "launches above 40 us could run in more parts", "TRACEJIT_THREADS=4, if nothing else needs the CPUs")),
        ({"load": 6.5, "blas": []}, (
            "slow", "busy", "6.5 processes wanted to run in the last minute, on 8 CPUs",
            "steps take longer, and times measured now mean little",
            "wait for the other processes, or give each process its own CPUs (taskset, TRACEJIT_THREADS)")),
        ({"blas": [BLAS, BLAS | {"num_threads": 8}]}, (
            "slow", "blas-threads", "BLAS uses 8 threads on 4 CPUs", "its threads take turns, and spin while they wait",
            "OPENBLAS_NUM_THREADS=4 (MKL_NUM_THREADS for MKL)")),
        ({"versions": HEALTHY.versions | {"scipy": None}}, (
            "broken", "packages", "not installed: scipy", "no large matrix product can be compiled",
            "pip install scipy")),
        ({"cache__setting": "off"}, (
            "note", "cache-off", "the cache on disk is off (TRACEJIT_CACHE=off)", REBUILT, "unset TRACEJIT_CACHE")),
        ({"cache__problem": "the folder /x is a link"}, (
            "broken", "cache-refused", "the cache on disk is not used: the folder /x is a link", REBUILT,
            "set TRACEJIT_CACHE_DIR to a folder of your own, or repair this one (chmod 700)")),
        ({"cache_writable": False}, (
            "slow", "cache-read-only", "the cache folder /home/me/.cache/tracejit cannot be written", REBUILT,
            "set TRACEJIT_CACHE_DIR to a folder that you may write to")),
        ({"watched_by": ["sys.settrace", "tracemalloc"]}, (
            "slow", "watched", "each line or call of Python is watched by sys.settrace, tracemalloc",
            "a small step takes about three times as long, a recording even more",
            "measure without debugger, profiler and coverage")),
    ],
)  # fmt: skip
def test_findings_from_facts(changes, finding) -> None:
    assert [dataclasses.astuple(each) for each in findings.judge(but(**changes), WORKS)] == [finding]


@pytest.mark.parametrize(
    ("tried", "changes", "finding"),
    [
        (Trial("TypeError: no such pass"), {}, (
            "step", "a small training step cannot be compiled and replayed: TypeError: no such pass",
            "accelerated functions fail at their third call; TRACEJIT_BACKEND=python runs them, slowly",
            "pip install --upgrade tracejit numba (installed: Numba 0.68.1, llvmlite 0.50.0); if that does not help, "
            "report it with this output")),
        (Trial("TypeError: x"), {"environment": {"NUMBA_DISABLE_JIT": "1"}}, (
            "step", "a small training step cannot be compiled and replayed: TypeError: x",
            "accelerated functions fail at their third call; TRACEJIT_BACKEND=python runs them, slowly",
            "unset NUMBA_DISABLE_JIT; then pip install --upgrade tracejit numba (installed: Numba 0.68.1, llvmlite "
            "0.50.0); if that does not help, report it with this output")),
        (Trial("ModuleNotFoundError: x"), {"versions": HEALTHY.versions | {"numba": None, "llvmlite": None}}, (
            "packages", "not installed: numba, llvmlite", "no kernel can be compiled", "pip install numba llvmlite")),
        (dataclasses.replace(WORKS, difference="output[0] is 1.0, expected 2.0"), {}, (
            "results",
            "a small training step has a different result when it is replayed: output[0] is 1.0, expected 2.0",
            "results may be wrong", "do not use tracejit on this machine; report it with this output")),
    ],
)  # fmt: skip
def test_findings_from_the_trial(tried, changes, finding) -> None:
    judged = findings.judge(but(**changes), tried)
    assert [dataclasses.astuple(each) for each in judged] == [("broken", *finding)]


def test_blas_threads_spin_on_a_busy_machine() -> None:
    def names(**changes) -> list[str]:
        return [finding.name for finding in findings.judge(but(load=7.0, **changes), WORKS)]

    assert names() == ["busy", "blas-spinning"]
    assert names(blas=[BLAS | {"num_threads": 1}]) == ["busy"]
    assert names(blas=[BLAS | {"threading_layer": "openmp"}]) == ["busy"]
    assert names(blas=None) == ["busy"]


def test_the_worst_finding_comes_first() -> None:
    judged = findings.judge(but(flushes=False, load=7.0, blas=[], cache__problem="no"), WORKS)
    assert [finding.name for finding in judged] == ["cache-refused", "busy", "denormals"]


def test_facts_of_this_process(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "no" / "cache"))
    monkeypatch.setenv("NUMBA_OPT", "3")
    monkeypatch.setenv("HOMELY", "1")
    found = facts.gather()
    assert found.versions["numpy"] == np.__version__ and facts.version_of("no-such-package") is None
    assert found.processor and found.compiler_name and found.vector_bits in (128, 256, 512)
    assert 1 <= found.allowed <= found.cpus == os.cpu_count()
    assert found.cache_writable and found.cache.folder == str(tmp_path / "no" / "cache")
    assert found.environment["NUMBA_OPT"] == "3" and "HOMELY" not in found.environment
    assert found.settings == dataclasses.asdict(config.settings)
    assert any("scipy" in library["filepath"] for library in found.blas)


def test_facts_without_optional_packages(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert facts.blas() is None
    monkeypatch.setitem(sys.modules, "tracejit.compile.objects", None)
    monkeypatch.delattr("tracejit.compile.objects", raising=False)
    assert facts.compiler_target() == (None, [])


@pytest.mark.parametrize(
    "text",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 1\n",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n",
    ],
)
def test_the_version_of_the_cuda_driver(tmp_path, text) -> None:
    (tmp_path / "version").write_text(text)
    assert facts.cuda_driver(str(tmp_path / "version")) == "570.86.15"
    assert facts.cuda_driver(str(tmp_path / "none")) is None


def test_settings_and_their_sources(monkeypatch) -> None:
    environment = {
        "TRACEJIT_THREADS": "3",
        "TRACEJIT_CACHE_MIB": "7",
        "OMP_NUM_THREADS": "5",
        "HOME": "/home/me",
    }
    monkeypatch.setattr(config, "settings", config.from_environment(environment))
    config.settings.verify = True
    values, sources = facts.settings(environment)
    assert {name: (values[name], source) for name, source in sources.items()} == {
        "backend": ("cpu", "default"), "verify": (True, "the program"), "flush_denormals": (True, "default"),
        "threads": (3, "TRACEJIT_THREADS"), "cache": ("private", "default"), "cache_dir": (None, "default"),
        "cache_mib": (7, "TRACEJIT_CACHE_MIB"), "log": ("off", "default"),
        "write_arguments": (True, "default"), "precision": ("default", "default"), "cublas_from": (None, "default"),
    }  # fmt: skip


@pytest.mark.parametrize(("value", "source"), [("5", "OMP_NUM_THREADS"), ("4,2", "default")])
def test_threads_from_the_variable_of_other_libraries(value, source, monkeypatch) -> None:
    environment = {"OMP_NUM_THREADS": value}
    monkeypatch.setattr(config, "settings", config.from_environment(environment))
    assert facts.settings(environment)[1]["threads"] == source


def test_watchers() -> None:
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    tracemalloc.start()
    try:
        watchers = facts.watchers()
    finally:
        tracemalloc.stop()
        sys.setprofile(before)
    assert watchers[-1] == "tracemalloc" and "sys.setprofile" in watchers


def test_the_trial_works_here(tmp_path, monkeypatch, caplog) -> None:
    caplog.set_level(logging.DEBUG, logger="tracejit")
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    before = dataclasses.asdict(config.settings)
    tried = trial.attempt()
    assert dataclasses.asdict(config.settings) == before
    assert not (tmp_path / "cache").exists()
    assert (tried.error, tried.difference) == (None, None)
    assert tried.replay_us > 0 and tried.uncompiled_us > 0
    assert caplog.records == [] and not logging.getLogger("tracejit").disabled


def test_a_trial_whose_compiler_fails(monkeypatch) -> None:
    def fail(*_):
        raise TypeError("compile_extra() missing 1 argument\nand more lines")

    monkeypatch.setattr(numba_target, "lower_function", fail)
    monkeypatch.setattr(registry.registry, "_kernels", {})
    assert trial.attempt() == Trial("TypeError: compile_extra() missing 1 argument")


def test_a_trial_that_fails_without_a_message(monkeypatch) -> None:
    def fail(*_):
        raise ValueError

    monkeypatch.setattr(trial, "dlfeval", fail)
    assert trial.attempt() == Trial("ValueError: no message")


def test_a_trial_that_is_not_replayed(monkeypatch) -> None:
    noise = iter(np.random.default_rng(0).normal(size=20).tolist())
    monkeypatch.setattr(trial, "tanh", lambda x: x * next(noise))
    with pytest.warns(match="runs uncompiled for these arguments"):
        error = trial.attempt().error
    assert error.startswith("it is not replayed: ") and "not accelerated for w: 16x8 float32" in error


def test_a_trial_whose_results_differ(monkeypatch) -> None:
    monkeypatch.setattr(trial, "first_difference", lambda result, expected, tolerance: f"{tolerance}")
    assert trial.attempt().difference == "0.0001"


TEXT = """\
versions
  tracejit        0.1.0
  numpy           2.4.6
  scipy           1.17.1
  numba           0.68.1
  llvmlite        0.50.0
  Python          3.11.7 (CPython)
machine
  system          Linux 6.1, x86_64
  CPU             A CPU @ 3 GHz (emeraldrapids)
  features        avx2 avx512f
  vectors         512 bits
  CPUs            8, 4 for this process; load 0.2
  BLAS            openblas 0.3.31, 4 threads (pthreads), /numpy.libs/openblas.so
  CUDA            no NVIDIA driver; the CPU is used
cache
  folder          /home/me/.cache/tracejit
  used            yes
  kernels         12, 3.0 MiB of 1.0 GiB
  programs        5
settings
  backend         cpu (default)
  verify          0 (default)
  flush_denormals 1 (default)
  threads         4 (TRACEJIT_THREADS)
  cache           private (default)
  cache_dir       the system's cache folder (default)
  cache_mib       1024 (default)
  cublas_from     off (default)
  log             off (default)
trial
  training step   3 kernels compiled in 120.0 ms
  replay          2.3 us; the plain function takes 272.9 us
  result          as the plain function's

It works, and nothing slows it down.
"""


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs the command with given facts and trial: its exit code, output and errors."""

    def command(gathered, tried, *options):
        monkeypatch.setattr(doctor, "gather", lambda: gathered)
        monkeypatch.setattr(doctor, "attempt", lambda: tried)
        code = cli.main(["doctor", *options])
        return code, *capsys.readouterr()

    return command


def test_the_output_for_a_healthy_machine(run) -> None:
    assert run(HEALTHY, WORKS) == (0, TEXT, "")


def test_the_output_with_findings(run) -> None:
    code, out, err = run(but(threads=(6, "OMP_NUM_THREADS"), flushes=False), WORKS)
    assert (code, err) == (0, "")
    assert out.partition("as the plain function's\n")[2] == (
        "\nslow: 6 threads (OMP_NUM_THREADS) share 4 CPUs\n"
        "  costs: threads wait for each other in each large launch\n"
        "  do: TRACEJIT_THREADS=4, or leave it unset\n\n"
        "note: numbers too small for full precision are kept (this kind of CPU cannot flush them to zero)\n"
        "  costs: a step whose gradients become that small may take several times as long\n"
        "  do: scale the loss, so that gradients stay larger\n\n"
        "It works; 1 finding that slows it down, 1 note.\n"
    )


def test_the_output_where_nothing_works(run) -> None:
    gathered = but(
        versions=HEALTHY.versions | {"numba": None}, cache__problem="the folder /x is a link", compiler_name=None,
        features=[], load=None, cuda_driver="570.1", blas=None,
    )  # fmt: skip
    code, out, err = run(gathered, Trial("ModuleNotFoundError: No module named 'numba'"))
    assert (code, err) == (1, "")
    for line in (
        "  numba           not installed",
        "  CPU             A CPU @ 3 GHz",
        "  features        unknown",
        "  CPUs            8, 4 for this process",
        '  BLAS            unknown; pip install "tracejit[cli]" to see it',
        "  CUDA            driver 570.1; the CPU is used",
        "  used            no: the folder /x is a link",
        "  training step   failed: ModuleNotFoundError: No module named 'numba'",
        "Broken: 2 findings.",
    ):
        assert line in out.splitlines(), line


def test_the_output_of_settings_and_results_that_differ(run) -> None:
    tried = dataclasses.replace(WORKS, difference="output is 1")
    code, out, _ = run(but(verify=(True, "the program"), cache__setting="off", blas=[]), tried)
    assert code == 1
    for line in (
        "  verify          1 (the program)",
        "  used            no: TRACEJIT_CACHE=off",
        "  BLAS            none",
        "  result          output is 1",
    ):
        assert line in out.splitlines(), line


def test_the_output_as_json(run) -> None:
    code, out, err = run(but(flushes=False), WORKS, "--json")
    assert (code, err) == (0, "")
    printed = json.loads(out)
    assert (printed["schema"], printed["command"]) == (1, "doctor")
    report = doctor.Report(but(flushes=False), WORKS, findings.judge(but(flushes=False), WORKS))
    assert printed["result"] == json.loads(json.dumps(dataclasses.asdict(report)))


def test_the_command_on_this_machine(tmp_path) -> None:
    environment = os.environ | {"TRACEJIT_CACHE_DIR": str(tmp_path / "cache"), "TRACEJIT_LOG": "debug"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tracejit", "doctor", "--json"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)["result"]
    assert (result["trial"]["error"], result["trial"]["difference"]) == (None, None)
    assert result["trial"]["compiled"] > 0
    assert "log" in [finding["name"] for finding in result["findings"]]
    assert not (tmp_path / "cache").exists()


def test_a_cache_folder_that_is_refused(tmp_path, monkeypatch, run) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    code, out, _ = run(facts.gather(), WORKS)
    assert code == 1
    assert (
        f"broken: the cache on disk is not used: other users may write to the folder {tmp_path}/cache (mode 777)"
        in out
    )
