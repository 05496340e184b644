# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: facts from a faked system, each finding provoked, what is tried, and whole outputs."""

import dataclasses
import json
import logging
import os
import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from tracejit import cli, config, doctor
from tracejit.cache.inspect import Info
from tracejit.compile import numba_target, registry
from tracejit.doctor import facts, findings, trial
from tracejit.doctor.facts import Blas, CacheFolder, Cuda, Facts, Interpreter, Machine, Setting
from tracejit.doctor.system import System
from tracejit.doctor.trial import Compiling, Step, Threads, Trial
from tracejit.runtime import thread_pool

MIB = 1 << 20

HEALTHY = Facts(
    versions={"tracejit": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1", "numba": "0.68.1", "llvmlite": "0.50.0"},
    python=Interpreter("3.11.7 (CPython)", False, False, []),
    machine=Machine(
        "Linux 6.1, x86_64", "A CPU @ 3 GHz", "emeraldrapids", ["avx2", "avx512f"], 512, 8, 4, None, 0.2, None, True
    ),
    blas=[
        Blas("NumPy", "scipy-openblas", "0.3.31", "/numpy.libs/openblas.so", 4, "threads that spin"),
        Blas("SciPy", "mkl", "2025.1", "/lib/libmkl_rt.so", 4, "OpenMP"),
    ],
    cuda=Cuda(None, []),
    cache=CacheFolder(
        Info("/home/me/.cache/tracejit", "private", None, 12, 3 * MIB, 5, 9000, 1024 * MIB),
        True, "me", "700", "ext4", 1 << 36, True, [],
    ),
    settings=[
        Setting("backend", "cpu", "default"),
        Setting("verify", False, "default"),
        Setting("flush_denormals", True, "default"),
        Setting("threads", 4, "TRACEJIT_THREADS"),
        Setting("cache", "private", "default"),
        Setting("cache_dir", None, "default"),
        Setting("cache_mib", 1024, "default"),
        Setting("log", "off", "default"),
    ],
    environment={"TRACEJIT_THREADS": "4"},
)  # fmt: skip
WORKS = Trial(
    Compiling(None, 172.1, 45.0),
    Step(None, 0.8, 1.6, 120.0, 0.7, 2.3, 272.9, 3, 3, None),
    Threads(4, None, 3.2, 3.9),
)


def but(whole, **changes):
    """Return facts with other values: machine__load=3.0, setting__log=("debug", "TRACEJIT_LOG")."""
    for name, value in changes.items():
        part, _, inner = name.partition("__")
        if part == "setting" and inner:
            settings = [Setting(inner, *value) if each.name == inner else each for each in whole.settings]
            whole = dataclasses.replace(whole, settings=settings)
        else:
            value = but(getattr(whole, part), **{inner: value}) if inner else value
            whole = dataclasses.replace(whole, **{part: value})
    return whole


class TestFindings:
    def test_a_healthy_machine_has_none(self):
        assert findings.judge(HEALTHY, WORKS) == []

    @pytest.mark.parametrize(
        ("changes", "level", "name", "found", "remedy"),
        [
            ({"setting__backend": ("python", "TRACEJIT_BACKEND")}, "slow", "backend",
             "programs run uncompiled (TRACEJIT_BACKEND=python)", "unset TRACEJIT_BACKEND"),
            ({"setting__verify": (True, "the program")}, "slow", "verify",
             "each graph is checked (set by the program)", "unset TRACEJIT_VERIFY"),
            ({"setting__log": ("debug", "TRACEJIT_LOG")}, "slow", "log",
             "each replay is logged (TRACEJIT_LOG=debug)", "TRACEJIT_LOG=info"),
            ({"setting__flush_denormals": (False, "TRACEJIT_FLUSH_DENORMALS")}, "note", "denormals",
             "numbers too small for full precision are kept (TRACEJIT_FLUSH_DENORMALS=0)",
             "unset TRACEJIT_FLUSH_DENORMALS"),
            ({"environment": {"TRACEJIT_CAHCE": "off", "TRACEJIT_THREADS": "4"}}, "note", "variable",
             "TRACEJIT_CAHCE is set, and no setting has that name", "did you mean TRACEJIT_CACHE?"),
            ({"environment": {"TRACEJIT_Q": "1"}}, "note", "variable",
             "TRACEJIT_Q is set, and no setting has that name", "unset TRACEJIT_Q"),
            ({"machine__flushes": False}, "note", "denormals",
             "numbers too small for full precision are kept (tracejit cannot flush them on this kind of CPU)",
             "scale the loss, so that gradients stay larger"),
            ({"machine__quota": 1.5, "blas": []}, "slow", "quota",
             "4 threads share the time of 1.5 CPUs, which is what the group (cgroup) of this process gets",
             "TRACEJIT_THREADS=1, or allow the group more"),
            ({"setting__threads": (9, "OMP_NUM_THREADS")}, "slow", "threads-many",
             "9 threads (OMP_NUM_THREADS) run on 4 CPUs", "TRACEJIT_THREADS=4, or leave it unset"),
            ({"setting__threads": (1, "OMP_NUM_THREADS")}, "note", "threads-few",
             "1 of 4 CPUs are used (OMP_NUM_THREADS=1)", "TRACEJIT_THREADS=4, if nothing else needs the CPUs"),
            ({"machine__load": 6.5, "blas": []}, "slow", "busy",
             "6.5 processes wanted to run in the last minute, on 8 CPUs",
             "wait until others are done, or give each process CPUs of its own (taskset, TRACEJIT_THREADS)"),
            ({"machine__governor": "powersave"}, "note", "governor",
             "the CPU's clock is set to save power (scaling_governor is powersave)",
             "cpupower frequency-set -g performance, if you may"),
            ({"blas": [dataclasses.replace(HEALTHY.blas[1], threads=8)]}, "slow", "blas-threads",
             "the BLAS of SciPy uses 8 threads on 4 CPUs", "OPENBLAS_NUM_THREADS=4 (MKL_NUM_THREADS for MKL)"),
            ({"versions": HEALTHY.versions | {"scipy": None}}, "broken", "packages", "scipy cannot be found",
             "pip install scipy"),
            ({"cache__info__setting": "off"}, "note", "cache-off", "nothing is kept on disk (TRACEJIT_CACHE=off)",
             "unset TRACEJIT_CACHE"),
            ({"cache__info__problem": "the folder /x is a link"}, "broken", "cache-refused",
             "the cache is not used: the folder /x is a link",
             "set TRACEJIT_CACHE_DIR to a folder of your own, or mend this one (chmod 700)"),
            ({"cache__writable": False}, "slow", "cache-read-only",
             "the cache folder /home/me/.cache/tracejit cannot be written",
             "set TRACEJIT_CACHE_DIR to a folder that you may write to"),
            ({"cache__writable": False, "cache__exists": False}, "slow", "cache-read-only",
             "the cache folder /home/me/.cache/tracejit does not exist, and cannot be made",
             "set TRACEJIT_CACHE_DIR to a folder that you may write to"),
            ({"cache__free_bytes": 7 * MIB}, "slow", "disk-full", "the disk of the cache has 7 MiB left",
             "make room, or set TRACEJIT_CACHE_DIR to another disk"),
            ({"cache__filesystem": "nfs4"}, "slow", "cache-network", "the cache is on a network disk (nfs4)",
             "set TRACEJIT_CACHE_DIR to a local disk; tracejit makes what it needs there"),
            ({"cache__damaged": ["its hash is wrong", "cut off"]}, "note", "cache-damaged",
             "2 entries of the cache cannot be used; the first: its hash is wrong", "tracejit cache verify names all"),
            ({"cache__info__kernel_bytes": 1000 * MIB}, "note", "cache-full", "the cache holds 1000 of 1024 MiB",
             "TRACEJIT_CACHE_MIB=2048"),
            ({"python__watched_by": ["sys.settrace (builtins.function)", "tracemalloc"]}, "slow", "watched",
             "each line or call of Python is watched by sys.settrace (builtins.function), tracemalloc",
             "measure without the debugger, profiler or coverage"),
            ({"python__debug_build": True}, "slow", "debug-build", "this Python is a debug build",
             "use a release build to measure"),
            ({"python__developer_mode": True}, "slow", "developer-mode",
             "Python runs in its development mode (-X dev, PYTHONDEVMODE)", "measure without it"),
        ],
    )  # fmt: skip
    def test_of_facts(self, changes, level, name, found, remedy):
        (finding,) = findings.judge(but(HEALTHY, **changes), WORKS)
        assert (finding.level, finding.name, finding.found, finding.remedy) == (level, name, found, remedy)
        assert finding.cost

    @pytest.mark.parametrize(
        ("changes", "level", "name", "found", "remedy"),
        [
            ({"compiling": Compiling("TypeError: no such pass"), "step": None, "threads": None}, "broken", "compiler",
             "a small kernel cannot be compiled: TypeError: no such pass",
             "pip install --upgrade tracejit numba (here: Numba 0.68.1, llvmlite 0.50.0); if that does not help, "
             "report it"),
            ({"compiling__kernel_ms": 2345.6}, "slow", "compiler-slow",
             "compiling a small kernel took 2346 ms, usually 20 to 100",
             "see what keeps the CPUs busy, and whether the packages lie on a network disk"),
            ({"step": Step("CodegenError: no")}, "broken", "step", "a small step cannot be replayed: CodegenError: no",
             "report it, with what this command prints"),
            ({"step__difference": "output[0] is 1.0, expected 2.0"}, "broken", "results",
             "a small step gives something else compiled than uncompiled: output[0] is 1.0, expected 2.0",
             "do not use it here; report it, with what this command prints"),
            ({"step__kept": 0}, "slow", "not-kept", "of 3 kernels, 0 could be loaded again from a cache folder",
             "see whether tracejit's source files are installed beside it and temporary folders are your own"),
            ({"threads": Threads(4, "RuntimeError: can't start new thread")}, "slow", "pool",
             "the threads that run parts of launches cannot be started: RuntimeError: can't start new thread",
             "TRACEJIT_THREADS=1"),
            ({"threads__speedup": 1.1}, "slow", "pool-slow", "4 threads are 1.1 times as fast as one",
             "see what keeps the CPUs busy; or TRACEJIT_THREADS=1, which leaves them to others"),
            ({"threads__round_trip_us": 80.2}, "slow", "pool-late",
             "a launch in parts that does nothing takes 80 us, usually less than 5",
             "see what keeps the CPUs busy; or TRACEJIT_THREADS=1"),
        ],
    )  # fmt: skip
    def test_of_what_was_tried(self, changes, level, name, found, remedy):
        (finding,) = findings.judge(HEALTHY, but(WORKS, **changes))
        assert (finding.level, finding.name, finding.found, finding.remedy) == (level, name, found, remedy)
        assert finding.cost

    def names(self, **changes):
        return [finding.name for finding in findings.judge(but(HEALTHY, **changes), WORKS)]

    def test_a_busy_machine(self):
        assert self.names(machine__load=7.0) == ["busy", "blas-spinning"]
        assert self.names(machine__load=7.0, environment={"OMP_WAIT_POLICY": "ACTIVE"}) == [
            "busy", "blas-spinning", "omp-active",
        ]  # fmt: skip
        one = [dataclasses.replace(HEALTHY.blas[0], threads=1)]
        assert self.names(machine__load=7.0, blas=one) == ["busy"]
        assert self.names(machine__load=None) == []

    def test_what_a_quota_leaves(self):
        assert self.names(machine__quota=4.0) == self.names(machine__quota=16.0) == []
        assert self.names(machine__quota=2.0) == ["quota", "blas-threads"]
        assert self.names(machine__quota=2.0, setting__threads=(2, "TRACEJIT_THREADS"), blas=[]) == [
            "threads-few"
        ]
        slow = but(WORKS, threads__speedup=1.5)
        fewer = but(HEALTHY, machine__quota=2.0, blas=[])
        assert [finding.name for finding in findings.judge(fewer, slow)] == ["quota"]

    def test_the_worst_first(self):
        found = self.names(
            machine__governor="powersave", machine__load=7.0, blas=[], cache__info__problem="no"
        )
        assert found == ["cache-refused", "busy", "governor"]

    def test_variables_that_may_be_why_nothing_compiles(self):
        (finding,) = findings.judge(
            but(HEALTHY, environment={"NUMBA_DISABLE_JIT": "1"}), Trial(Compiling("TypeError: x"), None, None)
        )
        assert finding.remedy.startswith("unset NUMBA_DISABLE_JIT; then pip install")

    def test_without_numba(self):
        broken = but(HEALTHY, versions=HEALTHY.versions | {"numba": None, "llvmlite": None})
        (finding,) = findings.judge(broken, Trial(Compiling("ModuleNotFoundError: no numba"), None, None))
        assert (finding.found, finding.cost, finding.remedy) == (
            "numba and llvmlite cannot be found", "nothing can be compiled", "pip install numba llvmlite",
        )  # fmt: skip


class Faked(System):
    """A system whose files are given; what is not given is not there."""

    def __init__(
        self,
        files=(),
        environment=(),
        cpus=8,
        allowed=4,
        load=0.5,
        owners=(),
        free_bytes=1 << 36,
        writable=True,
    ):
        self.files, self.environment, self.owners = dict(files), dict(environment), dict(owners)
        self.numbers = cpus, allowed, load, free_bytes, writable

    def read(self, path):
        return self.files.get(path)

    def names(self, folder):
        found = {
            path.removeprefix(folder + "/").partition("/")[0]
            for path in self.files
            if path.startswith(folder + "/")
        }
        return sorted(found)

    def cpus(self):
        return self.numbers[0]

    def allowed(self):
        return self.numbers[1]

    def load(self):
        return self.numbers[2]

    def free_bytes(self, folder):
        return self.numbers[3]

    def owner(self, path):
        return self.owners.get(path)

    def writable(self, folder):
        return self.numbers[4]


class TestFacts:
    @pytest.mark.parametrize(
        ("files", "quota"),
        [
            ({}, None),
            ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
            ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
            ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
              "/sys/fs/cgroup/a/cpu.max": "200000 100000\n"}, 2.0),
            ({"/proc/self/cgroup": "3:cpu,cpuacct:/docker/1\n2:memory:/docker/1\n",
              "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
              "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 0.5),
            ({"/proc/self/cgroup": "3:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
              "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
            ({"/proc/self/cgroup": "0::/\nnonsense\n", "/sys/fs/cgroup/cpu.max": "1 0\n"}, None),
        ],
    )  # fmt: skip
    def test_quota(self, files, quota):
        assert facts.quota(Faked(files)) == quota

    def test_machine(self):
        found = facts.machine(Faked({
            "/proc/cpuinfo": "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\n",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        }))  # fmt: skip
        assert (found.processor, found.governor, found.cpus, found.allowed, found.load, found.quota) == (
            "A CPU @ 3 GHz", "powersave", 8, 4, 0.5, None,
        )  # fmt: skip
        assert found.compiler_name and found.vector_bits in (128, 256, 512)
        assert facts.machine(Faked()).governor is None and facts.machine(Faked()).processor

    def test_without_llvmlite(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tracejit.compile.objects", None)
        monkeypatch.delattr("tracejit.compile.objects", raising=False)
        found = facts.machine(Faked())
        assert (found.compiler_name, found.features) == (None, [])

    def test_cuda(self):
        files = {
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 1\n",
            "/proc/driver/nvidia/gpus/0000:1b:00.0/information": "Model: \t\t NVIDIA H200\nIRQ:  1\n",
            "/proc/driver/nvidia/gpus/0000:2b:00.0/information": "Model: \t\t NVIDIA H200\n",
        }
        assert facts.cuda(Faked(files)) == Cuda("570.86.15", ["NVIDIA H200", "NVIDIA H200"])
        open_module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1  Release Build\n"
        assert facts.cuda(Faked({"/proc/driver/nvidia/version": open_module})) == Cuda("580.1", [])
        assert facts.cuda(Faked()) == Cuda(None, [])

    @pytest.mark.parametrize(
        ("path", "kind"), [("/", "ext4"), ("/home/me", "nfs4"), ("/home/me2", "ext4"), ("/mnt/a b/c", "xfs")]
    )
    def test_filesystem(self, path, kind):
        mounts = (
            "none\n/dev/1 / ext4 rw 0 0\nserver:/me /home/me nfs4 rw 0 0\n/dev/2 /mnt/a\\040b xfs rw 0 0\n"
        )
        assert facts.filesystem(Faked({"/proc/self/mounts": mounts}), path) == kind
        assert facts.filesystem(Faked(), path) is None

    def test_cache_folder(self, monkeypatch, tmp_path):
        root = str(tmp_path / "no" / "cache")
        monkeypatch.setattr(config.settings, "cache_dir", root)
        there = Faked(owners={root: ("me", 0o700)})
        found = facts.cache_folder(there)
        assert (found.exists, found.owner, found.mode, found.free_bytes, found.writable) == (
            True,
            "me",
            "700",
            1 << 36,
            True,
        )
        (tmp_path / "no" / "cache" / "kernels").mkdir(0o700, parents=True)
        (tmp_path / "no" / "cache").chmod(0o700)
        (tmp_path / "no" / "cache" / "kernels" / f"{'0' * 64}.kernel").write_text("no entry")
        (reason,) = facts.cache_folder(there).damaged
        assert reason
        monkeypatch.setattr(facts, "_MOST_CHECKED", 3)
        assert facts.cache_folder(there).damaged is None
        shutil.rmtree(root)
        found = facts.cache_folder(Faked(owners={str(tmp_path): ("root", 0o755)}, writable=False))
        assert (found.exists, found.owner, found.mode, found.writable) == (False, None, None, False)
        assert found.info.folder == root and found.info.kernels == 0

    def test_settings_and_where_they_come_from(self, monkeypatch):
        environment = {
            "TRACEJIT_THREADS": "3",
            "TRACEJIT_CACHE_MIB": "7",
            "OMP_NUM_THREADS": "5",
            "HOME": "/home/me",
        }
        monkeypatch.setattr(config, "settings", config.from_environment(environment))
        config.settings.verify = True
        found = {
            each.name: (each.value, each.source) for each in facts.settings(Faked(environment=environment))
        }
        assert found == {
            "backend": ("cpu", "default"), "verify": (True, "the program"), "flush_denormals": (True, "default"),
            "threads": (3, "TRACEJIT_THREADS"), "cache": ("private", "default"), "cache_dir": (None, "default"),
            "cache_mib": (7, "TRACEJIT_CACHE_MIB"), "log": ("off", "default"),
        }  # fmt: skip

    @pytest.mark.parametrize(("value", "source"), [("5", "OMP_NUM_THREADS"), ("4,2", "default")])
    def test_threads_of_other_libraries(self, value, source, monkeypatch):
        environment = {"OMP_NUM_THREADS": value}
        monkeypatch.setattr(config, "settings", config.from_environment(environment))
        (found,) = (each for each in facts.settings(Faked(environment=environment)) if each.name == "threads")
        assert found.source == source

    def test_each_setting_has_its_variables(self):
        assert facts.VARIABLES.keys() == {each.name for each in dataclasses.fields(config.Settings)}

    def test_blas(self):
        numpys, scipys = facts.blas(System())
        assert (numpys.package, scipys.package) == ("NumPy", "SciPy")
        assert numpys.name == np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
        if "openblas" in scipys.name:
            assert scipys.threads and "scipy" in scipys.library and scipys.layer
        nothing = facts.blas(Faked())
        assert [(blas.library, blas.threads, blas.layer) for blas in nothing] == [(None, None, None)] * 2
        no_library = Faked(
            {"/proc/self/maps": "1-2 r-xp 0 0:0 1   /nowhere/libopenblas.so\n1-2 r-xp 0 0:0 0\n"}
        )
        assert [(blas.library, blas.threads) for blas in facts.blas(no_library)] == [
            ("/nowhere/libopenblas.so", None)
        ] * 2

    def test_without_scipy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "scipy", None)
        assert [blas.package for blas in facts.blas(Faked())] == ["NumPy"]

    def test_who_watches(self):
        before = sys.getprofile()
        sys.setprofile(lambda *_: None)
        tracemalloc.start()
        try:
            found = facts.interpreter()
        finally:
            tracemalloc.stop()
            sys.setprofile(before)
        assert found.watched_by[-2:] == ["sys.setprofile (builtins.function)", "tracemalloc"]
        assert found.version.endswith("(CPython)") or "(" in found.version

    def test_a_package_that_is_missing(self):
        assert facts.version_of("no-such-package") is None

    def test_of_the_environment(self):
        found = facts.gather(
            Faked(environment={"NUMBA_OPT": "0", "OMP_WAIT_POLICY": "active", "HOME": "/home/me"})
        )
        assert found.environment == {"NUMBA_OPT": "0", "OMP_WAIT_POLICY": "active"}


class TestSystem:
    def test_what_it_tells(self, tmp_path):
        system = System()
        (tmp_path / "file").write_text("text")
        assert system.read(str(tmp_path / "file")) == "text" and system.names(str(tmp_path)) == ["file"]
        assert system.read(str(tmp_path / "none")) is None and system.names(str(tmp_path / "none")) == []
        assert system.free_bytes(str(tmp_path)) > 0 and system.free_bytes(str(tmp_path / "none")) is None
        tmp_path.chmod(0o700)
        name, mode = system.owner(str(tmp_path))
        assert mode == 0o700 and name
        assert system.owner(str(tmp_path / "none")) is None
        assert system.writable(str(tmp_path)) and not system.writable(str(tmp_path / "none"))
        assert 1 <= system.allowed() <= system.cpus() == os.cpu_count()
        assert system.load() >= 0

    def test_a_user_without_a_name(self):
        assert doctor.system._name(123_456_789) == "123456789"


class TestTrial:
    def test_it_works_here(self, tmp_path, monkeypatch):
        monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
        monkeypatch.setattr(config.settings, "threads", 2)
        before = dataclasses.asdict(config.settings)
        found = trial.attempt(but(HEALTHY, setting__threads=(2, "default")))
        assert dataclasses.asdict(config.settings) == before
        assert not (tmp_path / "cache").exists()
        assert found.compiling.error is None and found.compiling.kernel_ms > 0
        step = found.step
        assert (step.error, step.difference) == (None, None)
        assert step.kept == step.kernels > 0
        assert step.replay_us > 0 and step.uncompiled_us > 0
        assert (found.threads.error, found.threads.threads) == (None, 2)
        assert found.threads.round_trip_us > 0 and found.threads.speedup > 0

    def test_it_is_not_logged(self, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG, logger="tracejit")
        monkeypatch.setattr(config.settings, "threads", 1)
        assert trial.attempt(but(HEALTHY, setting__threads=(1, "default"))).step.error is None
        assert caplog.records == []
        assert not logging.getLogger("tracejit").disabled

    def test_on_one_thread(self, monkeypatch):
        monkeypatch.setattr(thread_pool, "_pool", None)
        monkeypatch.setattr(config.settings, "threads", 1)
        assert trial.attempt(but(HEALTHY, setting__threads=(1, "default"))).threads == Threads(1)

    def test_a_compiler_that_fails(self, monkeypatch):
        def fail(*_):
            raise TypeError("compile_extra() missing 1 argument\nand more lines")

        monkeypatch.setattr(numba_target, "_lowered", fail)
        found = trial.attempt(HEALTHY)
        assert found == Trial(Compiling("TypeError: compile_extra() missing 1 argument"), None, None)

    def test_a_kernel_that_computes_something_else(self, monkeypatch):
        monkeypatch.setattr(
            trial, "_kernel", lambda body, made=trial._kernel: made(body.replace("1.5", "2.5"))
        )
        assert (
            trial.attempt(HEALTHY).compiling.error == "ArithmeticError: a kernel that stores 1.5 stored 2.5"
        )

    def test_a_step_that_fails(self, monkeypatch):
        def fail(*_):
            raise ValueError

        monkeypatch.setattr(trial, "dlfeval", fail)
        assert trial.attempt(HEALTHY).step == Step("ValueError: no message")

    def test_a_step_that_is_not_replayed(self, monkeypatch):
        monkeypatch.setattr(trial, "tanh", lambda x: x * np.random.rand())
        with pytest.warns(match="runs uncompiled for these arguments"):
            step = trial.attempt(HEALTHY).step
        assert (
            step.error.startswith("it was not replayed: ")
            and "not accelerated for w: 16x8 float32" in step.error
        )

    def test_results_that_differ(self, monkeypatch):
        monkeypatch.setattr(trial, "first_difference", lambda found, expected, tolerance: f"{tolerance}")
        assert trial.attempt(HEALTHY).step.difference == "0.0001"

    def test_kernels_that_are_not_kept(self, monkeypatch):
        monkeypatch.setattr("tracejit.compile.key.key_of", lambda *_: None)
        monkeypatch.setattr(registry, "key_of", lambda *_: None)
        step = trial.attempt(HEALTHY).step
        assert (step.error, step.kept, step.load_ms) == (None, 0, 0.0)

    def test_threads_that_cannot_be_started(self, monkeypatch):
        def fail(*_):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(thread_pool, "_pool", None)
        monkeypatch.setattr(thread_pool, "Pool", fail)
        monkeypatch.setattr(config.settings, "threads", 2)
        found = trial.attempt(but(HEALTHY, setting__threads=(2, "default"))).threads
        assert found == Threads(2, "RuntimeError: can't start new thread")


TEXT = """\
versions
  tracejit    0.1.0
  numpy       2.4.6
  scipy       1.17.1
  numba       0.68.1
  llvmlite    0.50.0
  Python      3.11.7 (CPython)
machine
  system      Linux 6.1, x86_64
  CPU         A CPU @ 3 GHz (emeraldrapids)
  features    avx2 avx512f
  vectors     512 bits
  CPUs        8, of which this process may use 4, no limit to their time; load 0.2
BLAS
  NumPy       scipy-openblas 0.3.31, 4 threads (threads that spin)
  SciPy       mkl 2025.1, 4 threads (OpenMP)
CUDA
  no NVIDIA device
cache
  folder      /home/me/.cache/tracejit
  used        yes
  owner       me, mode 700
  kernels     12, 3.0 MiB of 1.0 GiB; all good
  programs    5
  disk        64.0 GiB free, ext4
settings
  backend     cpu (default)
  verify      0 (default)
  denormals   flushed (default)
  threads     4 (TRACEJIT_THREADS)
  cache       private (default)
  cache_dir   the system's place (default)
  cache_mib   1024 (default)
  log         off (default)
tried
  compiling   Numba imported in 172.1 ms, a kernel compiled in 45.0 ms
  step        recorded in 0.8 ms, built in 1.6 ms, 3 kernels compiled in 120.0 ms, loaded again in 0.7 ms
  replay      2.3 us, uncompiled 272.9 us
  result      as uncompiled
  threads     4, 3.9 times as fast as one; there and back in 3.2 us

It works, and nothing slows it down.
"""


class TestCommand:
    @pytest.fixture
    def run(self, capsys, monkeypatch):
        def called(found, tried, *options):
            monkeypatch.setattr(doctor, "gather", lambda system: found)
            monkeypatch.setattr(doctor, "attempt", lambda gathered: tried)
            code = cli.main(["doctor", *options])
            return code, *capsys.readouterr()

        return called

    def test_healthy(self, run):
        assert run(HEALTHY, WORKS) == (0, TEXT, "")

    def test_advice(self, run):
        code, out, err = run(
            but(HEALTHY, machine__governor="powersave", setting__threads=(6, "OMP_NUM_THREADS")), WORKS
        )
        assert (code, err) == (0, "")
        assert out.partition("there and back in 3.2 us\n")[2] == (
            "\nslow: 6 threads (OMP_NUM_THREADS) run on 4 CPUs\n"
            "  costs: threads wait for each other in each large launch\n"
            "  do: TRACEJIT_THREADS=4, or leave it unset\n\n"
            "note: the CPU's clock is set to save power (scaling_governor is powersave)\n"
            "  costs: a short step begins at a low clock\n"
            "  do: cpupower frequency-set -g performance, if you may\n\n"
            "It works; 1 thing that slows it down, 1 note.\n"
        )

    def test_settings_as_variables_have_them(self, run):
        changes = {
            "setting__flush_denormals": (False, "TRACEJIT_FLUSH_DENORMALS"), "setting__verify": (True, "the program"),
        }  # fmt: skip
        _, out, _ = run(but(HEALTHY, **changes), WORKS)
        assert "  verify      1 (the program)\n  denormals   kept (TRACEJIT_FLUSH_DENORMALS)\n" in out

    def test_broken(self, run):
        nothing = Trial(Compiling("ModuleNotFoundError: No module named 'numba'"), None, None)
        found = but(
            HEALTHY, versions=HEALTHY.versions | {"numba": None}, cache__info__problem="the folder /x is a link",
            machine__compiler_name=None, machine__features=[], machine__load=None, machine__quota=8.0,
            cuda=Cuda("570.1", []), cache__free_bytes=None, cache__filesystem=None, cache__exists=False,
            cache__damaged=["no"], blas=[Blas("NumPy", "accelerate", "?", None, None, None)],
        )  # fmt: skip
        code, out, err = run(found, nothing)
        assert (code, err) == (1, "")
        for line in (
            "  numba       not installed",
            "  CPU         A CPU @ 3 GHz",
            "  features    unknown",
            "  CPUs        8, of which this process may use 4, the time of 8 of them",
            "  NumPy       accelerate ?",
            "  no device; driver 570.1; this version of tracejit runs on the CPU only",
            "  used        no: the folder /x is a link",
            "  owner       made when something is kept",
            "  kernels     12, 3.0 MiB of 1.0 GiB; 1 damaged",
            "  disk        unknown, unknown kind",
            "  compiling   ModuleNotFoundError: No module named 'numba'",
            "2 things are broken.",
        ):
            assert line in out.splitlines(), line

    def test_what_fails_while_it_is_tried(self):
        report = doctor.Report(
            but(HEALTHY, cache__info__setting="off"),
            Trial(WORKS.compiling, Step("E: no"), Threads(4, "E: none")),
            [],
        )
        for line in ("  step        E: no", "  threads     E: none", "  used        no: TRACEJIT_CACHE=off"):
            assert line in repr(report).splitlines()
        differs = doctor.Report(HEALTHY, but(WORKS, step__difference="output is 1", threads=Threads(1)), [])
        for line in ("  result      output is 1", "  threads     one"):
            assert line in str(differs).splitlines()

    def test_as_json(self, run):
        code, out, err = run(but(HEALTHY, machine__governor="powersave"), WORKS, "--json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        assert (found["schema"], found["command"]) == (1, "doctor")
        assert found["result"] == json.loads(json.dumps(dataclasses.asdict(doctor.Report(
            but(HEALTHY, machine__governor="powersave"), WORKS,
            [findings.Finding(
                "note", "governor", "the CPU's clock is set to save power (scaling_governor is powersave)",
                "a short step begins at a low clock", "cpupower frequency-set -g performance, if you may",
            )],
        ))))  # fmt: skip
        assert found["result"]["facts"]["settings"][3] == {
            "name": "threads",
            "value": 4,
            "source": "TRACEJIT_THREADS",
        }

    def test_on_this_machine(self, tmp_path):
        environment = os.environ | {"TRACEJIT_CACHE_DIR": str(tmp_path / "cache"), "TRACEJIT_LOG": "debug"}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "tracejit", "doctor", "--json"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(done.stdout)["result"]
        assert result["trial"]["step"]["difference"] is None
        assert "log" in [finding["name"] for finding in result["findings"]]
        assert not (tmp_path / "cache").exists()

    def test_a_folder_that_is_refused(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "cache").mkdir(mode=0o777)
        (tmp_path / "cache").chmod(0o777)
        monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
        assert cli.main(["doctor"]) == 1
        assert (
            f"broken: the cache is not used: other users may write to the folder {tmp_path}/cache (mode 777)"
            in (capsys.readouterr().out)
        )
