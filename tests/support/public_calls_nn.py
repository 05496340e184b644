# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions for networks: the arguments by position, and those by name."""

from typing import Any

import numpy as np

from tracejit import nn

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "minibatchqueue": [
        (
            (np.ones((5, 2)), np.arange(5)),
            {
                "mini_batch_size": 2,
                "mini_batch_fcn": lambda x, t: (x, t),
                "mini_batch_format": ("BC", "B"),
                "output_cast": "float32",
                "output_as_dlarray": True,
                "partial_mini_batch": "discard",
            },
        )
    ],
    "checklayer": [((nn.Relu(), np.ones((2, 3), np.float32)), {})],
    "functionlayer": [
        (
            (lambda x: x,),
            {
                "formattable": True,
                "acceleratable": False,
                "num_inputs": 1,
                "num_outputs": 1,
                "input_names": ["in"],
                "output_names": ["out"],
            },
        )
    ],
}
