# SPDX-License-Identifier: BSD-3-Clause
"""The layers that come with tracejit, each a class over functions of the toolbox.

In: sizes and options. Out: a Layer, whose fields a network fills. May import the base classes of nn and all
that these may import.
"""
