# SPDX-License-Identifier: BSD-3-Clause
"""Settings and fixtures of all tests."""

import gc
import importlib
import math
import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import effort
import numpy as np
import pytest
from hypothesis import settings
from interpreted import interpreted

from tracejit import config
from tracejit.codegen.templates import by_op
from tracejit.passes import cost
from tracejit.passes.loops import bands, products
from tracejit.record.recorder import Recorder
from tracejit.traces import replay

for name in {"tracejit.pipeline", *(f"tracejit.codegen.templates.{name}" for name in by_op.TEXTS.values())}:
    importlib.import_module(name)  # before a test exchanges a constant that they import from another module

collect_ignore = ["support"]
FOLDERS = {Path(__file__).parent / name for name in ("unit", "compiled", "process")}
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
MOST_WORKERS = 4  # each imports and collects for three seconds


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the tests of whole folders among processes, if pytest-xdist is there and nothing speaks against it."""
    if is_to_be_shared(config):
        config.option.numprocesses = min(MOST_WORKERS, CPUS)
        config.option.dist = "worksteal"
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning, in each process


def is_to_be_shared(config: pytest.Config) -> bool:
    """Return whether a large folder is run, as a whole, and not by a debugger, a worker or a number of them."""
    option = config.option
    paths = {Path(config.invocation_params.dir, argument).resolve() for argument in config.args}
    return (
        config.pluginmanager.hasplugin("xdist")
        and not hasattr(config, "workerinput")
        and not FOLDERS.isdisjoint(paths)
        and option.numprocesses is None
        and option.dist == "no"
        and not (option.keyword or option.markexpr or option.collectonly or option.usepdb or option.trace)
        and option.capture != "no"
        and CPUS > 1
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the files of tests/support/golden anew"
    )
    parser.addoption(
        "--sweep",
        action="store_true",
        help="run all generated cases, not only the sample of a run of a folder",
    )
    parser.addoption(
        "--turn",
        metavar="N/M",
        help="with --sweep: of many tests of a file a part, and by turns an eighth of the others; of many cases of a "
        "test the sample, and one of M, the Nth from 0 on",
    )
    parser.addoption(
        "--few", action="store_true", help="collect all tests, and run a case of a few of each file"
    )
    parser.addoption("--long", action="store_true", help="try every width, size and seed, not only the edges")


def pytest_configure(config: pytest.Config) -> None:
    effort.EFFORT, effort.TURN = effort.effort_of(config), effort.turn_of(config)
    settings.register_profile(
        "derandomized", derandomize=True, max_examples=effort.sweep(15, 200, sample=5), deadline=None
    )
    settings.load_profile("derandomized")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """Collect tests, not examples in docstrings: there are none here, and to look for them imports each file twice."""
    collectors = yield
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_report_header() -> str | None:
    if effort.EFFORT is effort.Effort.FEW:
        return "a case of a few tests of each file; without --few more"
    if effort.EFFORT is effort.Effort.QUICK:
        return "a quick answer: of large files some tests, of generated cases a sample; --sweep runs all"
    if effort.EFFORT is effort.Effort.SAMPLE:
        return "generated cases: a sample; --sweep runs all"
    if effort.TURN is not None:
        number, turns = effort.TURN
        return f"of many tests of a file, and many cases of a test: a sample, and turn {number} of {turns}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave the sample of generated cases, before an item is made of each."""
    yield
    if effort.EFFORT <= effort.Effort.SAMPLE:
        effort.leave_sample(metafunc)
    elif effort.TURN is not None:
        effort.leave_turn(metafunc, *effort.TURN)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out of the sample, and those out of a turn whose turn it is not."""
    if effort.EFFORT <= effort.Effort.SAMPLE:
        effort.deselect(config, items)
    elif effort.TURN is not None:
        effort.deselect_others(config, items, *effort.TURN)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test draw numbers of its own: the same in every run, whichever tests its process ran before."""
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    module = item.getparent(pytest.Module)
    for value in vars(module.obj).values() if module else ():
        if type(value) is np.random.Generator:
            value.bit_generator.state = type(value.bit_generator)(seed).state


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Escape lone surrogates in captured text: pytest-xdist cannot send them between processes."""
    report = yield
    report.sections = [
        (title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True, scope="module")
def _few_objects_to_collect() -> None:
    """Leave what is there already out of each gc.collect() of a test, which takes many times as long otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def accelerating():
    """A recorder whose graph would be replayed, open while the test runs."""
    with Recorder("step", accelerating=True) as recorder:
        yield recorder


@pytest.fixture
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing compiles, except where a test asks for it; graphs are verified."""
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(config.settings, "verify", True)
    monkeypatch.setattr(replay, "executable", interpreted)


@pytest.fixture
def always_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every launch, however short, into as many parts as its rows allow, up to 3."""
    monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(cost, "PART_NS", 1e-9)
    monkeypatch.setattr(cost, "MOST_PARTS", 3)
    monkeypatch.setattr(cost, "LEAST_FOLDED", 1)
    monkeypatch.setattr(products, "ROWS", 1)
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", math.inf)


@pytest.fixture
def always_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put every launch that has more than one row into a section, if it can join one."""
    monkeypatch.setattr(cost, "LEAST_FOLDED", 0.01)
    monkeypatch.setattr(cost, "LEAST_SECTION_NS", 0.0)
    monkeypatch.setattr(bands, "BAND_ROWS", 1)
    monkeypatch.setattr(bands, "LEAST_ROWS", 1)
    monkeypatch.setattr(bands, "MOST_BANDS", 3)
