# SPDX-License-Identifier: BSD-3-Clause
"""The functions of the toolbox, composed of ops through the door; a file per family."""
