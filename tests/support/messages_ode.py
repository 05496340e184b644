# SPDX-License-Identifier: BSD-3-Clause
"""The messages of ode/."""

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, DTypeError, GradientError


def layer_of(*layers):
    return tj.nn.NeuralODE(tj.dlnetwork([*layers], initialize=False), [0, 1])


def falls(t, y):
    return -y


ROWS = [
    (lambda: tj.dlode45(3, [0, 1], np.ones(2)), ArgumentError, "dlode45: fun must be a function, not 3."),
    (
        lambda: tj.dlode45(falls, [0, 1], np.ones(2), gradient_mode="tape"),
        ArgumentError,
        "dlode45: gradient_mode must be 'direct', 'adjoint' or 'adjoint-seminorm', not 'tape'.",
    ),
    (
        lambda: tj.dlode45(lambda t, y, k: k * y, [0, 1], np.ones(2), np.ones(2, np.float16)),
        DTypeError,
        "dlode45: theta must hold float64 or float32, not float16; use astype.",
    ),
    (
        lambda: tj.jvp(lambda y: tj.dlode45(falls, [0, 1], y), (np.ones(2),), (np.ones(2),)),
        GradientError,
        "dlode45: its solution has first derivatives in reverse mode only (dlgradient, vjp, jacobian with "
        "mode='reverse'), and no second derivatives; tj.dlrk4 and tj.dleuler have derivatives of any order.",
    ),
    (
        lambda: tj.dlode45(falls, 3, np.ones(2)),
        ArgumentError,
        "dlode45: tspan must be two or more times that increase or decrease, not 3.",
    ),
    (
        lambda: tj.dlrk4(falls, [0, 1, 1], np.ones(2), num_steps=3),
        ArgumentError,
        "dlrk4: tspan must be two or more times that increase or decrease, not [0, 1, 1].",
    ),
    (
        lambda: tj.dleuler(falls, [0, 1], np.ones(2), num_steps=0),
        ArgumentError,
        "dleuler: num_steps must be at least 1 and less than 2**31, not 0.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1], np.ones(2, np.float16)),
        DTypeError,
        "dlode45: y0 must hold arrays of float64, or arrays of float32, not of float16; use astype.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1], None),
        DTypeError,
        "dlode45: y0 holds no array; pass the first state, as an array or a container of arrays.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1], np.ones(2), relative_tolerance=-1),
        ArgumentError,
        "dlode45: relative_tolerance must be a positive number, not -1.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1], {"x": np.ones(2), "n": np.ones(2, int)}),
        DTypeError,
        "dlode45: y0 must hold arrays of float64, or arrays of float32, not of float64, int64; use astype.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1, 2], tj.dlarray(np.ones((2, 3)), "CT")),
        DimsError,
        "dlode45: y0 is labelled 'CT', and the states at several times need the label T; relabel y0.",
    ),
    (
        lambda: tj.dlode45(falls, [0, 1], np.ones((1,) * 64)),
        DimsError,
        "dlode45: y0 has 64 axes, and the states at several times have one more; reshape y0.",
    ),
    (
        lambda: tj.dlode45(lambda t, y: [], [0, 1], np.ones(2)),
        DimsError,
        "dlode45: the right-hand side returned []; return the derivative in the containers of the "
        "state, '*'.",
    ),
    (
        lambda: tj.dlode45(lambda t, y: {"a": y["a"][:1]}, [0, 1], {"a": np.ones(2)}),
        DimsError,
        "dlode45: the right-hand side returned a derivative of y['a'] of size (1,), expected (2,), the size of the "
        "state.",
    ),
    (
        lambda: tj.dlode45(lambda t, y: y**2, [0, 2], np.ones(1)),
        ArgumentError,
        "dlode45: the step at time 0.999961 became 2.63e-15, too small to change the time; the solution grows without "
        "bound there, or jumps. Raise relative_tolerance, end tspan earlier, or check the right-hand side.",
    ),
    (
        lambda: tj.dlnetwork([tj.nn.FeatureInput(2), layer_of(tj.nn.BatchNormalization())]),
        ArgumentError,
        "initialize: layer 'neuralode' (NeuralODE), given 2(C) x 1(B) float32: NeuralODE: the network has state, which "
        "an equation cannot update; use layers without state.",
    ),
    (
        lambda: layer_of(tj.nn.Addition(2)),
        ArgumentError,
        "NeuralODE: network must have one input and one output; this one has 2 and 1.",
    ),
]
