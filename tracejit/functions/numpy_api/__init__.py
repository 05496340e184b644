# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's names: what its functions, ufuncs and methods do with dlarrays.

In: a call of NumPy's function with dlarrays. Out: the result, composed of the toolbox; or an error in NumPy's name.
May import: the files of functions/ beside this folder, and what is below functions. methods.py installs dlarray's
methods that are functions of the toolbox.
"""
