# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions for networks: the arguments by position, and those by name."""

from typing import Any

import numpy as np

import tracejit as tj
from tracejit import nn

X = tj.dlarray(np.ones((4, 2), np.float32), "BC")
OPTIONS = tj.trainingoptions("sgdm", max_epochs=1, mini_batch_size=4, verbose=False, acceleration="none")
NET = tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(2)], seed=0)
CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "trainnet": [(((X, X), NET, "mse", OPTIONS), {})],
    "trainingoptions": [
        (
            ("adam",),
            {
                "max_epochs": 5,
                "mini_batch_size": 8,
                "initial_learn_rate": 0.01,
                "learn_rate_schedule": "piecewise",
                "learn_rate_drop_period": 3,
                "learn_rate_drop_factor": 0.5,
                "l2_regularization": 0.0,
                "gradient_threshold": 1.0,
                "gradient_threshold_method": "l2norm",
                "gradient_decay_factor": 0.8,
                "squared_gradient_decay_factor": 0.9,
                "epsilon": 1e-7,
                "shuffle": "never",
                "validation_frequency": 5,
                "validation_patience": 3,
                "output_network": "best-validation",
                "metrics": {"mean": lambda y, t: y.mean()},
                "output_fcn": lambda row: False,
                "verbose": False,
                "verbose_frequency": 3,
                "checkpoint_path": "checkpoints",
                "checkpoint_frequency": 2,
                "checkpoint_frequency_unit": "iteration",
                "acceleration": "none",
            },
        ),
        (("sgdm",), {"momentum": 0.5}),
        (
            ("lbfgs",),
            {
                "max_iterations": 5,
                "gradient_tolerance": 1e-4,
                "step_tolerance": 1e-4,
                "history_size": 5,
                "initial_inverse_hessian_factor": 0.5,
                "initial_step_size": "auto",
                "line_search_method": "strong-wolfe",
                "max_num_line_search_iterations": 10,
            },
        ),
    ],
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
