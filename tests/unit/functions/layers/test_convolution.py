# SPDX-License-Identifier: BSD-3-Clause
"""dlconv and dltranspconv: values and derivatives against plain loops and PyTorch, labels, sizes, messages."""

import random
from typing import Any, NamedTuple

import effort
import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit.ops import OPS, convolution_numpy
from tracejit.testing import check_gradients


class Case(NamedTuple):
    """Sizes of a convolution, for arrays in PyTorch's order, and the labels of the arrays that are given instead."""

    batch: int
    groups: int
    channels: int
    filters: int
    extents: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    data_format: str
    weights_format: str

    @property
    def size(self) -> tuple[int, ...]:
        return tuple(
            (n + before + after - (k - 1) * d - 1) // s + 1
            for n, k, s, d, (before, after) in zip(
                self.extents, self.taps, self.strides, self.dilation, self.pairs, strict=True
            )
        )

    def arrays(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return input, weights, bias and a cotangent of the result."""
        rng = np.random.default_rng(seed)
        filters = self.groups * self.filters
        shapes = (
            (self.batch, self.groups * self.channels, *self.extents),
            (filters, self.channels, *self.taps),
            (filters,),
            (self.batch, filters, *self.size),
        )
        x, w, b, ct = (rng.standard_normal(shape) for shape in shapes)
        return x, w, b, ct

    @property
    def options(self) -> dict[str, Any]:
        return {
            "stride": self.strides,
            "padding": self.pairs,
            "dilation_factor": self.dilation,
            "groups": self.groups,
        }


def shuffled(rnd: random.Random, labels: str) -> str:
    return "".join(rnd.sample(labels, len(labels)))


def case_of(rnd: random.Random) -> Case:
    """Return a random convolution whose windows fit."""
    axes = rnd.randint(1, 3)
    while True:
        groups = rnd.choice([1, 1, 2, 3])
        channels, filters = rnd.choice([1, 1, 2, 3, 9]), rnd.choice([1, 2, 3])
        case = Case(
            rnd.choice([0, 1, 2, 3]), groups, channels, filters,
            tuple(rnd.choice([1, 2, 4, 5, 7]) for _ in range(axes)),
            tuple(rnd.choice([1, 1, 2, 3]) for _ in range(axes)),
            tuple(rnd.randint(1, 3) for _ in range(axes)),
            tuple(rnd.randint(1, 2) for _ in range(axes)),
            tuple((rnd.randint(0, 2), rnd.randint(0, 2)) for _ in range(axes)),
            shuffled(rnd, "BC" + "S" * axes), shuffled(rnd, "UC" + "S" * axes),
        )  # fmt: skip
        if min(case.size) > 0:
            return case


def arranged(array: np.ndarray, labels: str, wanted: str) -> np.ndarray:
    """Return an array labelled `labels` in another order of labels."""
    spatial = [axis for axis, label in enumerate(labels) if label == "S"]
    order = [spatial.pop(0) if label == "S" else labels.index(label) for label in wanted]
    return np.ascontiguousarray(array.transpose(order))


def by_loops(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the convolution of arrays in PyTorch's order, number by number."""
    y = np.zeros((case.batch, len(w), *case.size))
    padded = np.pad(x, ((0, 0), (0, 0), *case.pairs))
    for place in np.ndindex(*y.shape):
        image, u, *window = place
        first = u // case.filters * case.channels
        for tap in np.ndindex(*case.taps):
            at = [o * s + k * d for o, s, k, d in zip(window, case.strides, tap, case.dilation, strict=True)]
            for c in range(case.channels):
                y[place] += padded[(image, first + c, *at)] * w[(u, c, *tap)]
    return y


SEEDS = range(effort.sweep(40, 2000))


@pytest.mark.parametrize("seed", SEEDS)
def test_values_and_labels(seed: int) -> None:
    case = case_of(random.Random(seed))
    x, w, bias, _ = case.arrays(seed)
    labels = "BC" + "S" * len(case.taps)
    expected = by_loops(case, x, w) + bias.reshape(-1, *(1,) * len(case.taps))
    given = arranged(x, labels, case.data_format)
    weights = arranged(w, labels.replace("B", "U"), case.weights_format)
    y = tj.dlconv(
        tj.dlarray(given, case.data_format), weights, bias, weights_format=case.weights_format, **case.options
    )
    assert tj.dims(y) == case.data_format
    np.testing.assert_allclose(y._data, arranged(expected, labels, case.data_format), atol=1e-12)
    again = tj.dlconv(
        given, tj.dlarray(weights, case.weights_format), bias, data_format=case.data_format, **case.options
    )
    assert tj.dims(again) == ""
    np.testing.assert_array_equal(again._data, y._data)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_transposed_convolution_is_the_adjoint(seed: int) -> None:
    case = case_of(random.Random(seed))
    x, w, _, ct = case.arrays(seed)
    labels = "BC" + "S" * len(case.taps)
    spans = [(k - 1) * d + 1 for k, d in zip(case.taps, case.dilation, strict=True)]
    rest = [
        n + before + after - (o - 1) * s - span
        for n, o, s, span, (before, after) in zip(
            case.extents, case.size, case.strides, spans, case.pairs, strict=True
        )
    ]
    options = {**case.options, "cropping": case.options.pop("padding"), "output_padding": rest}
    del options["padding"]
    dx = tj.dltranspconv(
        tj.dlarray(arranged(ct, labels, case.data_format), case.data_format), w,
        weights_format="CU" + labels[2:], **options,
    )  # fmt: skip
    assert tj.dims(dx) == case.data_format
    assert dx.shape == arranged(x, labels, case.data_format).shape
    # <conv(x), ct> = <x, conv'(ct)> for this x and any other.
    for other in (x, np.random.default_rng(seed + 1).standard_normal(x.shape)):
        expected = (by_loops(case, other, w) * ct).sum()
        found = (dx._data * arranged(other, labels, case.data_format)).sum()
        np.testing.assert_allclose(found, expected, atol=1e-9)


def gradients(case: Case, seed: int, *, transposed: bool = False) -> tuple[Any, ...]:
    """Return the value and the gradients of a convolution of labelled arrays."""
    x, w, bias, ct = case.arrays(seed)
    labels = "BC" + "S" * len(case.taps)
    arrays = (
        tj.dlarray(arranged(x, labels, case.data_format), case.data_format),
        tj.dlarray(arranged(w, labels.replace("B", "U"), case.weights_format), case.weights_format),
        tj.dlarray(bias),
    )

    def loss(x: Any, w: Any, bias: Any) -> Any:
        y = tj.dlconv(x, w, bias, **case.options)
        return (y, *tj.dlgradient((y * arranged(ct, labels, case.data_format)).sum(), x, w, bias))

    return tj.dlfeval(loss, *arrays)


@pytest.mark.parametrize("seed", SEEDS)
def test_pytorch_has_the_same_values_and_gradients(seed: int) -> None:
    torch = pytorch()
    case = case_of(random.Random(seed))
    case = case._replace(pairs=tuple((before, before) for before, _ in case.pairs), batch=max(case.batch, 1))
    if min(case.size) < 1:
        return
    x, w, bias, ct = case.arrays(seed)
    leaves = [torch.tensor(array, requires_grad=True) for array in (x, w, bias)]
    function = getattr(torch.nn.functional, f"conv{len(case.taps)}d")
    y = function(
        *leaves, stride=case.strides, padding=tuple(before for before, _ in case.pairs), dilation=case.dilation,
        groups=case.groups,
    )  # fmt: skip
    (y * torch.tensor(ct)).sum().backward()
    labels = "BC" + "S" * len(case.taps)
    expected = (
        arranged(y.detach().numpy(), labels, case.data_format),
        arranged(leaves[0].grad.numpy(), labels, case.data_format),
        arranged(leaves[1].grad.numpy(), labels.replace("B", "U"), case.weights_format),
        leaves[2].grad.numpy(),
    )
    for have, want in zip(gradients(case, seed), expected, strict=True):
        np.testing.assert_allclose(have._data, want, atol=1e-10)


@pytest.mark.parametrize("seed", range(effort.sweep(6, 100)))
def test_derivatives_of_first_and_second_order(seed: int) -> None:
    case = case_of(random.Random(seed))._replace(batch=1)
    x, w, bias, _ = case.arrays(seed)

    def convolved(x: Any, w: Any, bias: Any) -> Any:
        return tj.sin(tj.dlconv(x, w, bias, data_format="BC" + "S" * len(case.taps), **case.options))

    check_gradients(convolved, x, w, bias, order=2)


def test_derivatives_of_a_transposed_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 4, 3)), rng.standard_normal((4, 2, 3))

    def convolved(x: Any, w: Any, bias: Any) -> Any:
        y = tj.dltranspconv(x, w, bias, stride=2, cropping=(1, 0), groups=2, data_format="BCS")
        return tj.sin(y)

    check_gradients(convolved, x, w, np.ones(4), order=2)


