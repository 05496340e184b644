# SPDX-License-Identifier: BSD-3-Clause
"""Data for training loops: mini-batches of arrays and of other collections of observations.

In: arrays, lists and data sets. Out: labelled arrays of some observations.
May import: functions/ and below.
"""
