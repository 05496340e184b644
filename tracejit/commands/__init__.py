# SPDX-License-Identifier: BSD-3-Clause
"""The commands: each is a file with ``add(commands)``, and a function from arguments to a Result.

What a command needs that is not cheap to import is imported by the function.
"""
