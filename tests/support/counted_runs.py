# SPDX-License-Identifier: BSD-3-Clause
"""The mark of tests whose functions put something into a queue, so that their runs are counted: replays do not."""

import pytest

counts_runs = pytest.mark.filterwarnings(
    "ignore:.*which happens while it is recorded only:tracejit.LostChangeWarning"
)