class TestLabels:
    def test_of_weights_without_any(self) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((6, 3, 2, 2))
        expected = tj.dlconv(tj.dlarray(x, "BCSS"), w)
        keras = w.transpose(2, 3, 1, 0)
        for format, axes in (("SSCB", (2, 3, 1, 0)), ("BSSC", (0, 2, 3, 1)), ("CSSB", (1, 2, 3, 0))):
            y = tj.dlconv(tj.dlarray(x.transpose(axes), format), keras)
            np.testing.assert_allclose(y._data, expected._data.transpose(axes), atol=1e-12)
        alone = tj.dlconv(tj.dlarray(x[0], "CSS"), w)
        assert tj.dims(alone) == "CSS"
        np.testing.assert_allclose(alone._data, expected._data[0], atol=1e-12)

    def test_of_weights_of_a_transposed_convolution_without_any(self) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((3, 6, 2, 2))
        expected = tj.dltranspconv(tj.dlarray(x, "BCSS"), w)
        y = tj.dltranspconv(tj.dlarray(x.transpose(2, 3, 1, 0), "SSCB"), w.transpose(2, 3, 1, 0))
        np.testing.assert_allclose(y._data, expected._data.transpose(2, 3, 1, 0), atol=1e-12)

    @pytest.mark.parametrize("format", ["CBT", "BCT", "TCB", "CT", "TC"])
    def test_windows_move_along_time_where_there_is_no_space(self, format: str) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((2, 3, 7)), rng.standard_normal((4, 3, 2))
        expected = tj.dlconv(x, w, data_format="BCT")._data
        axes = tuple("BCT".index(label) for label in format)
        one = x if "B" in format else x[0]
        want = expected if "B" in format else expected[0]
        if "B" not in format:
            axes = tuple("CT".index(label) for label in format)
        for labels in ("UCT", "UCS"):
            y = tj.dlconv(tj.dlarray(one.transpose(axes), format), w, weights_format=labels)
            assert tj.dims(y) == format
            np.testing.assert_allclose(y._data, want.transpose(axes), atol=1e-12)

    @pytest.mark.parametrize("format", ["TBCS", "BTCS", "TCSB", "SCBT", "SCTB", "BCST", "CBTS"])
    def test_time_is_an_axis_of_images_beside_space(self, format: str) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((2, 5, 3, 7)), rng.standard_normal((4, 3, 2))  # BTCS
        expected = np.stack([tj.dlconv(x[:, t], w, data_format="BCS")._data for t in range(5)], 1)
        axes = tuple("BTCS".index(label) for label in format)
        y = tj.dlconv(tj.dlarray(x.transpose(axes), format), w, weights_format="UCS")
        assert tj.dims(y) == format
        np.testing.assert_allclose(y._data, expected.transpose(axes), atol=1e-12)

    def test_windows_move_along_space_and_time_if_weights_do(self) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((2, 3, 7, 5)), rng.standard_normal((4, 3, 2, 3))
        y = tj.dlconv(tj.dlarray(x, "BCST"), w, weights_format="UCST")
        assert tj.dims(y) == "BCST"
        np.testing.assert_allclose(y._data, tj.dlconv(x, w, data_format="BCSS")._data, atol=1e-12)


