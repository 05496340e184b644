# SPDX-License-Identifier: BSD-3-Clause
"""The emission of source.

In: a `Plan`. Out: a `Program`: the text of kernels as readable Python, and rows of kernel and arguments.
May import: passes/ and below; the text names functions of kernels/, which are never imported here.
"""
