# SPDX-License-Identifier: BSD-3-Clause
"""Updates of parameters by their gradients.

In: parameters in containers or a network, their gradients, the moments or the state of a solver. Out: new parameters,
new moments or a new state.
May import: accelerate/ and above.
"""
