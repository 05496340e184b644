# SPDX-License-Identifier: BSD-3-Clause
"""Rotations under the names of scipy.spatial: ``tj.spatial.transform.Rotation.from_rotvec(v).apply(x)``.

In: quaternions, matrices, rotation vectors and angles, as dlarrays, ndarrays or lists. Out: rotations, and dlarrays of
float64 whose derivatives of any order go by all of these.
May import: functions/.
"""

from tracejit.spatial import transform
from tracejit.util.missing import refusal

__all__ = ["transform"]

__getattr__ = refusal("spatial", __all__)
