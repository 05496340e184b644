# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions for networks: the arguments by position, and those by name."""

from typing import Any

import numpy as np

from tracejit import nn

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
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
