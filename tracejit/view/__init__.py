# SPDX-License-Identifier: BSD-3-Clause
"""The page that shows a compiled step: its data, and how they become one HTML file."""
