# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA back end: the driver, memory on the device, and programs as graphs.

In: programs for a device, whose rows say how many threads run them. Out: executables, and arrays on the device.
May import ops, program, compile, array and what stands above them.
"""
