# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages for networks and layers."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import nn
from tracejit.errors import ArgumentError, DimsError, DTypeError, GradientError

X = tj.dlarray(np.ones((2, 3), np.float32), "BC")
IMAGE = tj.dlarray(np.ones((2, 4, 4, 3), np.float32), "BSSC")
STEPS = tj.dlarray(np.ones((2, 5, 3), np.float32), "BTC")


def net(*layers: Any, **options: Any) -> tj.dlnetwork:
    """Return a network for 3 features."""
    return tj.dlnetwork([nn.FeatureInput(3), *layers], seed=0, **options)


class Bare(nn.Layer):
    """A layer without predict."""


class Sourceless(nn.Layer):
    """A layer without inputs."""

    num_inputs = 0


class Returns(nn.Layer):
    """A layer that returns something."""

    count = nn.State()

    def __init__(self, result: Any) -> None:
        self.result = result
        self.count = tj.zeros(1)

    def predict(self, x: Any) -> Any:
        return self.result


class Summed(nn.Layer):
    """A layer that returns fewer axes than it takes, without labels."""

    def predict(self, x: Any) -> Any:
        return x.sum(axis=0)


class Backward(nn.Layer):
    """A layer with a backward that returns something."""

    def __init__(self, result: Any, outputs: int = 1) -> None:
        self.result = result
        self.outputs = outputs

    def predict(self, x: Any) -> Any:
        return (x,) * self.outputs

    def backward(self, x: Any, y: Any, dy: Any) -> Any:
        return self.result


class Holding(nn.Layer):
    """A layer with an attribute of any kind."""

    weights = nn.Learnable()

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def predict(self, x: Any) -> Any:
        return x


