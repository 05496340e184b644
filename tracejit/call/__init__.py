# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of a call, and the fast path from them to a result.

In: the arguments of a call, and the program of a trace. Out: a key with leaves and arrays; a generated call path, with
the tables for the compiled entry point. Imports record (captured state), functions (generators), array and below.
"""
