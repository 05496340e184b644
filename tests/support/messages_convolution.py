# SPDX-License-Identifier: BSD-3-Clause
"""Messages of convolutions: how to provoke them, their types and texts. messages.py has them in its table."""

import numpy as np

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import ArgumentError, DimsError, DTypeError

X = tj.dlarray(np.ones((2, 6, 5, 4)), "BCSS")
W = np.ones((4, 6, 3, 3))
T = np.ones((6, 4, 3, 3))

ROWS = (
    (
        lambda: tj.dlconv(np.ones((2, 6, 5, 4)), W),
        DimsError,
        "dlconv: an array of size 2x6x5x4 has no labels, but windows move along axes S, or T where there is "
        'no S; label it with dlarray(x, format), or pass data_format (for example "CB").',
    ),
    (
        lambda: tj.dlconv(tj.dlarray(np.ones((2, 5)), "BS"), np.ones((3, 1, 1))),
        DimsError,
        "dlconv: x of size 2(B) x 5(S) has no axis C, over which a convolution sums; add one of size 1 with "
        'expand_dims(x, axis, "C").',
    ),
    (
        lambda: tj.dlconv(tj.dlarray(np.ones((2, 5)), "BC"), np.ones((3, 5))),
        DimsError,
        "dlconv: x of size 2(B) x 5(C) has 0 axes for windows to move along; expected 1 to 3 axes S, or T "
        "where there is no S.",
    ),
    (
        lambda: tj.dlconv(X, tj.dlarray(W, "UCSS"), weights_format="UCSS"),
        DimsError,
        "dlconv: weights_format='UCSS' is given for weights of size 4(U) x 6(C) x 3(S) x 3(S), which have "
        "labels of their own; leave weights_format out, or remove the labels with stripdims(weights).",
    ),
    (
        lambda: tj.dlconv(X, W[0]),
        DimsError,
        "dlconv: weights of size 6x3x3 have 3 axes, and no labels (an input 'BCSS' takes 'UCSS'), but x of "
        "size 2(B) x 6(C) x 5(S) x 4(S) takes weights with one axis C, one axis U and 2 spatial axes S; give "
        "their labels by weights_format.",
    ),
    (
        lambda: tj.dlconv(X, tj.dlarray(W, "UCSB")),
        DimsError,
        "dlconv: weights of size 4(U) x 6(C) x 3(S) x 3(B) have 4 axes, but x of size 2(B) x 6(C) x 5(S) x "
        "4(S) takes weights with one axis C, one axis U and 2 spatial axes S; give their labels by "
        "weights_format.",
    ),
    (
        lambda: tj.dlconv(X, W, np.ones(3)),
        DimsError,
        "dlconv: bias is of size 3, but the result has 4 channels, with weights of size 4(U) x 6(C) x 3(S) x "
        "3(S); bias must be (4,) or one number.",
    ),
    (
        lambda: tj.dlconv(X, W, stride=1.5),
        ArgumentError,
        "dlconv: stride must be an integer or one for each of the 2 spatial axes, not 1.5.",
    ),
    (
        lambda: tj.dlconv(X, W, stride=0),
        DimsError,
        "dlconv: stride must be at least 1 and below 2**40, not 0.",
    ),
    (
        lambda: tj.dlconv(X, W, padding="valid"),
        ArgumentError,
        'dlconv: padding must be "same", "causal", an integer, one for each of the 2 spatial axes or a pair '
        "(before, after) for each, not 'valid'.",
    ),
    (
        lambda: tj.dlconv(X, W, padding=(1, 2, 3)),
        ArgumentError,
        'dlconv: padding must be "same", "causal", an integer, one for each of the 2 spatial axes or a pair '
        "(before, after) for each, not (1, 2, 3).",
    ),
    (
        lambda: tj.dlconv(X, W, padding="causal"),
        DimsError,
        'dlconv: padding="causal" is for windows that move along one axis, but x of size 2(B) x 6(C) x 5(S) x'
        " 4(S) has 2; give numbers, such as ((2, 0), (2, 0)).",
    ),
    (
        lambda: tj.dlconv(X, W, dilation_factor=(1, 3), padding=(0, (1, 1))),
        DimsError,
        "dlconv: windows of 3 taps that span 7 elements do not fit into the axis 4(S) of x (size 2(B) x 6(C) "
        "x 5(S) x 4(S)) with padding (1, 1), which makes 6; the output size would be (6 - 7) // 1 + 1 = 0. "
        "Use a larger padding, fewer taps or a smaller dilation_factor.",
    ),
    (
        lambda: tj.dlconv(X, W[:, :3]),
        DimsError,
        "dlconv: x of size 2(B) x 6(C) x 5(S) x 4(S) has 6 channels, but weights of size 4(U) x 3(C) x 3(S) x"
        " 3(S) take 3 in each of groups=1; channels of x must be C of weights times groups, 3 * 1. Pass "
        "groups=2?",
    ),
    (
        lambda: tj.dlconv(X, np.moveaxis(W, 0, -1)),
        DimsError,
        "dlconv: x of size 2(B) x 6(C) x 5(S) x 4(S) has 6 channels, but weights of size 6(U) x 3(C) x 3(S) x"
        " 4(S) take 3 in each of groups=1; channels of x must be C of weights times groups, 3 * 1. Pass "
        "groups=2?",
    ),
    (
        lambda: tj.dlconv(X, W * 1j),
        DTypeError,
        "dlconv: weights of complex128 numbers; windows of several taps take real ones. Convolve the real and the "
        "imaginary parts, x.real and x.imag, by themselves.",
    ),
    (
        lambda: tj.dltranspconv(X * 1j, T),
        DTypeError,
        "dltranspconv: x of complex128 numbers; windows of several taps take real ones. Convolve the real and the "
        "imaginary parts, x.real and x.imag, by themselves.",
    ),
    (
        lambda: tj.dlconv(X, W, weights_format="OIHW"),
        DimsError,
        "dlconv: weights_format 'OIHW' has the label 'O'; labels are S (spatial), C (channel), B (batch), T (time) and "
        "U (unspecified).",
    ),
    (
        lambda: tj.dlconv(X, np.ones((3, 3, 4, 5)), weights_format="SSCU"),
        DimsError,
        "dlconv: x of size 2(B) x 6(C) x 5(S) x 4(S) has 6 channels, but weights of size 3(S) x 3(S) x 4(C) x"
        " 5(U) take 4 in each of groups=1; channels of x must be C of weights times groups, 4 * 1. Check the "
        'order of axes of weights; that of PyTorch is weights_format="UCSS".',
    ),
    (
        lambda: tj.dlconv(X, W[:3, :3], groups=2),
        DimsError,
        "dlconv: weights of size 3(U) x 3(C) x 3(S) x 3(S) have 3 filters, which groups=2 does not divide; "
        "all groups have the same number of filters.",
    ),
    (
        lambda: tj.dltranspconv(X, T[:3]),
        DimsError,
        "dltranspconv: x of size 2(B) x 6(C) x 5(S) x 4(S) has 6 channels, but weights of size 3(C) x 4(U) x "
        "3(S) x 3(S) take 3; C of weights must be the channels of x. Check the order of axes of weights; "
        'that of PyTorch is weights_format="CUSS".',
    ),
    (
        lambda: tj.dltranspconv(X, T, groups=4),
        DimsError,
        "dltranspconv: x of size 2(B) x 6(C) x 5(S) x 4(S) has 6 channels, which groups=4 does not divide; "
        "all groups have the same number of channels.",
    ),
    (
        lambda: tj.dltranspconv(X, T, cropping=(3, (4, 4))),
        DimsError,
        "dltranspconv: windows of 3 taps that span 3 elements make 6 of the axis 4(S) of x (size 2(B) x 6(C) "
        "x 5(S) x 4(S)), and cropping (4, 4) and output_padding 0 leave -2; the output size must be at "
        "least 1. Crop less.",
    ),
    (
        lambda: apply(
            "convolution",
            np.ones((2, 3, 4)),
            np.ones((2, 2, 3)),
            labels=("BCS", "UCS", "BUS"),
            size=(2,),
            strides=(1,),
            before=(0,),
            dilation=(1,),
            groups=1,
        ),
        DimsError,
        "convolution: operands of sizes 2x3x4 ('BCS') and 2x2x3 ('UCS') do not fit with groups=1; sizes of a "
        "label must be equal, C of weights times groups is C of x, and groups divide C and U. Use dlconv or "
        "dltranspconv.",
    ),
    (
        lambda: apply(
            "convolution",
            np.ones((1, 3, 4)),
            np.ones((2, 3, 3)),
            np.ones(3),
            labels=("BCS", "UCS", "BUS"),
            size=(2,),
            strides=(1,),
            before=(0,),
            dilation=(1,),
            groups=1,
        ),
        DimsError,
        "convolution: a bias of 3 is given for 2 filters; it has one number for each filter. Use dlconv.",
    ),
)
