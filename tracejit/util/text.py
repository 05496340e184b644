# SPDX-License-Identifier: BSD-3-Clause
"""Counts, sizes, times and names in words, and tables."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from tracejit.util.uninterrupted import is_of_handler


def count(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> count(1, "program"), count(2, "entry"), count(0, "launch"), count(2, "array")
    ('1 program', '2 entries', '0 launches', '2 arrays')
    """
    many = (
        f"{what[:-1]}ies"
        if what[-1] == "y" and what[-2] not in "aeou"
        else f"{what}es"
        if what.endswith("ch")
        else f"{what}s"
    )
    return f"{number} {what if number == 1 else many}"


def name_of(function: Any) -> str:
    """Return the name of a function for messages; ufuncs of NumPy have no qualified one before NumPy 2.2.

    >>> name_of(dict.get), name_of(object())
    ('dict.get', 'object')
    """
    return str(
        getattr(function, "__qualname__", None) or getattr(function, "__name__", type(function).__name__)
    )


def module_of(kind: type) -> str:
    """Return the name of the module of a class; "" for one that was made by code without a name for its module.

    >>> module_of(dict), module_of(eval("type('Made', (), {})", {}))
    ('builtins', '')
    """
    return str(getattr(kind, "__module__", ""))


def one_of(options: Iterable[str]) -> str:
    """Return options as errors list them.

    >>> one_of(["sum", "mean", "none"]), one_of(["sum"])
    ('"sum", "mean" or "none"', '"sum"')
    """
    *others, last = [f'"{option}"' for option in options]
    return f"{', '.join(others)} or {last}" if others else last


def differing_first(alike: Sequence[Sequence[object]]) -> list[int]:
    """Return the indices of sequences of one length; those where the sequences differ come first.

    >>> differing_first([["4x3", "2", "5"], ["4x3", "2", "6"]])
    [2, 0, 1]
    """
    is_same = [all(part == column[0] for part in column) for column in zip(*alike, strict=True)]
    return sorted(range(len(is_same)), key=is_same.__getitem__)


def size(size_bytes: float) -> str:
    """Return a number of bytes in words.

    >>> size(100), size(1536)
    ('100 bytes', '1.5 KiB')
    """
    units = ["bytes", "KiB", "MiB", "GiB"]
    while size_bytes >= 1024 and len(units) > 1:
        size_bytes /= 1024
        units.pop(0)
    return f"{size_bytes:.0f} bytes" if units[0] == "bytes" else f"{size_bytes:.1f} {units[0]}"


def milliseconds(time_ns: int | None) -> str:
    """Return a time in milliseconds, "" for an unknown one.

    >>> milliseconds(1_500_000), milliseconds(None)
    ('1.5', '')
    """
    return "" if time_ns is None else f"{time_ns / 1e6:.1f}"


def moment(time_s: float | None) -> str:
    """Return a point in time as a local date and time, "" for one that is unknown or that no calendar has.

    >>> moment(None), moment(1e300)
    ('', '')
    """
    try:
        return "" if time_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))
    except (OverflowError, ValueError, OSError):
        return ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """Return rows in columns under a header, "" without rows; numbers are aligned to the right.

    >>> print(table(["name", "size"], [["mul_1", "2"], ["add", "10"]], numbers=["size"]))
    name   size
    mul_1     2
    add      10
    """
    if not rows:
        return ""
    rows = [header, *[[printable(text) for text in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = [str.rjust if name in numbers else str.ljust for name in header]
    return "\n".join(
        "  ".join(
            [place(text, width) for place, text, width in zip(places, row, widths, strict=True)]
        ).rstrip()
        for row in rows
    )


def shown(value: Any) -> str:
    """Return the repr of a value of any class; a description where the repr fails.

    >>> shown("a"), shown(10**5000)
    ("'a'", '<int without repr: ValueError>')
    """
    try:
        return repr(value)
    except Exception as error:  # an integer may have too many digits for one
        if is_of_handler(error):
            raise
        return f"<{type(value).__name__} without repr: {type(error).__name__}>"


def brief(value: Any) -> str:
    """Return the repr of a value of any class in a line of at most 80 characters, for messages.

    >>> brief([1, "a"]), len(brief(list(range(1000))))
    ("[1, 'a']", 80)
    """
    text = " ".join(shown(value).split("\n"))
    return text if len(text) <= 80 else f"{text[:77]}..."


def printable(text: str) -> str:
    """Return a line of text without characters that control a terminal: a file in a shared folder may hold any."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def ms(nanoseconds: int) -> str:
    """Return a time in words."""
    return f"{nanoseconds / 1e6:.1f} ms"
