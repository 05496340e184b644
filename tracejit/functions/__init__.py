# SPDX-License-Identifier: BSD-3-Clause
"""The toolbox: the functions that users call, a file per family.

In: dlarrays, ndarrays and numbers. Out: dlarrays, composed of ops through the door, `apply`.
May import: array.py and below; no compiler. methods.py installs dlarray's methods that are functions of the toolbox.
"""
