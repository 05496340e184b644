# SPDX-License-Identifier: BSD-3-Clause
"""The commands of `tracejit`, a file each, with ``add(commands)`` and a function from arguments to a Result.

In: parsed arguments. Out: a Result, printed as text or JSON by output. May import everything except cli.
Packages that are slow to import are imported inside functions.
"""
