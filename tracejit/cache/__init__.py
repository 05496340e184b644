# SPDX-License-Identifier: BSD-3-Clause
"""The cache on disk: compiled kernels, found by the hash of all that they depend on.

Nothing here raises because of what is on the disk: what is missing, damaged or not to be trusted is compiled anew.
"""
