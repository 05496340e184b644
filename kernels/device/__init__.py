# SPDX-License-Identifier: BSD-3-Clause
"""Functions that devices lack and CPUs have. Imports nothing; tracejit/compile/device_target.py compiles them."""
