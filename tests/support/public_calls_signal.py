# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of transforms of segments: the arguments by position, and those by name."""

from typing import Any

import numpy as np

WAVE = np.sin(np.arange(12.0)).reshape(1, 12)
LENGTHS = {"overlap_length": 2, "fft_length": 5, "axis": -1}

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "stft": [((WAVE, 4), LENGTHS), ((WAVE, np.ones(4)), {"data_format": "BT"})],
    "istft": [
        ((np.ones((3, 2), complex), 4), {**LENGTHS, "one_sided": True}),
        ((np.ones((1, 3, 2), complex), np.ones(4)), {"data_format": "BST"}),
    ],
}
