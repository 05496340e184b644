# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions for networks: the arguments by position, and those by name."""

from typing import Any

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
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
