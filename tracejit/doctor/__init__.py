# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: checks that tracejit works on this machine, and finds what slows it down.

In: this process and its machine. Out: a Report of facts, a trial and findings, as data or as text.
May import everything except the commands.
"""

from dataclasses import dataclass

from tracejit.doctor.facts import Facts, gather
from tracejit.doctor.findings import BROKEN, Finding, judge
from tracejit.doctor.text import text_of
from tracejit.doctor.trial import Trial, attempt

__all__ = ["Report", "examine"]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination; its repr is the text that the command prints."""

    facts: Facts
    trial: Trial
    findings: list[Finding]

    @property
    def broken(self) -> list[Finding]:
        """The findings that make tracejit fail or compute wrong results."""
        return [finding for finding in self.findings if finding.level == BROKEN]

    def __repr__(self) -> str:
        return text_of(self.facts, self.trial, self.findings)


def examine() -> Report:
    """Return a report on this machine and this process; compiles, which takes about a second.

    Nothing is kept: compiled kernels go to a temporary folder.

    Examples:
        >>> import tracejit.doctor
        >>> report = tracejit.doctor.examine()
        >>> report.trial.difference is None, report.facts.settings["backend"]
        (True, 'cpu')
    """
    facts, trial = gather(), attempt()
    return Report(facts, trial, judge(facts, trial))
