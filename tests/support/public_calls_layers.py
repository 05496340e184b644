# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of pooling, normalisation, losses of classes, resizing: the arguments by position, and those by name."""

from typing import Any

import numpy as np

IMAGES = np.arange(48.0).reshape(2, 2, 3, 4) % 11
NUMBERS = np.array([0.5, 1.5])
SCORES = np.array([[0.5, 0.3], [0.2, 0.9]])
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
    "batchnorm": [
        ((IMAGES, NUMBERS, NUMBERS, NUMBERS, NUMBERS), {"epsilon": 1e-5, "data_format": "BCSS"}),
        ((IMAGES, 0, 1, NUMBERS, NUMBERS), {"mean_decay": 0.1, "variance_decay": 0.1, "data_format": "BCSS"}),
    ],
    "layernorm": [
        ((IMAGES, NUMBERS, NUMBERS), {"epsilon": 1e-5, "operation_dimension": "auto", "data_format": "BCSS"})
    ],
    "rmsnorm": [((IMAGES, NUMBERS), {"epsilon": 1e-5, "operation_dimension": "auto", "data_format": "BCSS"})],
    "groupnorm": [((IMAGES, 2, NUMBERS, NUMBERS), {"epsilon": 1e-5, "data_format": "BCSS"})],
    "instancenorm": [((IMAGES, NUMBERS, NUMBERS), {"epsilon": 1e-5, "data_format": "BCSS"})],
    "crosschannelnorm": [((IMAGES, 3), {"alpha": 1e-4, "beta": 0.75, "k": 2.0, "data_format": "BCSS"})],
    "indexcrossentropy": [
        (
            (SCORES, [0, 1], NUMBERS),
            {
                "from_logits": True,
                "mask_index": 1,
                "mask": [True, False],
                "reduction": "sum",
                "normalization_factor": "batch-size",
                "data_format": "BC",
            },
        ),
    ],
    "focalcrossentropy": [
        (
            (SCORES, SCORES),
            {
                "gamma": 2.0,
                "alpha": 0.25,
                "classification_mode": "single-label",
                "mask": SCORES > 0.4,
                "reduction": "sum",
                "normalization_factor": "batch-size",
                "data_format": "BC",
            },
        ),
    ],
    "dice": [
        ((SCORES, SCORES), {"generalized": True, "epsilon": 1e-8, "mask": SCORES > 0.4, "data_format": "CS"})
    ],
    **{name: [((SCORES,), {})] for name in ("selu", "mish", "hardsigmoid", "hardswish")},
    **{name: [((SCORES, 0.5), {})] for name in ("elu", "celu", "swish", "clippedrelu")},
    "hardtanh": [((SCORES, -0.5, 0.5), {})],
    "prelu": [((SCORES, NUMBERS), {"data_format": "BC"})],
    "glu": [((SCORES,), {"axis": 1}), ((SCORES,), {"data_format": "BC"})],
    "embed": [(([[0, 1, 1]], SCORES), {"data_format": "BT", "weights_format": "UC"})],
    "dlresize": [
        (
            (IMAGES,),
            {
                "scale": (2, 0.5),
                "method": "nearest",
                "geometric_transform_mode": "asymmetric",
                "nearest_rounding_mode": "floor",
                "data_format": "BCSS",
            },
        ),
        ((IMAGES,), {"output_size": (2, 3), "method": "linear", "data_format": "BCSS"}),
    ],
    "depthtospace": [((np.zeros((1, 4, 2, 2)), 2), {"mode": "crd", "data_format": "BCSS"})],
    "spacetodepth": [((np.zeros((1, 4, 2, 2)), (2, 2)), {"mode": "dcr", "data_format": "BCSS"})],
    "crop": [((IMAGES, 1), {"data_format": "BCSS"})],
}
