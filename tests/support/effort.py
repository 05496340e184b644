# SPDX-License-Identifier: BSD-3-Clause
"""The effort of a run: a sample of the generated cases, all of them (pytest --sweep), or the nightly search (--long).

A test that is marked `sampled`, or has many cases, runs some of them, and `sample` and `sweep` shorten loops within
tests. What is chosen is the same in each run. A run of a file, or by name, has all cases of what it names.
"""

import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
SHARE = 10  # one case of so many is in the sample, beside the edges
MOST_CASES = 20  # of a test without a mark; of more there is a sample, too


class Effort(IntEnum):
    """How much a run tries."""

    SAMPLE = 0
    SWEEP = 1
    LONG = 2


EFFORT = Effort.SWEEP  # set by conftest.py before any test is imported


def effort_of(config: pytest.Config) -> Effort:
    """Return the effort of a run by its options; what is named, as a file or by a word, is run in whole."""
    option = config.option
    if option.long:
        return Effort.LONG
    named = bool(config.args) and all(".py" in argument for argument in config.args)
    if option.sweep or named or option.keyword or option.markexpr or getattr(option, "lf", False):
        return Effort.SWEEP
    return Effort.SAMPLE


def sweep(few: T, everything: T, sample: T | None = None) -> T:
    """Return how much to try: everything at night, else few, or what is given for the sample."""
    if EFFORT is Effort.LONG:
        return everything
    return few if sample is None or EFFORT is Effort.SWEEP else sample


def sample(cases: Iterable[T], of: str = "", share: int = SHARE) -> list[T]:
    """Return the cases that a loop within a test tries: a sample with both ends, another one for each text `of`."""
    cases = [*cases]
    if EFFORT is not Effort.SAMPLE:
        return cases
    ends: list[list[Hashable]] = [[] for _ in cases]
    if cases:
        ends[0] = ["first"]
        ends[-1] = ["last"]
    return [cases[i] for i in chosen([f"{of} {case}" for case in cases], ends, share)]


def chosen(names: Sequence[str], families: Sequence[Sequence[Hashable]], share: int) -> list[int]:
    """Return which cases are in the sample: one of `share` by a hash of its name, and one of each other family."""
    hashes = [zlib.crc32(name.encode("utf-8", "backslashreplace")) for name in names]
    keep = {i for i, number in enumerate(hashes) if number % share == 0}
    covered = {family for i in keep for family in families[i]}
    for i in sorted(range(len(names)), key=lambda i: (hashes[i], i)):
        if not covered.issuperset(families[i]):
            keep.add(i)
            covered.update(families[i])
    return sorted(keep)


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the sample of each family of cases among the collected ones, and no test that is marked slow."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: set[pytest.Item] = set()
    for cases in tests.values():
        mark = cases[0].get_closest_marker("sampled")
        if cases[0].get_closest_marker("slow"):
            continue
        if mark is not None:
            left.update(sample_of(cases, **mark.kwargs))
        elif len(cases) > MOST_CASES and cases[0].get_closest_marker("whole") is None:
            left.update(sample_of(cases))
        else:
            left.update(cases)
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = [item for item in items if item in left]


def sample_of(
    items: Sequence[pytest.Item],
    by: Callable[[Mapping[str, Any]], Hashable] | None = None,
    share: int = SHARE,
) -> list[pytest.Item]:
    """Return the sample of the cases of a test.

    Args:
        items: its cases.
        by: the family of a case by its parameters; each family has a case in the sample. Without it, the first and
            the last case are in it; where there are several parameters, a case of each value.
        share: one case of so many is in the sample, beside these.
    """
    parameters = [item.callspec.params if hasattr(item, "callspec") else {} for item in items]
    families: list[list[Hashable]] = []
    for given in parameters:
        if by is not None:
            families.append([by(given)])
        elif len(given) > 1:
            families.append([(name, identity(value)) for name, value in given.items()])
        else:
            families.append([])
    if by is None:
        families[0].append("first")
        families[-1].append("last")
    return [items[i] for i in chosen([item.nodeid for item in items], families, share)]


def identity(value: Any) -> Hashable:
    """Return what equal values of parameters share: numbers and texts by value, others by being the same object."""
    return (type(value), value) if isinstance(value, str | bytes | int | float) else id(value)
