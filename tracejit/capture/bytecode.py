# SPDX-License-Identifier: BSD-3-Clause
"""The names, attributes and items that a Python function can read, from its byte code."""

import re
import types
from functools import lru_cache
from typing import Any

from tracejit.capture.reads import READ, WRITE, AccessPath, FreeVariable, Reads, Use
from tracejit.capture.scanner import Scanner

# Names of what reads attributes by their names; getattr and hasattr with a constant name are followed instead.
_DYNAMIC = frozenset({
    "__dir__", "__getattribute__", "__slots__", "__getstate__",
    "__reduce_ex__",
})  # fmt: skip
MARKS = frozenset({
    "super", "type", "__class__", "isinstance", "issubclass", "mro", "__mro__", "__bases__", "__base__",
    "import_module", "__import__", "modules", "getLogger",
})  # fmt: skip
_BY_TEXT = frozenset({"globals", "eval", "exec"})
_FORMATTING = frozenset({"format", "format_map"})
_FIELD = r"\.([A-Za-z_]\w*)[^{]*}"  # an attribute in a format
_WORD = r"[A-Za-z_]\w*"


@lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    """Return what the function of `code` can read."""
    scanner = Scanner(code)
    scanner.run()
    is_dynamic = not _DYNAMIC.isdisjoint(code.co_names) or scanner.matches_classes or scanner.computes_names
    names, probes, texts = scanner.names | _fields(code), scanner.probes, _texts(code)
    if is_dynamic:
        names |= texts
        probes |= texts
    if scanner.catches:
        probes |= names
    if not _BY_TEXT.isdisjoint(code.co_names):
        words = {word for text in _strings(code) for word in re.findall(_WORD, text)}
        names |= words
        line, place = code.co_firstlineno, (code.co_firstlineno, None, None, None)
        scanner.uses += [Use(AccessPath("global", word), READ, line, place) for word in sorted(words)]
    return Reads(
        _without_duplicates(scanner.uses),
        tuple(dict.fromkeys(scanner.supers)),
        tuple(scanner.identities),
        frozenset(names | probes),
        frozenset(probes),
        frozenset(scanner.stored),
        frozenset(texts),
        frozenset(text for text in _strings(code) if _is_dotted(text)),
        MARKS.intersection(code.co_names),
        _free_variables(code, scanner.uses),
        is_dynamic,
        any(name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH") for name in scanner.opnames) or scanner.catches,
        scanner.branches_on_untracked,
        scanner.extracts_untracked,
        scanner.tells_apart,
        frozenset(scanner.named_at),
    )


def _strings(code: types.CodeType) -> set[str]:
    """Return the strings among the constants of a function."""
    strings: set[str] = set()
    waiting: list[Any] = [*code.co_consts]
    while waiting:
        constant = waiting.pop()
        if isinstance(constant, (tuple, frozenset)):
            waiting += constant
        elif isinstance(constant, str):
            strings.add(constant)
    return strings


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _texts(code: types.CodeType) -> set[str]:
    """Return the constants of a function that can be names of attributes, or of attributes of attributes."""
    texts = {part for text in _strings(code) if _is_dotted(text) for part in text.split(".")}
    return texts | _fields(code)


def _fields(code: types.CodeType) -> set[str]:
    """Return the attributes that formats among the constants of a function name."""
    is_formatting = not _FORMATTING.isdisjoint(code.co_names)
    return {name for text in _strings(code) for name in re.findall(_FIELD, text)} if is_formatting else set()


def _free_variables(code: types.CodeType, uses: list[Use]) -> dict[str, FreeVariable]:
    """Return what this function and those nested in it do with each name of an enclosing function."""
    free = dict.fromkeys(code.co_freevars, FreeVariable())
    for path, how, *_, addition in uses:
        if path.scope == "local" and path.name in free:
            is_written = how == WRITE and not path.steps
            added = () if addition is None or path.steps else (addition,)
            found = FreeVariable(not is_written and not added, is_written, added)
            free[path.name] = _joined(free[path.name], found)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for name, found in reads_of(constant).free.items():
                if name in free:
                    free[name] = _joined(free[name], found)
    return free


def _joined(one: FreeVariable, other: FreeVariable) -> FreeVariable:
    return FreeVariable(
        one.is_read or other.is_read, one.is_assigned or other.is_assigned, one.additions + other.additions
    )


def _without_duplicates(uses: list[Use]) -> tuple[Use, ...]:
    """Return the first of the uses that say the same; uses in a computation differ by their places."""
    unique: dict[Any, Use] = {}
    for use in uses:
        is_computed = (
            use.operator
            or use.is_tested
            or use.is_index
            or use.callee is not None
            or use.addition is not None
        )
        unique.setdefault((use.path, use.how, is_computed and (use.place, use.callee, use.is_index)), use)
    return tuple(unique.values())
