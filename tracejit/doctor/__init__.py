# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: what tracejit runs on, whether it works here, and what slows it down.

Facts are gathered (facts), a few things are tried (trial), and rules make findings of both (findings): what was found,
what it costs, and what to do.
"""

from dataclasses import dataclass

from tracejit.doctor.facts import Facts, gather
from tracejit.doctor.findings import BROKEN, Finding, judge
from tracejit.doctor.system import System
from tracejit.doctor.text import text_of
from tracejit.doctor.trial import Trial, attempt

__all__ = ["Report", "examine"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; it shows itself as the command prints it, and `dataclasses.asdict` makes a dict of it."""

    facts: Facts
    trial: Trial
    findings: list[Finding]

    @property
    def broken(self) -> list[Finding]:
        """The findings without which nothing works as it should."""
        return [finding for finding in self.findings if finding.level == BROKEN]

    def __repr__(self) -> str:
        return text_of(self.facts, self.trial, self.findings)


def examine(system: System | None = None) -> Report:
    """Return what there is to say of this machine and this process; takes about two seconds, and compiles.

    Nothing of it is kept: what is compiled goes to a temporary folder.

    Args:
        system: what is asked of the operating system; tests give another one.

    Examples:
        >>> import tracejit.doctor
        >>> report = tracejit.doctor.examine()
        >>> report.trial.step.difference is None, report.facts.setting("backend")
        (True, 'cpu')
    """
    facts = gather(system or System())
    trial = attempt(facts)
    return Report(facts, trial, judge(facts, trial))
