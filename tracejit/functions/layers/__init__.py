# SPDX-License-Identifier: BSD-3-Clause
"""The functions of networks: convolutions, pooling, normalisation, recurrence, attention, activations, losses.

In: dlarrays, or arrays with `data_format`. Out: dlarrays with the labels of the input.
May import: the files of functions/ beside this folder, and what is below functions.
"""
