# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages for pooling, normalisation, losses of classes and resizing."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError
from tracejit.ops import OPS

IMAGES = tj.dlarray(np.ones((2, 3, 4, 5)), "BCSS")
IMAGES_AVAL = Aval((2, 3, 4, 5), "BCSS", np.dtype(np.float64))
INDEX_AVAL = Aval((2, 3), None, np.dtype(np.int64))
SCORES = tj.dlarray(np.full((2, 3), 0.5), "BC")
TABLE = np.ones((2, 3))
TABLE_AVAL = Aval((2, 3), None, np.dtype(np.float64))
ROW = tj.dlarray(np.ones((2, 4)), "BS")

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.maxpool(tj.dlarray(np.ones((2, 3)), "BC"), 2),
        DimsError,
        "maxpool: x of size 2(B) x 3(C) has neither spatial axes (S) nor time (T), along which maxpool pools; label "
        "them.",
    ),
    (
        lambda: tj.maxpool(tj.dlarray(np.ones((1, 1, 1, 1)), "SSSS"), 1),
        DimsError,
        "maxpool: x of size 1(S) x 1(S) x 1(S) x 1(S) has 4 spatial axes; maxpool pools along at most 3.",
    ),
    (
        lambda: tj.maxpool(IMAGES, (2, 2, 2)),
        ArgumentError,
        "maxpool: pool_size must be an integer or one for each of the 2 spatial axes, not (2, 2, 2).",
    ),
    (
        lambda: tj.maxpool(IMAGES, "all"),
        ArgumentError,
        "maxpool: pool_size must be \"global\" or integers, not 'all'.",
    ),
    (
        lambda: tj.maxpool(IMAGES, 2, padding="causal"),
        ArgumentError,
        'maxpool: padding must be "same", an integer, one for each of the 2 spatial axes or a pair (before, after) for '
        "each, not 'causal'.",
    ),
    (
        lambda: tj.maxpool(IMAGES, 2, padding=((1, 1), (1, -1))),
        DimsError,
        "maxpool: padding must be at least 0 and below 2**40, not -1.",
    ),
    (
        lambda: tj.avgpool(IMAGES, (5, 3), stride=2),
        DimsError,
        "avgpool: windows of 5(S) x 3(S), stride 2x2, with padding ((0, 0), (0, 0)), on x of size 2(B) x 3(C) x 4(S) x "
        "5(S): the output would be 0(S) x 2(S); windows must fit the padded input.",
    ),
    (
        lambda: tj.avgpool(IMAGES, 2, padding=2),
        DimsError,
        "avgpool: windows of 2(S) x 2(S), stride 1x1, with padding ((2, 2), (2, 2)), on x of size 2(B) x 3(C) x 4(S) x "
        "5(S): the outermost windows would hold padding only; padding must be smaller than pool_size.",
    ),
    (
        lambda: tj.avgpool(tj.dlarray(np.ones((2, 0)), "BS"), "global"),
        DimsError,
        "avgpool: axis 1 of x of size 2(B) x 0(S) is empty; there is nothing to pool.",
    ),
    (
        lambda: tj.avgpool(IMAGES, 2, padding_value=1),
        ArgumentError,
        'avgpool: padding_value must be 0 or "mean", not 1.',
    ),
    (
        lambda: tj.lppool(IMAGES, 0, 2),
        ArgumentError,
        "lppool: norm_type must be a positive number, not 0.",
    ),
    (
        lambda: OPS["avgpool"].infer(
            IMAGES_AVAL, axis=2, size=(5, 5), stride=(1, 1), padding=((0, 0), (0, 0)), count_padding=True
        ),
        DimsError,
        "avgpool: windows of 5x5, 1x1 apart, with padding ((0, 0), (0, 0)), do not fit x of 2(B) x 3(C) x 4(S) x 5(S) "
        "from axis 2 on: the result would be 0x1.",
    ),
    (
        lambda: tj.maxunpool(ROW, np.zeros((2, 4)), 9),
        DTypeError,
        "maxunpool: indices have dtype float64, expected integers, as maxpool returns.",
    ),
    (
        lambda: tj.maxunpool(ROW, np.zeros((2, 3), np.int64), 9),
        DimsError,
        "maxunpool: indices are of size 2x3 and y of size 2(B) x 4(S); there must be an index for each element.",
    ),
    (
        lambda: tj.maxunpool(ROW, np.zeros((2, 4), np.int64), (3, 9)),
        DimsError,
        "maxunpool: output_size=(3, 9) does not fit y of size 2(B) x 4(S); give the sizes of its 1 spatial axes, or "
        "all sizes with the others as they are.",
    ),
    (
        lambda: tj.maxunpool(ROW, np.full((2, 4), 9), 9),
        BoundsError,
        "maxunpool: index 9 is out of range for an image of 9 elements; valid indices are 0 to 8.",
    ),
    (
        lambda: OPS["maxunpool"].infer(IMAGES_AVAL, INDEX_AVAL, axis=1, extent=3),
        DimsError,
        "maxunpool: index has size 2x3 and v 2(B) x 3(C) x 4(S) x 5(S); there must be an index for each element.",
    ),
    (
        lambda: tj.maxunpool(SCORES, [[0, 1, 2]] * 2, 9),
        DimsError,
        "maxunpool: y of size 2(B) x 3(C) has neither spatial axes (S) nor time (T), along which maxunpool puts "
        "elements; label them.",
    ),
    (
        lambda: tj.maxunpool(None, [0], 9),
        ArgumentError,
        "maxunpool: expected an array, a number or a (nested) list of numbers as y, not None.",
    ),
    (
        lambda: tj.maxpool(np.ones((2, 4)), 2, data_format="B"),
        DimsError,
        "maxpool: data_format 'B' labels 1 axes, but the data has 2; give one label for each axis (U where an axis has "
        "no meaning).",
    ),
    (
        lambda: tj.batchnorm(IMAGES, 0, np.ones(3) * 1j),
        DTypeError,
        "batchnorm: scale of complex128 numbers would lose their imaginary parts as float64, in a function of real "
        "numbers; pass x.real, x.imag or abs(x).",
    ),
    (
        lambda: tj.prelu(SCORES, 1j),
        DTypeError,
        "prelu: alpha of complex128 numbers would lose their imaginary parts as float64, in a function of real "
        "numbers; pass x.real, x.imag or abs(x).",
    ),
    (
        lambda: tj.batchnorm(tj.dlarray(np.ones((2, 4)), "BS"), 0, 1),
        DimsError,
        "batchnorm: x of size 2(B) x 4(S) has no channels (C) to scale; label them.",
    ),
    (
        lambda: tj.batchnorm(IMAGES, np.zeros(2), 1),
        DimsError,
        "batchnorm: offset is of size 2, but x has 3 channels; offset must be a number for each channel, or one "
        "number.",
    ),
    (
        lambda: tj.batchnorm(IMAGES, 0, 1, np.zeros(3)),
        ArgumentError,
        "batchnorm: mean and variance must be given both, or neither.",
    ),
    (
        lambda: tj.batchnorm(IMAGES, 0, 1, mean_decay=0.1),
        ArgumentError,
        "batchnorm: a decay is given without mean and variance, the statistics so far; pass those, zeros and ones at "
        "first.",
    ),
    (
        lambda: tj.batchnorm(tj.dlarray(np.ones((0, 3)), "BC"), 0, 1),
        DimsError,
        "batchnorm: x of size 0(B) x 3(C) is empty, so that it has no mean; pass mean and variance, or a batch with "
        "observations.",
    ),
    (
        lambda: tj.layernorm(IMAGES, 0, 1, epsilon=-1),
        ArgumentError,
        "layernorm: epsilon must be a number >= 0, not -1.",
    ),
    (
        lambda: tj.layernorm(IMAGES, 0, 1, operation_dimension="all"),
        ArgumentError,
        "layernorm: operation_dimension must be one of auto, channel-only, spatial-channel, batch-excluded, not 'all'.",
    ),
    (
        lambda: tj.groupnorm(IMAGES, 2, 0, 1),
        DimsError,
        "groupnorm: x of size 2(B) x 3(C) x 4(S) x 5(S) has 3 channels, which do not make 2 groups; the number of "
        "groups must divide the number of channels.",
    ),
    (
        lambda: tj.instancenorm(tj.dlarray(np.ones((2, 3)), "BC"), 0, 1),
        DimsError,
        "instancenorm: x with the labels 'BC' has one element for each channel and observation, and so no deviation; "
        "expected axes S, T or U as well.",
    ),
    (
        lambda: tj.crosschannelnorm(IMAGES, 0),
        ArgumentError,
        "crosschannelnorm: window must be a positive integer, not 0.",
    ),
    (
        lambda: tj.crosschannelnorm(IMAGES, 3, k=0),
        ArgumentError,
        "crosschannelnorm: k must be at least 1e-5, not 0.",
    ),
    (
        lambda: tj.indexcrossentropy(ROW, [0, 1]),
        DimsError,
        "indexcrossentropy: y of size 2(B) x 4(S) has no classes (C); label them.",
    ),
    (
        lambda: tj.indexcrossentropy(SCORES, [0.5, 1.0]),
        DTypeError,
        "indexcrossentropy: targets have dtype float64, expected integers, the numbers of the classes; cast them "
        "(targets.astype(np.int64)), or use crossentropy for probabilities.",
    ),
    (
        lambda: tj.indexcrossentropy(SCORES, [0, 1, 1]),
        DimsError,
        "indexcrossentropy: targets are of size 3, but y is of size 2(B) x 3(C); expected a number for each place "
        "without the classes, 2(B).",
    ),
    (
        lambda: tj.indexcrossentropy(SCORES, [0, 3]),
        BoundsError,
        "indexcrossentropy: target 3 is no class of y of size 2(B) x 3(C); classes are 0 to 2. mask_index= names a "
        "number that does not count.",
    ),
    (
        lambda: tj.indexcrossentropy(SCORES, [0, 1], [1.0, 2.0]),
        DimsError,
        "indexcrossentropy: weights are of size 2, but y of size 2(B) x 3(C) has 3 classes; expected one number for "
        "each.",
    ),
    (
        lambda: tj.focalcrossentropy(SCORES, SCORES, gamma=-1),
        ArgumentError,
        "focalcrossentropy: gamma must be a number >= 0, not -1.",
    ),
    (
        lambda: tj.focalcrossentropy(SCORES, SCORES, classification_mode="two"),
        ArgumentError,
        "focalcrossentropy: classification_mode must be \"single-label\" or \"multilabel\", not 'two'.",
    ),
    (
        lambda: tj.focalcrossentropy(ROW, ROW),
        DimsError,
        "focalcrossentropy: y is of 2(B) x 4(S), without classes (C); label them, or use "
        'classification_mode="multilabel" for elements that are independent probabilities.',
    ),
    (
        lambda: tj.dice(ROW, ROW, epsilon=0),
        ArgumentError,
        "dice: epsilon must be a positive number, not 0.",
    ),
    (
        lambda: tj.celu(ROW, 0),
        ArgumentError,
        "celu: alpha must not be 0, because x is divided by it.",
    ),
    (
        lambda: tj.hardtanh(ROW, 1, 1),
        ArgumentError,
        "hardtanh: low must be below high, found low=1 and high=1.",
    ),
    (
        lambda: tj.clippedrelu(ROW, 0),
        ArgumentError,
        "clippedrelu: ceiling must be a positive number, not 0.",
    ),
    (
        lambda: tj.prelu(SCORES, [0.1, 0.2]),
        DimsError,
        "prelu: alpha is of size 2 and x of size 2(B) x 3(C); alpha must be a number for each channel (C), or "
        "one number.",
    ),
    (
        lambda: tj.glu(SCORES, axis=1, data_format="BC"),
        ArgumentError,
        "glu: axis=1 and data_format='BC' both say where the channels are; pass one of them.",
    ),
    (
        lambda: tj.glu(ROW),
        DimsError,
        "glu: x of size 2(B) x 4(S) has no channels (C) to halve; name the axis with axis=.",
    ),
    (
        lambda: tj.glu(SCORES),
        DimsError,
        "glu: axis 1 of x of size 2(B) x 3(C) has 3 elements, which make no two halves.",
    ),
    (
        lambda: tj.elu(ROW, [1.0, 2.0]),
        DimsError,
        "elu: alpha is of size 2; it must be one number.",
    ),
    (
        lambda: tj.embed([0.5], TABLE),
        DTypeError,
        "embed: x has dtype float64, expected integers, the numbers of rows; cast them (x.astype(np.int64)).",
    ),
    (
        lambda: tj.embed(tj.dlarray([[1, 2]], "BC"), TABLE),
        DimsError,
        "embed: x of size 1(B) x 2(C) has 2 channels; the channels of the result take their place, so there must be 1, "
        "or none.",
    ),
    (
        lambda: tj.embed([0], SCORES, weights_format="UC"),
        DimsError,
        "embed: weights_format='UC' is given for weights of size 2(B) x 3(C), which have labels of their own; leave "
        "weights_format out.",
    ),
    (
        lambda: tj.embed([0], SCORES),
        DimsError,
        "embed: weights are of size 2(B) x 3(C); expected a table (vocabulary, channels), or the labels U and C.",
    ),
    (
        lambda: tj.embed([0, -1], TABLE),
        BoundsError,
        "embed: -1 is no row of weights, which have 2; valid numbers are 0 to 1.",
    ),
    (
        lambda: OPS["sparse_product"].numpy(np.array([0, 3]), np.array([0, 1]), np.ones(2), np.ones((2, 1))),
        BoundsError,
        "sparse_product: rows begin beyond the 2 elements.",
    ),
    (
        lambda: OPS["sparse_product"].numpy(np.array([0, 2]), np.array([0, 7]), np.ones(2), np.ones((2, 1))),
        BoundsError,
        "sparse_product: column 7 is out of range for 2 columns.",
    ),
    (
        lambda: OPS["sparse_product"].infer(INDEX_AVAL, TABLE_AVAL, INDEX_AVAL, TABLE_AVAL),
        DimsError,
        "sparse_product: operands have sizes 2x3, 2x3, 2x3, 2x3, expected where rows begin, the columns of elements, "
        "and a number for each element or a matrix.",
    ),
    (
        lambda: OPS["embed"].numpy(TABLE, np.array([2])),
        BoundsError,
        "embed: index 2 is out of range for 2 rows; valid indices are 0 to 1.",
    ),
    (
        lambda: OPS["embed"].infer(IMAGES_AVAL, INDEX_AVAL),
        DimsError,
        "embed: expected a table of rows and a vector of places, found 2(B) x 3(C) x 4(S) x 5(S) and 2x3.",
    ),
    (
        lambda: OPS["embed"].infer(TABLE_AVAL, TABLE_AVAL._replace(shape=(2,))),
        DTypeError,
        "embed: places have dtype float64, expected integers.",
    ),
    (
        lambda: tj.dlresize(IMAGES, scale=2, method="quintic"),
        ArgumentError,
        "dlresize: method must be one of nearest, linear, cubic, not 'quintic'.",
    ),
    (
        lambda: tj.dlresize(IMAGES, scale=2, output_size=3),
        ArgumentError,
        "dlresize: give one of scale and output_size.",
    ),
    (
        lambda: tj.dlresize(IMAGES, scale=-1),
        ArgumentError,
        "dlresize: scale must be a positive number, or 2 of them, one for each of the 2 axes, not -1.",
    ),
    (
        lambda: tj.dlresize(IMAGES, output_size=(None, None)),
        ArgumentError,
        "dlresize: output_size must have an entry for each of the 2 axes, and an integer for at least one, not (None, "
        "None).",
    ),
    (
        lambda: tj.dlresize(IMAGES, scale=0.1),
        DimsError,
        "dlresize: x of size 2(B) x 3(C) x 4(S) x 5(S) would become 0(S) x 0(S) along its spatial axes; neither may be "
        "empty.",
    ),
    (
        lambda: OPS["resample"].infer(IMAGES_AVAL, INDEX_AVAL, INDEX_AVAL, axis=1),
        DimsError,
        "resample: tables of 2x3 and 2x3 do not fit axis 1 of x of 2(B) x 3(C) x 4(S) x 5(S).",
    ),
    (
        lambda: OPS["resample_planes"].infer(IMAGES_AVAL, *[INDEX_AVAL] * 8, axis=2),
        DimsError,
        "resample_planes: tables of 2x3, 2x3, 2x3, 2x3 do not fit the axes 2 and 3 of x of 2(B) x 3(C) x 4(S) x 5(S).",
    ),
    (
        lambda: tj.depthtospace(IMAGES, 2, mode="rcd"),
        ArgumentError,
        "depthtospace: mode must be \"dcr\" or \"crd\", not 'rcd'.",
    ),
    (
        lambda: tj.depthtospace(ROW, 2),
        DimsError,
        "depthtospace: x of size 2(B) x 4(S) has no channels (C); label them.",
    ),
    (
        lambda: tj.depthtospace(IMAGES, 2),
        DimsError,
        "depthtospace: x of size 2(B) x 3(C) x 4(S) x 5(S) has 3 channels, which do not make blocks of (2, 2); their "
        "number must be a multiple of 4.",
    ),
    (
        lambda: tj.spacetodepth(IMAGES, 2),
        DimsError,
        "spacetodepth: x of size 2(B) x 3(C) x 4(S) x 5(S) does not divide into blocks of (2, 2); the sizes of its "
        "spatial axes must be multiples of those of a block.",
    ),
    (
        lambda: tj.crop(IMAGES, "same"),
        ArgumentError,
        "crop: cropping must be an integer, one for each of the 2 spatial axes or a pair (before, after) for each, not "
        "'same'.",
    ),
    (
        lambda: tj.crop(IMAGES, 3),
        DimsError,
        "crop: cropping ((3, 3), (3, 3)) removes more elements than x of size 2(B) x 3(C) x 4(S) x 5(S) has along its "
        "spatial axes.",
    ),
)  # fmt: skip
