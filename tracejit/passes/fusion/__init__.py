# SPDX-License-Identifier: BSD-3-Clause
"""Passes that group ops into steps.

In: a Graph. Out: `Fused`, loops and single nodes in order, with a reason for each pair that stays apart.
May import: passes/graph/ and below.
"""
