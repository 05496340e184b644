# SPDX-License-Identifier: BSD-3-Clause
"""What stands for the derivative of a special function by an operand: a formula, ZERO, or UNKNOWN."""

from collections.abc import Callable
from typing import Any

ZERO = "zero"
UNKNOWN = "unknown"
Rule = Callable[..., Any] | str
