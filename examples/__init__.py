# SPDX-License-Identifier: BSD-3-Clause
"""Examples; each runs by itself (python examples/rosenbrock.py) and is installed as tracejit.examples."""
