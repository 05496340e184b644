# SPDX-License-Identifier: BSD-3-Clause
"""The traces of a key: recorded, compared, confirmed, replayed, counted and explained.

In: a function and a call with its key. Out: traces, the variants of a key, results of replays, reports.
Imports call, pipeline, describe, record, capture and what these import.
"""
