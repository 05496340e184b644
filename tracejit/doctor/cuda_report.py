# SPDX-License-Identifier: BSD-3-Clause
"""The report on a GPU: each line is told as soon as it is known, and what fails is a line too."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tracejit.errors import DeviceError
from tracejit.runtime.cuda.driver import driver


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure: what was measured, its value and unit, and a remark; without a value the remark says what failed."""

    name: str
    value: float | None
    unit: str
    remark: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return self.remark
        return f"{self.value:.4g} {self.unit}{f' ({self.remark})' if self.remark else ''}"


_T = TypeVar("_T")
Tell = Callable[[str], object]
"""A function that takes each line of a report as soon as it is known."""


def silently(line: str) -> None:
    """Tell nobody."""


class CudaReport:
    """The result of the check, which grows while the check goes on; its repr is the text that the command prints.

    Args:
        tell: called with each line of the text as soon as it is known.

    Attributes:
        device: facts by name.
        checks: how what was compared, by its name, differs from the CPU, None if it does not.
        measures: figures, by events on the device where nothing else is said.
        broken: the names of what failed.
        lost: the error after which the device answered nothing more, None if it did to the end.
    """

    def __init__(self, tell: Tell = silently) -> None:
        self.device: dict[str, str] = {}
        self.checks: dict[str, str | None] = {}
        self.measures: list[Measure] = []
        self.broken: list[str] = []
        self.lost: str | None = None
        self._tell = tell
        self._lines: list[str] = []

    @property
    def data(self) -> dict[str, Any]:
        """The report as JSON values and dataclasses."""
        return {"device": self.device, "checks": self.checks, "measures": self.measures, "lost": self.lost}

    @property
    def summary(self) -> str:
        """The line that sums the report up."""
        if not self.broken:
            return "It works."
        end = "" if self.lost is None else "; the device is lost to this process, and the check ended"
        return f"Broken: {', '.join(self.broken)}{end}."

    def __repr__(self) -> str:
        return "\n".join([*self._lines, "", self.summary])

    def title(self, name: str) -> None:
        """Begin a section."""
        self._write(name)

    def fact(self, name: str, find: Callable[[], str]) -> None:
        """Note what is found."""
        found, failure = self._tried(name, find)
        self.device[name] = failure or found or ""
        self._write(f"  {name:<16}{self.device[name]}")

    def check(self, name: str, compare: Callable[[], str | None]) -> None:
        """Note how a result differs from that of the CPU; an error is a difference."""
        difference, failure = self._tried(name, compare)
        if difference is not None:
            self.broken.append(name)
        self.checks[name] = failure or difference
        self._write(f"  {name:<16}{self.checks[name] or 'as on the CPU'}")

    def measure(self, name: str, take: Callable[[], Sequence[Measure]]) -> None:
        """Note figures, or one of a name that says which error there was instead."""
        figures, failure = self._tried(name, take)
        for figure in figures or [Measure(name, None, "", failure or "")]:
            self.measures.append(figure)
            self._write(f"  {figure.name:<16}{figure}")

    def _tried(self, name: str, work: Callable[[], _T]) -> tuple[_T | None, str | None]:
        """Return what a part of the check returns, and the error that it raised instead, in words."""
        try:
            return work(), None
        except Exception as error:
            self.broken.append(name)
            failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
        try:
            driver()
        except DeviceError:
            self.lost = failure
        return None, f"failed: {failure}"

    def _write(self, line: str) -> None:
        self._lines.append(line)
        self._tell(line)
        if self.lost is not None:
            raise LostError


class LostError(Exception):
    """The device is lost: nothing more can be checked."""
