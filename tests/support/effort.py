# SPDX-License-Identifier: BSD-3-Clause
"""The effort of a run: a few cases, a quick answer, a sample, all cases (pytest --sweep), or the nightly search.

A test that is marked `sampled`, or has many cases, runs some of them, and `sample` and `sweep` shorten loops within
tests. The quick answer is that of ``pytest tests/unit``: of a file with many tests it has some, too. ``--few`` has
one case of some tests of each file, which shows that all files are there. What is chosen is the same in each run. A
run of a file, or by name, has all cases of what it names. ``--sweep --turn=0/16`` has of a file with many tests those
of the quick answer, of other folders an eighth, and an eighth of the others, and of many cases the sample and a
sixteenth: so sixteen runs have all tests and all cases.
"""

import itertools
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
SHARE = 10  # one case of so many is in the sample, beside the edges
SHARE_OF_SHORT, SHORT = 3, 20  # and of a list of up to so many cases
MOST_CASES = 6  # of a test without a mark; of more there is a sample, too
MOST_WHOLE = 40  # of a test that is marked `whole`; of more the quick answer has a sample
MOST_TESTS, SHARE_OF_TESTS = 5, 3  # of a file without a mark; of more one of so many is in the quick answer
TURNS_OF_TESTS = 8  # and by turns one of so many of the others, or of the slow ones
SHARE_OUTSIDE_UNIT = (
    8  # with turns: tests of other folders than unit take longer, and each of their files has a sample
)
SHARE_OF_FEW = 20  # one test of so many, and one of each file, is among the few
UNIT = Path(__file__).resolve().parent.parent / "unit"


class Effort(IntEnum):
    """How much a run tries."""

    FEW = 0
    QUICK = 1
    SAMPLE = 2
    SWEEP = 3
    LONG = 4


EFFORT = Effort.SWEEP  # set by conftest.py before any test is imported
TURN: tuple[int, int] | None = None  # likewise


def effort_of(config: pytest.Config) -> Effort:
    """Return the effort of a run by its options; what is named, as a file or by a word, is run in whole."""
    option = config.option
    if option.long:
        return Effort.LONG
    if option.few:
        return Effort.FEW
    named = bool(config.args) and all(".py" in argument for argument in config.args)
    if option.sweep or named or option.keyword or option.markexpr or getattr(option, "lf", False):
        return Effort.SWEEP
    paths = [Path(config.invocation_params.dir, argument).resolve() for argument in config.args]
    return Effort.QUICK if paths == [UNIT] else Effort.SAMPLE


def turn_of(config: pytest.Config) -> tuple[int, int] | None:
    """Return the number of a turn and how many there are, by the option --turn; None if it is not given.

    Raises:
        pytest.UsageError: if it is no such pair.
    """
    text = config.option.turn
    if text is None:
        return None
    number, _, turns = text.partition("/")
    if not (number.isdecimal() and turns.isdecimal() and int(number) < int(turns)):
        raise pytest.UsageError(
            f"--turn: expected a number from 0 on and how many there are, such as 1/4, not {text}"
        )
    return int(number), int(turns)


def sweep(few: T, everything: T, sample: T | None = None) -> T:
    """Return how much to try: everything at night, else few, or what is given for the sample."""
    if EFFORT is Effort.LONG:
        return everything
    return few if sample is None or EFFORT is Effort.SWEEP else sample


