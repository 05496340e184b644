# SPDX-License-Identifier: BSD-3-Clause
"""Export: the traces of an accelerated function as a folder, and the folder as a function again.

In: an accelerated function, or an exported folder. Out: a folder of programs, constants and object code, or a
LoadedFunction. May import everything below it, and NumPy; LLVM and Numba only inside functions.
"""
