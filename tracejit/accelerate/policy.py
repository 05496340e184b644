# SPDX-License-Identifier: BSD-3-Clause
"""The policy of the process for calls of accelerated functions that have to be recorded."""

from typing import Any

from tracejit.errors import ArgumentError
from tracejit.record.current import blockers
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

POLICIES = ("default", "warn-on-retrace", "error-on-retrace", "uncompiled")

current = "default"
uncompiled = False  # whether `current` is "uncompiled"; read at each call


class Policy:
    """A policy that is in force; as a context manager it ends with the block.

    Made by set_policy.
    """

    def __init__(self, name: str, before: str) -> None:
        self.name = name
        self._before = before

    def __enter__(self) -> "Policy":
        return self

    def __exit__(self, *exc: Any) -> None:
        _apply(self._before)

    def __repr__(self) -> str:
        return f"<policy {self.name!r}>"


def set_policy(policy: str) -> Policy:
    """Set what the accelerated functions of this process do when a call has to be recorded.

    Args:
        policy: "default" records; "warn-on-retrace" records and warns (RetraceWarning) why, once for each key;
            "error-on-retrace" raises a RetraceError that says why, also for arguments for which a function is not
            accelerated; "uncompiled" runs the underlying functions at each call and keeps all traces. There are no
            audits unless the policy is "default".

    Returns:
        A context manager that restores the policy from before; without a with-block the policy stays.

    Raises:
        ArgumentError: if there is no such policy.

    Examples:
        >>> import tracejit as tj
        >>> double = tj.dlaccelerate(lambda x: 2 * x)
        >>> _ = [double(tj.dlarray([1.0])) for _ in range(2)]
        >>> with tj.set_policy("error-on-retrace"):
        ...     double(tj.dlarray([3.0])).tolist()
        [6.0]
    """
    if not is_option(policy, POLICIES):
        raise ArgumentError(f"set_policy: expected one of {POLICIES}, not {brief(policy)}.")
    handle = Policy(policy, current)
    _apply(policy)
    return handle


def _apply(policy: str) -> None:
    global current, uncompiled
    current = policy
    uncompiled = policy == "uncompiled"
    if uncompiled:
        blockers["policy"] = None
    else:
        blockers.pop("policy", None)
