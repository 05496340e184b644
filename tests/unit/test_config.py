# SPDX-License-Identifier: BSD-3-Clause
"""Settings from the environment."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tracejit import ArgumentError, config, dlaccelerate


def test_defaults():
    assert (
        config.from_environment({})
        == config.Settings()
        == config.Settings("cpu", False, True, config.cpus(), "private", None, 1024)
    )


def test_the_page_about_settings_names_them_all():
    page = (Path(__file__).parents[2] / "docs" / "cache.md").read_text(encoding="utf-8")
    source = Path(config.__file__).read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(TRACEJIT_\w+)` \|", page, re.MULTILINE)} == {
        *re.findall(r'"(TRACEJIT_\w+)"', source)
    }


@pytest.mark.parametrize(
    ("program", "is_command"),
    [
        ("/usr/bin/tracejit", True), ("tracejit", True), ("tracejit.exe", True), ("tracejit-script.py", True),
        ("train.py", False), ("tracejit.py", False), ("", False), ("-c", False),
    ],
)  # fmt: skip
def test_the_command_by_its_file(program, is_command, monkeypatch):
    monkeypatch.setattr("sys.argv", [program])
    assert config._is_command() == is_command


def test_cpus_of_systems_that_do_not_tell_those_of_a_process(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert config.cpus() == os.cpu_count()


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("TRACEJIT_BACKEND", "python", "backend", "python"),
        ("TRACEJIT_BACKEND", "cpu", "backend", "cpu"),
        ("TRACEJIT_VERIFY", "1", "verify", True),
        ("TRACEJIT_VERIFY", "0", "verify", False),
        ("TRACEJIT_WRITE_ARGUMENTS", "0", "write_arguments", False),
        ("TRACEJIT_PRECISION", "highest", "precision", "highest"),
        ("TRACEJIT_FLUSH_DENORMALS", "0", "flush_denormals", False),
        ("TRACEJIT_FLUSH_DENORMALS", "1", "flush_denormals", True),
        ("TRACEJIT_THREADS", "3", "threads", 3),
        ("OMP_NUM_THREADS", "5", "threads", 5),
        ("TRACEJIT_CACHE", "off", "cache", "off"),
        ("TRACEJIT_CACHE", "shared", "cache", "shared"),
        ("TRACEJIT_CACHE_DIR", "/some/where", "cache_dir", "/some/where"),
        ("TRACEJIT_CACHE_DIR", "~/kernels", "cache_dir", os.path.expanduser("~/kernels")),
        ("TRACEJIT_CACHE_DIR", "kernels", "cache_dir", os.path.abspath("kernels")),
        ("TRACEJIT_CACHE_MIB", "7", "cache_mib", 7),
        ("TRACEJIT_CUBLAS_FROM", "1000000", "cublas_from", 1_000_000),
    ],
)
def test_values(name, value, field, expected):
    assert getattr(config.from_environment({name: value, "OTHER": "x"}), field) == expected


def test_number_of_threads():
    own_first = config.from_environment({"TRACEJIT_THREADS": "2", "OMP_NUM_THREADS": "5"})
    assert own_first.threads == 2
    # A list for nested regions, or an empty string, says nothing to us.
    for value in ("4,2", "", "0"):
        assert config.from_environment({"OMP_NUM_THREADS": value}).threads == config.Settings().threads
    for value in ("0", "-1", "two", "1.5", ""):
        with pytest.raises(
            ArgumentError, match=f"TRACEJIT_THREADS='{value}' is not valid; use an integer of at least 1."
        ):
            config.from_environment({"TRACEJIT_THREADS": value})


@pytest.mark.parametrize("value", ["0", "on", "1e9", ""])
def test_products_by_cublas_are_off_or_from_a_size_on(value):
    assert config.from_environment({}).cublas_from is None
    with pytest.raises(
        ArgumentError, match=f"^TRACEJIT_CUBLAS_FROM='{value}' is not valid; use an integer of at least 1.$"
    ):
        config.from_environment({"TRACEJIT_CUBLAS_FROM": value})


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("TRACEJIT_BACKEND", "gpu", "'cpu', 'python'"),
        ("TRACEJIT_BACKEND", "", "'cpu', 'python'"),
        ("TRACEJIT_BACKEND", "CPU", "'cpu', 'python'"),
        ("TRACEJIT_VERIFY", "yes", "'0', '1'"),
        ("TRACEJIT_FLUSH_DENORMALS", "2", "'0', '1'"),
        ("TRACEJIT_CACHE", "on", "'private', 'shared', 'off'"),
    ],
)
def test_values_that_are_not_valid(name, value, valid):
    with pytest.raises(ArgumentError, match=f"^{name}='{value}' is not valid; use one of {valid}.$"):
        config.from_environment({name: value})


def test_a_folder_in_place_of_a_kind_of_cache():
    with pytest.raises(ArgumentError, match=r"'off'\. TRACEJIT_CACHE_DIR is the folder\.$"):
        config.from_environment({"TRACEJIT_CACHE": os.path.join("", "tmp", "cache") + os.sep})


def test_a_setting_changed_later_counts_for_what_is_built_later(monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "python")
    fun = dlaccelerate(lambda x: x + 1)
    fun(np.ones(1))
    assert fun(np.ones(1)).tolist() == [2.0]
    with pytest.raises(AttributeError):
        config.settings.unknown = 1


def test_a_relative_folder_where_there_is_no_current_one(tmp_path, monkeypatch):
    def fail():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", fail)
    with pytest.raises(
        ArgumentError, match=r"it is relative, and there is no current folder \(No such file.*absolute"
    ):
        config.from_environment({"TRACEJIT_CACHE_DIR": "kernels"})
    assert config.from_environment({"TRACEJIT_CACHE_DIR": "/kernels"}).cache_dir == "/kernels"


def test_folder_and_size_of_the_cache():
    with pytest.raises(
        ArgumentError, match=r"^TRACEJIT_CACHE_DIR='' is not valid; use the path of a folder[.]$"
    ):
        config.from_environment({"TRACEJIT_CACHE_DIR": ""})
    with pytest.raises(
        ArgumentError, match=r"^TRACEJIT_CACHE_MIB='0' is not valid; use an integer of at least 1[.]$"
    ):
        config.from_environment({"TRACEJIT_CACHE_MIB": "0"})
