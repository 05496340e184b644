# SPDX-License-Identifier: BSD-3-Clause
"""The inspector: one HTML page that shows compiled programs.

In: a running accelerated function, or programs of the cache. Out: the page's data, and its HTML text.
May import traces, cache, describe and everything below them.
"""