DENSE = net(nn.FullyConnected(2))
OTHER = net(nn.FullyConnected(4), nn.BatchNormalization())
RECURRENT = tj.dlnetwork([nn.SequenceInput(3), nn.LSTM(2)], seed=0)
SEVERAL = tj.dlnetwork([nn.MaxPoolingWithIndices2d(2)], initialize=False)

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: nn.Learnable(l2_factor=-1),
        ArgumentError,
        "Learnable: l2_factor must be a number of at least 0, not -1; 0 turns it off.",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu]),
        ArgumentError,
        "dlnetwork: layers[0] must be a layer, such as nn.Relu(), not <class 'tracejit.nn.layers.activations.Relu'>; "
        "call the class.",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu(name="a"), nn.Tanh(name="a")]),
        ArgumentError,
        "dlnetwork: two layers have the name 'a'; give each a name of its own, or none.",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu(name="a/b")]),
        ArgumentError,
        "dlnetwork: the name 'a/b' has a slash, which separates a layer from its inputs; leave it out.",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu(), Sourceless()]),
        ArgumentError,
        "dlnetwork: layer 'layer' (Sourceless) takes no input, but stands after 'relu'; put it first, or add it with "
        "add_layers.",
    ),
    (
        lambda: DENSE.connect_layers(1, "fc"),
        ArgumentError,
        "connect_layers: an output is named by a string, not 1.",
    ),
    (
        lambda: DENSE.connect_layers("conv", "fc"),
        ArgumentError,
        "connect_layers: the network has no layer 'conv'; its layers are 'input, fc'.",
    ),
    (
        lambda: SEVERAL.connect_layers("maxpool", "maxpool"),
        ArgumentError,
        "connect_layers: layer 'maxpool' (MaxPoolingWithIndices2d) has several outputs; name one, as in maxpool/out.",
    ),
    (
        lambda: SEVERAL.connect_layers("maxpool/none", "maxpool"),
        ArgumentError,
        "connect_layers: layer 'maxpool' (MaxPoolingWithIndices2d) has no output 'none'; it has ['out', 'indices'].",
    ),
    (
        lambda: DENSE.add_layers([nn.Relu(), nn.Tanh()]).connect_layers("tanh", "relu"),
        ArgumentError,
        "dlnetwork: the layers 'relu, tanh' are connected in a circle; remove a connection with disconnect_layers.",
    ),
    (
        lambda: net(nn.FullyConnected(2, weights_initializer="xavier")),
        ArgumentError,
        "FullyConnected: weights_initializer must be one of glorot, he, orthogonal, narrow-normal, zeros, ones, or a "
        "function of the size, not 'xavier'.",
    ),
    (
        lambda: net(nn.FullyConnected(2, weights_initializer=lambda size: np.ones(3))),
        DimsError,
        "initialize: layer 'fc' (FullyConnected), given 3(C) x 1(B) float32: weights: the initialiser returned an "
        "array of the sizes (3,), expected (2, 3).",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu()]).initialize(),
        ArgumentError,
        "initialize: nothing is known of the data for 'relu'; begin with an input layer such as nn.ImageInput, or "
        "pass example data or nn.DataLayout(size, format) for each input.",
    ),
    (
        lambda: DENSE.initialize(X, X),
        ArgumentError,
        "initialize: there are 2 examples, but the network has 1 input: input.",
    ),
    (
        lambda: net(Bare()),
        ArgumentError,
        "predict: layer 'layer' (Bare), given 3(C) x 1(B) float32: Bare: the layer has no predict; define "
        "predict(self, x), which returns the output.",
    ),
    (
        lambda: (
            net(nn.Concatenation("T", 2), initialize=False).connect_layers("input", "concat/in2").initialize()
        ),
        DimsError,
        "predict: layer 'concat' (Concatenation), given 3(C) x 1(B) float32, 3(C) x 1(B) float32: Concatenation: the "
        "input of 3(C) x 1(B) float32 has no axis 'T'; name one that it has.",
    ),
    (
        lambda: net(nn.Permute("BSSC")),
        DimsError,
        "predict: layer 'permute' (Permute), given 3(C) x 1(B) float32: Permute: order='BSSC' does not have the "
        "labels of the input, 3(C) x 1(B) float32; give each label once for each of its axes.",
    ),
    (
        lambda: tj.dlnetwork([nn.Reshape((1, 3), "CS")], tj.dlarray(np.ones(3), "C")),
        DimsError,
        "predict: layer 'reshape' (Reshape), given 3(C) float64: Reshape: the input of 3(C) float64 has no "
        "observations (B), which it keeps; label them.",
    ),
    (
        lambda: nn.Network(nn.Relu()),
        ArgumentError,
        "Network: network must be a dlnetwork, not Relu().",
    ),
    (
        lambda: tj.dlnetwork([nn.ImageInput((4, 4, 3)), nn.GroupedConvolution2d(3, 2, 2)]),
        DimsError,
        "initialize: layer 'groupedconv' (GroupedConvolution2d), given 4(S) x 4(S) x 3(C) x 1(B) float32: "
        "GroupedConvolution2d: 3 channels cannot be shared by 2 groups; choose a divisor.",
    ),
    (
        lambda: tj.dlnetwork([nn.FullyConnected(2)], nn.DataLayout((None, None), "CB")),
        DimsError,
        "initialize: layer 'fc' (FullyConnected), given 1(C) x 1(B) float32: FullyConnected: the input ?(C) x ?(B) "
        "has no channels of a known size; label an axis C, and give the sizes of all axes but B and T.",
    ),
    (
        lambda: nn.FeatureInput(3, normalization="standard"),
        ArgumentError,
        "FeatureInput: normalization must be one of none, zerocenter, zscore, rescale-zero-one, rescale-symmetric, "
        "or a function, not 'standard'.",
    ),
    (
        lambda: nn.FeatureInput(3, mean=1),
        ArgumentError,
        "FeatureInput: mean is given, but normalization='none' does not use it; leave it out.",
    ),
    (
        lambda: nn.FeatureInput(3, normalization="zscore", mean=1),
        ArgumentError,
        "FeatureInput: normalization='zscore' needs mean and standard_deviation; pass them, computed over the "
        "training data.",
    ),
    (
        lambda: nn.FeatureInput(3, normalization="zerocenter", mean=np.ones(2)),
        DimsError,
        "FeatureInput: mean is of 2 float64; expected a number, one for each of 3 channels, or the size of an "
        "observation, (3,).",
    ),
    (
        lambda: DENSE.predict(np.ones((2, 3))),
        DimsError,
        "predict: layer 'input' (FeatureInput), given 2x3 float64: the input of 2x3 float64 has no labels; expected "
        '3(C) and observations (B): pass dlarray(x, "BC"), with the label of each axis.',
    ),
    (
        lambda: DENSE.predict(3),
        DimsError,
        "predict: layer 'input' (FeatureInput), given scalar int64: the input of scalar int64 has no labels; expected "
        '3(C) and observations (B): pass dlarray(x, "BC"), with the label of each axis.',
    ),
    (
        lambda: [DENSE.predict(x) for x in (X, X, X, None)],
        ArgumentError,
        "predict: expected an array, a number or a (nested) list of numbers as the input of input, not None.",
    ),
    (
        lambda: DENSE.predict(X, outputs=3),
        ArgumentError,
        "predict: an output is named by a string, not 3.",
    ),
    (lambda: nn.Permute(3), ArgumentError, "Permute: order must be a string, not 3."),
    (
        lambda: nn.Reshape((2, 2), "C"),
        DimsError,
        "Reshape: format='C' has 1 label, but output_size has 2 sizes: (2, 2); give one label for each.",
    ),
    (
        lambda: tj.functionlayer(tj.tanh, input_names=["a", "a"]),
        ArgumentError,
        "functionlayer: input_names must have one name or more, each of them once, not ['a', 'a'].",
    ),
    (
        lambda: tj.functionlayer(tj.tanh, output_names=[]),
        ArgumentError,
        "functionlayer: output_names must have one name or more, each of them once, not [].",
    ),
    (
        lambda: tj.functionlayer(tj.tanh, name=3),
        ArgumentError,
        "functionlayer: name must be a string, not 3.",
    ),
    (
        lambda: setattr(Bare(), "output_names", ["a", "a"]),
        ArgumentError,
        "Bare: output_names must have one name or more, each of them once, not ['a', 'a'].",
    ),
    (
        lambda: nn.NeuralODE(tj.dlnetwork([nn.FeatureInput(3), nn.Tanh()]), "ab"),
        DTypeError,
        "NeuralODE: data of type <U2 is not supported as tspan; use float64, float32, float16, bfloat16 (of "
        "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
    (
        lambda: nn.NeuralODE(tj.dlnetwork([nn.FeatureInput(3), nn.Tanh()]), [0, 1], gradient_mode="fast"),
        ArgumentError,
        "NeuralODE: gradient_mode must be 'direct', 'adjoint' or 'adjoint-seminorm', not 'fast'.",
    ),
    (
        lambda: nn.NeuralODE(tj.dlnetwork([nn.FeatureInput(3), nn.Tanh()]), [0, 1], relative_tolerance=0),
        ArgumentError,
        "NeuralODE: relative_tolerance must be a positive number, not 0.",
    ),
    (
        lambda: nn.DataLayout((2, 3), "BC", "flo"),
        ArgumentError,
        "DataLayout: dtype must be a NumPy dtype such as np.float32, not 'flo'.",
    ),
    (
        lambda: tj.dlnetwork([nn.SequenceInput(3), nn.MaxPooling1d(2)]),
        DimsError,
        "predict: layer 'maxpool' (MaxPooling1d), given 3(C) x 1(B) x 1(T) float32: maxpool: windows of 2(T), stride "
        "1, with padding ((0, 0),), on x of size 3(C) x 1(B) x 1(T): the output would be 0(T); windows must fit the "
        "padded input. Axes T of unknown length count as 1 here: give the least length of the data, as in "
        "nn.SequenceInput(..., min_length=), or example data.",
    ),
    (lambda: tj.dlnetwork(3), ArgumentError, "dlnetwork: layers must be a list of layers, not 3."),
    (
        lambda: tj.dlnetwork(nn.Relu(name="act")),
        ArgumentError,
        "dlnetwork: layers must be a list of layers, not Relu('act').",
    ),
    (
        lambda: tj.dlnetwork([nn.Relu(name=3)]),
        ArgumentError,
        "dlnetwork: the name of a layer must be a string, not 3; leave it out for one of the class.",
    ),
    (
        lambda: DENSE.remove_layers(3),
        ArgumentError,
        "remove_layers: the network has no layer 3; its layers are 'input, fc'.",
    ),
    (
        lambda: DENSE.replace_layer("fc", 3),
        ArgumentError,
        "dlnetwork: layers must be a list of layers, not 3.",
    ),
    (
        lambda: DENSE.replace_layer("fc", []),
        ArgumentError,
        "replace_layer: there is no layer to take the place of 'fc'; pass one, or nn.Identity().",
    ),
    (
        lambda: DENSE.with_learnables({"fc": 3}),
        ArgumentError,
        "with_learnables: learnables must be dicts by layer and parameter; that of layer 'fc' is 3.",
    ),
    (
        lambda: net(nn.FullyConnected(1, weights=[[1, 2, 3]])),
        DTypeError,
        "dlnetwork: weights of layer 'fc' (FullyConnected) is of int64, but gradients are taken by a learnable; pass "
        "an array of floating point (x.astype(np.float32)).",
    ),
    (
        lambda: DENSE.predict(X[:, :2]),
        DimsError,
        "predict: layer 'input' (FeatureInput), given 2(B) x 2(C) float32: the input of size 2(B) x 2(C) float32 "
        "does not fit the layer, which expects 3(C) and any number of observations (B), in any order of the axes.",
    ),
    (
        lambda: nn.SpatialDropout(0.5).forward(tj.dlarray(np.ones((2, 3)))),
        DimsError,
        "SpatialDropout: the input of 2x3 float64 has no labels, which tell the channels; pass "
        'dlarray(x, "BSSC"), with the label of each axis.',
    ),
    (
        lambda: net(nn.Network(tj.dlnetwork([nn.Permute("BSSC")], initialize=False))),
        DimsError,
        "initialize: layer 'permute' (Permute) of layer 'net' (Network), given 3(C) x 1(B) float32: Permute: "
        "order='BSSC' does not have the labels of the input, 3(C) x 1(B) float32; give each label once for each of "
        "its axes.",
    ),
    (
        lambda: nn.Dropout(1),
        DimsError,
        "Dropout: probability must be at least 0 and less than 1, not 1.",
    ),
    (
        lambda: nn.FullyConnected(0),
        DimsError,
        "FullyConnected: output_size must be an integer from 1 to 1099511627776, not 0.",
    ),
    (
        lambda: nn.Convolution2d(1.5, 2),
        DimsError,
        "Convolution2d: filter_size must be an integer or a tuple of integers, not 1.5.",
    ),
    (
        lambda: nn.Convolution2d((3, 3, 3), 2),
        DimsError,
        "Convolution2d: filter_size must be an integer or 2 integers of at least 1, not (3, 3, 3).",
    ),
    (
        lambda: nn.FullyConnected(2, l2_factor={"scale": 1}),
        ArgumentError,
        "FullyConnected: l2_factor has a factor for 'scale'; the learnables are weights, bias.",
    ),
    (
        lambda: tj.dlnetwork([nn.BatchNormalization()], tj.dlarray(np.ones((2, 3)), "BS")),
        DimsError,
        "initialize: layer 'batchnorm' (BatchNormalization), given 1(B) x 3(S) float64: BatchNormalization: the "
        "input ?(B) x 3(S) has no channels (C) of a known size; label an axis C, and give its size.",
    ),
    (
        lambda: nn.GRU(2, reset_gate_mode="before"),
        ArgumentError,
        "GRU: reset_gate_mode must be 'after-multiplication', 'before-multiplication' or "
        "'recurrent-bias-after-multiplication', not 'before'.",
    ),
    (
        lambda: nn.LSTM(2, has_mask_input="yes"),
        ArgumentError,
        "LSTM: has_mask_input must be True or False, not 'yes'.",
    ),
    (
        lambda: nn.LSTM(2, bias_initializer=0),
        ArgumentError,
        "LSTM: bias_initializer must be one of glorot, he, orthogonal, narrow-normal, zeros, ones, unit-forget-gate, "
        "or a function of the size, not 0.",
    ),
    (
        lambda: nn.LSTM(2, output_mode=np.ones(2)),
        ArgumentError,
        'LSTM: output_mode must be "sequence" or "last", not array([1., 1.]).',
    ),
    (
        lambda: nn.SelfAttention(2, 4, dropout_probability=1),
        DimsError,
        "SelfAttention: dropout_probability must be at least 0 and less than 1, not 1.",
    ),
    (
        lambda: nn.PositionEmbedding(2, 2, weights=np.ones((2, 2))).predict(
            tj.dlarray(np.ones((3, 4)), "TC")
        ),
        DimsError,
        "PositionEmbedding: the input of 3(T) x 4(C) float64 has 3 positions, but max_position is 2; make it as large "
        "as the longest sequence.",
    ),
    (
        lambda: nn.LSTM(2, output_mode="first"),
        ArgumentError,
        'LSTM: output_mode must be "sequence" or "last", not \'first\'.',
    ),
    (
        lambda: RECURRENT.with_state(RECURRENT.forward(STEPS)[1]).predict(STEPS[:1]),
        DimsError,
        "predict: layer 'lstm' (LSTM), given 1(B) x 5(T) x 3(C) float32: LSTM: hidden_state is of 2 observations, "
        "but the input of 1(B) x 5(T) x 3(C) float32 has 1; use net = net.reset_state() between batches of different "
        "sequences.",
    ),
    (
        lambda: nn.DataLayout((2, -1), "CB"),
        DimsError,
        "DataLayout: a size is an integer of at least 0, or None if it is unknown, not -1.",
    ),
    (
        lambda: setattr(DENSE, "learnables", OTHER.learnables),
        ArgumentError,
        "dlnetwork: learnables cannot be set, because a network is a value; write net = "
        "net.with_learnables(learnables).",
    ),
    (
        lambda: setattr(DENSE, "state", OTHER.state),
        ArgumentError,
        "dlnetwork: state cannot be set, because a network is a value; write net = net.with_state(state).",
    ),
    (
        lambda: DENSE.predict(X, acceleration="mex"),
        ArgumentError,
        'predict: acceleration must be "auto" or "none", not \'mex\'.',
    ),
    (
        lambda: net(nn.Relu(), initialize=False).predict(X),
        ArgumentError,
        "predict: the network is not initialised; use net = net.initialize() if it begins with an input layer, or "
        "net = net.initialize(x) with example data.",
    ),
    (
        DENSE.predict,
        ArgumentError,
        "predict: 0 arrays given, but the network has 1 input: input.",
    ),
    (
        lambda: DENSE.with_learnables({"fc": {"weights": np.ones((2, 2)), "bias": np.ones(2)}}),
        DimsError,
        "with_learnables: fc/weights is of 2x2 float64, expected 2x3 float32; does it belong to a different network?",
    ),
    (
        lambda: net(nn.FullyConnected(2, bias="zeros")),
        ArgumentError,
        "dlnetwork: bias of layer 'fc' (FullyConnected) must be an array or None, not str.",
    ),
    (
        lambda: net(Holding(lock=threading.Lock())),
        ArgumentError,
        "dlnetwork: lock of layer 'layer' (Holding) is a lock, which cannot be copied; keep numbers, strings, "
        "functions, arrays or containers of them in a layer.",
    ),
    (
        lambda: net(Returns((X, X, X))),
        ArgumentError,
        "predict: layer 'layer' (Returns) returned 3 results; expected 1 output and 1 array of state (count).",
    ),
    (
        lambda: net(Returns(None)),
        ArgumentError,
        "predict: layer 'layer' (Returns), given 3(C) x 1(B) float32: predict: layer 'layer' (Returns) returned a "
        "NoneType; predict of a layer must return arrays.",
    ),
    (
        lambda: net(Summed()),
        DimsError,
        "predict: layer 'layer' (Summed), given 3(C) x 1(B) float32: an input 'CB' reached the layer without labels, "
        "and it returned 1 axes, expected 2; derive it from nn.Formattable too, and return labelled arrays.",
    ),
    (
        lambda: net(nn.Relu(), initialize=False).summary(),
        ArgumentError,
        "summary: the network is not initialised; use net = net.initialize(x) first.",
    ),
    (
        lambda: DENSE.learnables["conv"],
        ArgumentError,
        "table: there is no row 'conv'; index by a layer, or by a layer and a parameter: [('fc', 'bias'), ('fc', "
        "'weights')].",
    ),
    (
        lambda: DENSE.learnables.with_value("fc", "scale", 1),
        ArgumentError,
        "with_value: there is no row ('fc', 'scale'); the rows are [('fc', 'weights'), ('fc', 'bias')].",
    ),
    (
        lambda: DENSE.with_state(3),
        ArgumentError,
        "with_state: state must be a table of the network, or dicts by layer and parameter, not 3.",
    ),
    (
        lambda: DENSE.with_state(OTHER.state),
        ArgumentError,
        "with_state: state belongs to a different network: it has batchnorm/trained_mean, which this network does not "
        "have; pass what a network with the same layers gave.",
    ),
    (
        lambda: OTHER.with_state(DENSE.state),
        ArgumentError,
        "with_state: state belongs to a different network: it lacks batchnorm/trained_mean, which this network has; "
        "pass what a network with the same layers gave.",
    ),
    (
        lambda: DENSE.remove_layers("conv"),
        ArgumentError,
        "remove_layers: the network has no layer 'conv'; its layers are 'input, fc'.",
    ),
    (
        lambda: DENSE.connect_layers("input", "fc"),
        ArgumentError,
        "connect_layers: fc takes the output of 'input' already; disconnect_layers first.",
    ),
    (
        lambda: DENSE.disconnect_layers("fc", "fc"),
        ArgumentError,
        "disconnect_layers: fc and fc are not connected; net.connections lists what is.",
    ),
    (
        lambda: (
            SEVERAL.add_layers(nn.Relu())
            .connect_layers("maxpool/indices", "relu")
            .replace_layer("maxpool", nn.Tanh())
        ),
        ArgumentError,
        "replace_layer: the output 'indices' is connected, and layer 'maxpool' has the outputs ['out']; disconnect "
        "it first, or give the layer one of this name.",
    ),
    (
        lambda: DENSE.tie(("fc", "weights"), ("fc", "scale")),
        ArgumentError,
        "tie: there is no learnable ('fc', 'scale'); pass layer and parameter of rows of net.learnables: [('fc', "
        "'weights'), ('fc', 'bias')].",
    ),
    (
        lambda: DENSE.tie(("fc", "weights"), ("fc", "bias")),
        DimsError,
        "tie: fc/weights is of 2x3 float32, but fc/bias is of 2 float32; they must have the same sizes.",
    ),
    (
        lambda: DENSE.with_learn_rate_factor("fc", "scale", 1),
        ArgumentError,
        "with_learn_rate_factor: layer 'fc' has no learnable 'scale'; the learnables are [('fc', 'weights'), ('fc', "
        "'bias')].",
    ),
    (
        lambda: tj.dlnetwork([nn.PositionEmbedding(2, 9)], X),
        DimsError,
        "predict: layer 'posemb' (PositionEmbedding), given 1(B) x 3(C) float32: PositionEmbedding: the input of "
        "1(B) x 3(C) float32 has no axis T, and not one axis S; label the axis of its positions.",
    ),
    (
        lambda: nn.Indexing1d("middle"),
        ArgumentError,
        'Indexing1d: which must be "first", "last" or "mean", not \'middle\'.',
    ),
    (
        lambda: net(Backward(1, 2)),
        ArgumentError,
        "predict: layer 'layer' (Backward), given 3(C) x 1(B) float32: predict: layer 'layer' (Backward) returned 2 "
        "results; expected 1 output, because a layer with backward keeps no state.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(net(Backward((1, 2))).predict(x).sum(), x), X),
        ArgumentError,
        "backward: layer 'layer' (Backward) returned 2 gradients; expected one for each of 1 input and 0 learnables, "
        "in this order.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(net(Backward(None)).predict(x).sum(), x), X),
        GradientError,
        "backward: layer 'layer' (Backward) returned no gradient by input 1, which is 3x2 float32 and whose gradient "
        "is needed; return an array of its size, zeros if no output depends on it.",
    ),
    (
        lambda: DENSE.tie(("fc", "weights"), ("fc", "weights")),
        ArgumentError,
        "tie: fc/weights is given twice; pass two rows of net.learnables.",
    ),
    (
        lambda: tj.checklayer(nn.Relu),
        ArgumentError,
        "checklayer: layer must be an instance of nn.Layer, not <class 'tracejit.nn.layers.activations.Relu'>.",
    ),
    (
        lambda: tj.checklayer(nn.Relu()),
        ArgumentError,
        "checklayer: 0 layouts given, expected one for each of the inputs ['in']; pass nn.DataLayout(size, format), or "
        "example data.",
    ),
    (
        lambda: nn.Linear,
        AttributeError,
        "nn.Linear: there is no such name; nn.FullyConnected(outputs) is this layer, which finds the number of inputs "
        "itself.",
    ),
)
