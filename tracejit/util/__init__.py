# SPDX-License-Identifier: BSD-3-Clause
"""Helpers that any folder may use: text, logs, locks, frames, memory, generated functions, HTML for notebooks.

In and out: plain Python values; nothing here knows arrays, graphs or programs.
May import: config.py and errors.py.
"""
