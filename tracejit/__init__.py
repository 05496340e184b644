# SPDX-License-Identifier: BSD-3-Clause
"""Labelled arrays with derivatives, and acceleration of custom training loops."""

from tracejit.array import dlarray
from tracejit.functions.labels import dims, extractdata, finddim, isdlarray, stripdims

__all__ = ["dims", "dlarray", "extractdata", "finddim", "isdlarray", "stripdims"]
