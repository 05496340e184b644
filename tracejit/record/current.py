# SPDX-License-Identifier: BSD-3-Clause
"""The recorder of each thread."""

import threading
from typing import Any


class _Current(threading.local):
    recorder: Any = None


thread = _Current()
"""The recorder of this thread, if it records."""

blockers: dict[Any, None] = {}
"""The numbers of all recordings, in any thread, which block direct calls (Note [direct calls] in direct.py)."""