class TestOptions:
    @pytest.mark.parametrize("stride", [1, 2, 3])
    @pytest.mark.parametrize("taps", [1, 2, 3, 4])
    @pytest.mark.parametrize("dilation", [1, 2])
    def test_same_gives_a_window_for_each_stride(self, stride: int, taps: int, dilation: int) -> None:
        x, w = np.arange(1.0, 8.0)[None, None], np.ones((1, 1, taps))
        y = tj.dlconv(x, w, stride=stride, padding="same", dilation_factor=dilation, data_format="BCS")
        assert y.shape == (1, 1, -(-7 // stride))
        back = tj.dltranspconv(
            y, w, stride=stride, cropping="same", dilation_factor=dilation, data_format="BCS"
        )
        assert back.shape == (1, 1, stride * y.shape[-1])

    def test_same_puts_the_odd_zero_after(self) -> None:
        y = tj.dlconv(np.array([[[1.0, 2.0, 3.0]]]), np.ones((1, 1, 2)), padding="same", data_format="BCS")
        assert y.tolist() == [[[3.0, 5.0, 3.0]]]

    def test_causal_windows_end_where_the_output_stands(self) -> None:
        x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
        options: dict[str, Any] = {"padding": "causal", "dilation_factor": 2, "data_format": "BCT"}
        assert tj.dlconv(x, np.ones((1, 1, 2)), **options).tolist() == [[[1.0, 2.0, 4.0, 6.0]]]

    def test_spellings_of_padding(self) -> None:
        x, w = np.ones((1, 1, 5, 6)), np.ones((1, 1, 2, 2))

        def size(padding: Any) -> Any:
            return tj.dlconv(x, w, padding=padding, data_format="BCSS").shape[2:]

        assert size(1) == size((1, 1)) == size(((1, 1), (1, 1))) == size([np.int64(1), (1, 1)]) == (6, 7)
        assert size(((0, 1), (2, 0))) == size(np.array([[0, 1], [2, 0]])) == (5, 7)
        assert size((0, 2)) == (4, 9)
        line = tj.dlconv(np.ones((1, 1, 5)), np.ones((1, 1, 2)), padding=(0, 2), data_format="BCS")
        assert line.shape == (1, 1, 6)

    def test_a_bias_is_a_number_or_one_for_each_filter(self) -> None:
        x, w = np.ones((1, 2, 4)), np.ones((3, 2, 2))
        for bias, expected in (
            (2, 6.0),
            (None, 4.0),
            (0, 4.0),
            (0.0, 4.0),
            (np.float64(1.0), 5.0),
            ([1.0], 5.0),
        ):
            assert (tj.dlconv(x, w, bias, data_format="BCS")._data == expected).all()
        y = tj.dlconv(x, w, tj.dlarray([1.0, 2.0, 3.0], "C"), data_format="BCS")
        assert y._data[0, :, 0].tolist() == [5.0, 6.0, 7.0]


class TestSizes:
    def test_nothing_in_a_batch_or_no_channels(self) -> None:
        empty = tj.dlconv(np.ones((0, 3, 5)), np.ones((4, 3, 2)), 1.0, data_format="BCS")
        assert empty.shape == (0, 4, 4)
        blind = tj.dlconv(np.ones((2, 0, 5)), np.ones((4, 0, 2)), np.arange(4.0), data_format="BCS")
        np.testing.assert_array_equal(blind._data, np.arange(4.0)[None, :, None] * np.ones((2, 4, 4)))
        assert tj.dlconv(np.ones((2, 3, 5)), np.ones((0, 3, 2)), data_format="BCS").shape == (2, 0, 4)

    def test_gradients_of_no_filters(self) -> None:
        def gradients(x: tj.dlarray, w: tj.dlarray) -> Any:
            return tj.dlgradient(tj.dlconv(x, w, data_format="BCS").sum(), x, w)

        by_input, by_filters = tj.dlfeval(
            gradients, tj.dlarray(np.ones((2, 3, 5))), tj.dlarray(np.ones((0, 3, 2)))
        )
        np.testing.assert_array_equal(tj.extractdata(by_input), np.zeros((2, 3, 5)))
        assert by_filters.shape == (0, 3, 2)

    def test_a_window_larger_than_the_padded_input_is_refused(self) -> None:
        with pytest.raises(tj.DimsError, match=r"the output size would be \(4 - 5\) // 1 \+ 1 = 0"):
            tj.dlconv(np.ones((1, 1, 2)), np.ones((1, 1, 5)), padding=1, data_format="BCS")
        assert tj.dlconv(np.ones((1, 1, 2)), np.ones((1, 1, 5)), padding=(1, 2), data_format="BCS").shape == (
            1,
            1,
            1,
        )

    def test_windows_of_a_large_image_are_laid_out_in_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((3, 9, 11, 7)), rng.standard_normal((4, 9, 3, 2))

        def results() -> Any:
            def loss(x: Any, w: Any) -> Any:
                y = tj.dlconv(x, w, padding=1, stride=(2, 1), data_format="BCSS")
                return (y, *tj.dlgradient((y * y).sum(), x, w))

            return tj.dlfeval(loss, tj.dlarray(x), tj.dlarray(w))

        whole = results()
        monkeypatch.setattr(convolution_numpy, "_BLOCK", 500)
        for have, want in zip(results(), whole, strict=True):
            np.testing.assert_allclose(have._data, want._data, rtol=1e-12, atol=1e-12)

    def test_dtypes_are_those_of_products(self) -> None:
        x, w = np.ones((1, 1, 4)), np.ones((1, 1, 2))
        for first, second in (
            ("float32", "float32"),
            ("float32", "float64"),
            ("int64", "int32"),
            ("bool", "float32"),
        ):
            y = tj.dlconv(x.astype(first), w.astype(second), data_format="BCS")
            assert y.dtype == ("float32" if {first, second} <= {"float32", "bool"} else "float64")


def test_windows_of_one_tap_are_a_product_of_matrices() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((6, 3, 1, 1))
    expected = np.einsum("bchw,uc->buhw", x, w[..., 0, 0])
    for format, axes in (("BCSS", (0, 1, 2, 3)), ("SSCB", (2, 3, 1, 0)), ("BSSC", (0, 2, 3, 1))):
        for stride in (1, 2):
            y = tj.dlconv(tj.dlarray(x.transpose(axes), format), w, stride=stride, weights_format="UCSS")
            want = expected[:, :, ::stride, ::stride].transpose(axes)
            np.testing.assert_allclose(y._data, want, atol=1e-12)
        back = tj.dltranspconv(tj.dlarray(x.transpose(axes), format), w, weights_format="UCSS")
        np.testing.assert_allclose(back._data, expected.transpose(axes), atol=1e-12)


def test_the_three_ops_are_each_others_adjoints() -> None:
    names = {"convolution", "convolution_input", "convolution_weights"}
    assert names <= set(OPS) and all(OPS[name].vjp is not None for name in names)


def test_an_accelerated_convolution_is_replayed() -> None:
    def step(x: Any, w: Any) -> Any:
        y = tj.relu(tj.dlconv(x, w, 0.5, padding=1, stride=2))
        return y, tj.dlgradient(y.sum(), w, x)

    rng = np.random.default_rng(0)
    accelerated = tj.dlaccelerate(step)
    for _ in range(4):
        args = (
            tj.dlarray(rng.standard_normal((2, 3, 5, 4)), "BCSS"),
            tj.dlarray(rng.standard_normal((2, 3, 3, 3))),
        )
        found, expected = accelerated(*args), tj.dlfeval(step, *args)
        np.testing.assert_allclose(found[0]._data, expected[0]._data, atol=1e-12)
        for have, want in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(have._data, want._data, atol=1e-12)
    assert accelerated.hit_rate == 50
