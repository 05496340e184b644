# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are written as text for an op: products, convolutions, recurrence, attention, CTC.

In: a launch that is no loop nest. Out: a `Kernel`, whose text keeps tiles in vector registers.
May import: names and target of codegen/, passes/ and below; the emission of loop nests imports this folder.
"""
