# SPDX-License-Identifier: BSD-3-Clause
"""The checks of conftest.py in this folder can fail."""

import itertools
import os
import subprocess
import sys
import types
from pathlib import Path

import effort
import pytest


@pytest.mark.parametrize("start", [lambda: subprocess.run(["true"], check=False), lambda: os.fork()])
def test_a_test_that_starts_a_process_fails(start):
    with pytest.raises(pytest.fail.Exception, match=r"a test in tests/unit .*; move it to tests/process"):
        start()


@pytest.fixture
def conftest(request):
    return request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))


def test_a_test_whose_name_has_an_address_fails(conftest):
    conftest.check_names(["a.py::test_sums[float]", "a.py::test_at[0x10]"])
    with pytest.raises(pytest.UsageError, match=r"^give the parameters of a.py::test_sums\[.* ids$"):
        conftest.check_names([f"a.py::test_sums[{test_a_test_that_starts_a_process_fails}]"])


def test_a_test_that_imports_numba_fails(conftest, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    with pytest.raises(
        pytest.UsageError, match=r"tests in tests/unit imported .*numba.*; move them to tests/compiled"
    ):
        conftest.check_imports(set())
    conftest.check_imports(conftest.imported())


class TestSample:
    """What a run of a folder tries of generated cases."""

    names = tuple(f"case {i}" for i in range(200))

    def test_is_a_share_and_the_same_in_each_run(self):
        sample = effort.chosen(self.names, [[]] * 200, 10)
        assert 10 <= len(sample) <= 30 and sample == effort.chosen(self.names, [[]] * 200, 10)

    def test_has_a_case_of_each_family(self):
        families = [[("op", i // 5)] for i in range(200)]
        sample = effort.chosen(self.names, families, 10)
        assert {i // 5 for i in sample} == set(range(40))

    def test_of_the_other_cases_does_not_change_with_a_new_one(self):
        before = {self.names[i] for i in effort.chosen(self.names, [[]] * 200, 10)}
        longer = ["new", *self.names]
        assert {longer[i] for i in effort.chosen(longer, [[]] * 201, 10)} - {"new"} == before

    def test_has_the_ends_and_the_values_of_a_grid(self):
        grid = [{"x": x, "y": y, "number": 10 * y + x} for y in range(10) for x in range(10)]
        left = [grid[i] for i in effort.sample_of(self.names[:100], grid)]
        assert {case["x"] for case in left} == {case["y"] for case in left} == set(range(10))
        assert grid[0] in left and grid[-1] in left and len(left) < 35

    def test_of_a_short_list_is_a_larger_share(self):
        cases = [{"x": object()} for _ in range(200)]
        short = sum(len(effort.sample_of(self.names[i : i + 10], cases[:10])) for i in range(0, 200, 10))
        assert 60 <= short <= 110 and len(effort.sample_of(self.names, cases)) <= 32

    @pytest.mark.parametrize("count", [3, 60])
    def test_of_tests_of_a_file(self, count):
        marked = types.SimpleNamespace(get_closest_marker=lambda name: name == "whole")
        plain = types.SimpleNamespace(get_closest_marker=lambda name: None)
        tests = {f"a.py::Test{i // 20}::test_{i}": [plain] for i in range(count)} | {"a.py::test": [marked]}
        left = effort.quick(tests)
        assert left[-1] is marked
        assert len(left) == 4 if count == 3 else 12 <= len(left) <= 33

    def test_of_combinations_takes_the_last_by_turns(self, monkeypatch):
        lists = "abc", "de", "fg"
        some = effort.by_turns(*lists)
        assert some[:2] == [("a", "d", "f"), ("a", "e", "g")] and len(some) == 6
        for first, second in itertools.combinations(range(3), 2):
            pairs = {(case[first], case[second]) for case in some}
            assert pairs == {*itertools.product(lists[first], lists[second])}
        monkeypatch.setattr(effort, "EFFORT", effort.Effort.LONG)
        assert effort.by_turns(*lists) == [*itertools.product(*lists)]

    @pytest.mark.parametrize("count", [1, 200])
    def test_of_a_few_tests_of_a_file(self, count):
        marked = types.SimpleNamespace(get_closest_marker=lambda name: name == "whole")
        plain = [types.SimpleNamespace(get_closest_marker=lambda name: None) for _ in range(2)]
        tests = {f"a.py::test_{i}": plain for i in range(count)} | {"a.py::test": [marked, plain[1]]}
        *left, last = effort.few(tests)
        assert last is marked and all(case is plain[0] for case in left)
        assert len(left) <= 1 if count == 1 else 5 <= len(left) <= 20

    @pytest.mark.parametrize(
        ("level", "loop", "some"),
        [("FEW", 2, False), ("QUICK", 2, False), ("SAMPLE", 2, False), ("SWEEP", 5, True), ("LONG", 9, True)],
    )
    def test_of_loops(self, monkeypatch, level, loop, some):
        monkeypatch.setattr(effort, "EFFORT", effort.Effort[level])
        assert effort.sweep(5, 9, sample=2) == loop
        tried = effort.sample(self.names, "an op")
        assert (tried == [*self.names]) is some and {tried[0], tried[-1]} == {self.names[0], self.names[-1]}
