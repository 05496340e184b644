# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of pooling, normalisation, losses of classes, resizing: the arguments by position, and those by name."""

from typing import Any

import numpy as np

IMAGES = np.arange(48.0).reshape(2, 2, 3, 4) % 11
WINDOW = {"stride": 1, "padding": ((0, 1), (1, 1)), "data_format": "BCSS"}

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "maxpool": [((IMAGES, 2), {**WINDOW, "return_indices": True})],
    "avgpool": [
        ((IMAGES, (2, 2)), {**WINDOW, "padding_value": "mean"}),
        ((IMAGES, "global"), {"data_format": "BCSS"}),
    ],
    "lppool": [((IMAGES, 2.0, 2), WINDOW)],
    "adaptiveavgpool": [((IMAGES, (2, 3)), {"data_format": "BCSS"})],
    "maxunpool": [((IMAGES, IMAGES.astype(np.int64), (3, 4)), {"data_format": "BCSS"})],
}
