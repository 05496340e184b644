# SPDX-License-Identifier: BSD-3-Clause
"""Rules, one for each operand of a special function: the formula of a derivative, ZERO, or UNKNOWN."""

from collections.abc import Callable
from typing import Any

ZERO = "zero"
UNKNOWN = "unknown"
Rule = Callable[..., Any] | str
