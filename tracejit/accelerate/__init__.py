# SPDX-License-Identifier: BSD-3-Clause
"""The decorator: an accelerated function, its options, its cache, and what it tells its user.

In: a function and the arguments of a call. Out: the result, by a replay or by a run that is recorded.
Imports anything but export/ and the tools above it.
"""