def by_turns(*lists: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the combinations of values: of the last list one by turns, at night each.

    Each pair of values is there, of lists that are as long as the last one.
    """
    every = [*itertools.product(*map(enumerate, lists))]
    return [
        tuple([value for _, value in pairs])
        for pairs in every
        if EFFORT is Effort.LONG or sum(i for i, _ in pairs[:-1]) % len(lists[-1]) == pairs[-1][0]
    ]


def sample(cases: Iterable[T], of: str = "", share: int = SHARE) -> list[T]:
    """Return the cases that a loop within a test tries: a sample with both ends, another one for each text `of`."""
    cases = [*cases]
    if EFFORT > Effort.SAMPLE:
        return cases
    ends: list[list[Hashable]] = [[] for _ in cases]
    if cases:
        ends[0] = ["first"]
        ends[-1] = ["last"]
    return [cases[i] for i in chosen([f"{of} {case}" for case in cases], ends, share)]


def chosen(names: Sequence[str], families: Sequence[Sequence[Hashable]], share: int) -> list[int]:
    """Return which cases are in the sample: one of `share` by a hash of its name, and one of each other family."""
    hashes = [*map(hashed, names)]
    keep = {i for i, number in enumerate(hashes) if number % share == 0}
    covered = {family for i in keep for family in families[i]}
    for i in sorted(range(len(names)), key=lambda i: (hashes[i], i)):
        if not covered.issuperset(families[i]):
            keep.add(i)
            covered.update(families[i])
    return sorted(keep)


def hashed(name: str) -> int:
    """Return the hash of a name, which is the same in each run."""
    return zlib.crc32(name.encode("utf-8", "backslashreplace"))


def leave_sample(metafunc: pytest.Metafunc) -> None:
    """Leave the sample of the cases of a test, before an item is made of each."""
    definition, calls = metafunc.definition, metafunc._calls  # pytest has no public name for them
    mark, whole = definition.get_closest_marker("sampled"), definition.get_closest_marker("whole")
    most = MOST_CASES if whole is None else MOST_WHOLE if EFFORT <= Effort.QUICK else len(calls)
    if calls and (mark is not None or len(calls) > most):
        options = {"share": SHARE_OF_SHORT} if whole else {} if mark is None else mark.kwargs
        calls[:] = [calls[i] for i in sample_of(_names(metafunc), [call.params for call in calls], **options)]


def leave_turn(metafunc: pytest.Metafunc, number: int, turns: int) -> None:
    """Leave the sample of many cases of a test, and those whose turn it is."""
    definition, calls = metafunc.definition, metafunc._calls
    mark = definition.get_closest_marker("sampled")
    if len(calls) > MOST_CASES and definition.get_closest_marker("whole") is None:
        names = _names(metafunc)
        kept = {*sample_of(names, [call.params for call in calls], **({} if mark is None else mark.kwargs))}
        kept |= {i for i, name in enumerate(names) if hashed(name) // SHARE % turns == number}
        calls[:] = [calls[i] for i in sorted(kept)]


def deselect_others(config: pytest.Config, items: list[pytest.Item], number: int, turns: int) -> None:
    """Leave, of the slow tests and those that are not in the quick answer, the tests and cases whose turn it is."""

    def has_turn(item: pytest.Item) -> bool:
        test, _, case = item.nodeid.partition("[")
        of_test = hashed(test) // SHARE % TURNS_OF_TESTS == number % TURNS_OF_TESTS
        return of_test or (bool(case) and hashed(item.nodeid) // SHARE % turns == number)

    fast = [item for item in items if not item.get_closest_marker("slow")]
    kept = {*_quick([item for item in fast if UNIT in item.path.parents]), *filter(has_turn, items)}
    for tests in _by_file([item for item in fast if UNIT not in item.path.parents]):
        kept.update(quick(tests, SHARE_OUTSIDE_UNIT, most=1))
    _deselect(config, items, kept)


def _names(metafunc: pytest.Metafunc) -> list[str]:
    return [f"{metafunc.definition.nodeid}[{call.id}]" for call in metafunc._calls]


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out, and those of each file that are not in the quick answer, or not among the few."""
    left = [item for item in items if not item.get_closest_marker("slow")]
    if EFFORT is Effort.QUICK:
        left = _quick(left)
    elif EFFORT is Effort.FEW:
        left = [item for tests in _by_file(left) for item in few(tests)]
    _deselect(config, items, {*left})


def _quick(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    return [item for tests in _by_file(items) for item in quick(tests)]


def _by_file(items: Iterable[pytest.Item]) -> list[dict[str, list[pytest.Item]]]:
    """Return the cases of each test, by its name, of each file."""
    tests: dict[Path, dict[str, list[pytest.Item]]] = {}
    for item in items:
        tests.setdefault(item.path, {}).setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [*tests.values()]


def _deselect(config: pytest.Config, items: list[pytest.Item], kept: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def few(tests: Mapping[str, Sequence[pytest.Item]]) -> list[pytest.Item]:
    """Return the first cases of some tests of a file: of the first one, of one of many others, of all that are wanted.

    Among these are tests of files that lie beside the code, such as golden files.
    """
    keep = chosen([*tests], [["a test of the file"]] * len(tests), SHARE_OF_FEW)
    return [
        items[0]
        for i, items in enumerate(tests.values())
        if i in keep or items[0].get_closest_marker("whole")
    ]


def quick(
    tests: Mapping[str, Sequence[pytest.Item]], share: int = SHARE_OF_TESTS, most: int = MOST_TESTS
) -> list[pytest.Item]:
    """Return the cases of those tests of a file that are in the quick answer: of more than `most` one of `share`.

    The first of the file and of each class is among them, and each that is marked: its cases are chosen one by one, or
    all of them are wanted.
    """
    families = [[name.rpartition("::")[0]] for name in tests]
    keep = {*chosen([*tests], families, share)} if len(tests) > most else range(len(tests))
    return [
        item
        for i, items in enumerate(tests.values())
        for item in items
        if i in keep or any(item.get_closest_marker(name) for name in ("sampled", "whole"))
    ]


def sample_of(
    names: Sequence[str],
    parameters: Sequence[Mapping[str, Any]],
    by: Callable[[Mapping[str, Any]], Hashable] | None = None,
    share: int | None = None,
) -> list[int]:
    """Return which cases of a test are in the sample.

    Args:
        names: of the cases.
        parameters: of each.
        by: the family of a case by its parameters; each family has a case in the sample. Without it, the first and
            the last case are in it, and one of each value that several cases share, as those of a grid do.
        share: one case of so many is in the sample, beside these; by default 3 of a short list, else 10.
    """
    if by is not None:
        families: list[list[Hashable]] = [[by(given)] for given in parameters]
    else:
        families = [[] for _ in names]
        for name in parameters[0]:
            values = [identity(given[name]) for given in parameters]
            if 2 * len(set(values)) <= len(values):
                for family, value in zip(families, values, strict=True):
                    family.append((name, value))
        families[0].append("first")
        families[-1].append("last")
    return chosen(names, families, share or (SHARE if len(names) > SHORT else SHARE_OF_SHORT))


def identity(value: Any) -> Hashable:
    """Return what equal values of parameters share: numbers and texts by value, others by being the same object."""
    return (type(value), value) if isinstance(value, str | bytes | int | float) else id(value)
