# SPDX-License-Identifier: BSD-3-Clause
"""Losses: values against formulas and torch, normalisation, masks, weights, extremes, messages."""

import numpy as np
import pytest
import scipy.special
from peers import pytorch
from programs import program_of

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError
from tracejit.testing import check_gradients

ELEMENTWISE = {
    "l1loss": (tj.l1loss, np.abs),
    "l2loss": (tj.l2loss, np.square),
    "huber": (tj.huber, lambda e: np.where(abs(e) <= 1, e**2 / 2, abs(e) - 0.5)),
}


@pytest.fixture
def case(rng):
    """Probabilities 'CBT' (3, 4, 5), one-hot targets, and the elementwise cross-entropy."""
    y = scipy.special.softmax(rng.standard_normal((3, 4, 5)), axis=0)
    targets = np.moveaxis(np.eye(3)[rng.integers(0, 3, (4, 5))], -1, 0)
    return y, targets, -targets * np.log(y)


def value(loss):
    assert loss.shape == () and loss.format is None
    return loss.item()


def gradient(fun, y):
    return tj.dlfeval(lambda y: tj.dlgradient(fun(y), y), y)._data


def test_crossentropy_values(case):
    y, targets, terms = case
    x = tj.dlarray(y, "CBT")
    assert value(tj.crossentropy(x, targets)) == pytest.approx(terms.sum() / 4, rel=1e-13)
    for factor, divisor in (("batch-size", 4), ("all-elements", 60), ("none", 1)):
        loss = tj.crossentropy(x, targets, normalization_factor=factor)
        assert value(loss) == pytest.approx(terms.sum() / divisor, rel=1e-13)
    unreduced = tj.crossentropy(x, targets, reduction="none")
    assert unreduced.format == "CBT"
    np.testing.assert_allclose(unreduced._data, terms, rtol=1e-13)


def test_targets_align_by_label(case):
    y, targets, terms = case
    other = tj.dlarray(targets.transpose(1, 2, 0), "BTC")
    assert value(tj.crossentropy(tj.dlarray(y, "CBT"), other)) == pytest.approx(terms.sum() / 4, rel=1e-13)
    assert value(tj.crossentropy(y, targets, data_format="CBT")) == pytest.approx(terms.sum() / 4, rel=1e-13)
    by_targets = tj.crossentropy(y, tj.dlarray(targets, "CBT"))
    assert value(by_targets) == pytest.approx(terms.sum() / 4, rel=1e-13)
    assert tj.crossentropy(y, targets, data_format="CBT", reduction="none").format is None


def test_without_batch_there_is_one_observation():
    assert value(tj.crossentropy(tj.dlarray([0.25, 0.75], "C"), [0, 1])) == pytest.approx(-np.log(0.75))
    assert value(tj.mse(tj.dlarray([1.0, 3.0], "C"), [0, 1])) == 2.5


@pytest.mark.parametrize("mode", ["single-label", "multilabel"])
def test_logits_give_what_probabilities_give(case, mode, rng):
    _, targets, _ = case
    z = tj.dlarray(rng.standard_normal((3, 4, 5)), "CBT")
    probabilities = tj.softmax if mode == "single-label" else tj.sigmoid

    def direct(z):
        return tj.crossentropy(z, targets, from_logits=True, classification_mode=mode)

    def composed(z):
        return tj.crossentropy(probabilities(z), targets, classification_mode=mode)

    assert value(direct(z)) == pytest.approx(value(composed(z)), rel=1e-13)
    np.testing.assert_allclose(gradient(direct, z), gradient(composed, z), rtol=1e-11, atol=1e-15)
    check_gradients(direct, z, order=2)
    check_gradients(composed, z, order=2)


def test_multilabel_formula(case):
    y, targets, _ = case
    expected = -(targets * np.log(y) + (1 - targets) * np.log1p(-y))
    loss = tj.crossentropy(tj.dlarray(y, "CBT"), targets, classification_mode="multi-label")
    assert value(loss) == pytest.approx(expected.sum() / 4, rel=1e-13)
    unlabelled = tj.crossentropy(y, targets, classification_mode="multilabel", normalization_factor="none")
    assert value(unlabelled) == pytest.approx(expected.sum(), rel=1e-13)


def test_class_weights(case):
    y, targets, terms = case
    x = tj.dlarray(y, "CBT")
    weights = np.array([0.5, 2.0, 3.0])
    expected = (terms * weights[:, None, None]).sum() / 4
    for given, format in (
        (weights, None),
        (weights, "C"),
        (weights[None], "BC"),
        (weights[:, None], "CB"),
        (tj.dlarray(weights, "C"), None),
        (np.broadcast_to(weights[:, None, None], y.shape), None),
    ):
        loss = tj.crossentropy(x, targets, given, weights_format=format)
        assert value(loss) == pytest.approx(expected, rel=1e-13)


def test_masks(case):
    y, targets, terms = case
    x = tj.dlarray(y, "CBT")
    steps = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    full = np.broadcast_to(steps, y.shape)
    masked = (terms * full).sum(axis=(0, 2))
    per_observation = masked / np.maximum(full.sum(axis=(0, 2)), 1)
    for mask in (full, full.astype(bool), tj.dlarray(steps, "BT"), tj.dlarray(steps.T.copy() > 0, "TB")):
        assert value(tj.crossentropy(x, targets, mask=mask)) == pytest.approx(masked.sum() / 4, rel=1e-13)
        loss = tj.crossentropy(x, targets, mask=mask, normalization_factor="mask-included")
        assert value(loss) == pytest.approx(per_observation.sum() / 4, rel=1e-13)
    padded = np.where(full, y, np.nan)
    assert value(tj.crossentropy(tj.dlarray(padded, "CBT"), targets, mask=full)) == pytest.approx(
        masked.sum() / 4
    )


@pytest.mark.parametrize("fun", [tj.crossentropy, tj.l1loss, tj.l2loss, tj.huber])
@pytest.mark.parametrize("normalization_factor", ["batch-size", "mask-included"])
def test_padding_of_targets_reaches_no_gradient(case, fun, normalization_factor):
    y, targets, _ = case
    steps = tj.dlarray(np.arange(5) < np.array([[5], [0], [3], [1]]), "BT")
    options = {"mask": steps, "normalization_factor": normalization_factor}
    x = tj.dlarray(y, "CBT")
    padded = np.where(steps._data, targets, np.nan)
    slopes = gradient(lambda x: fun(x, padded, **options), x)
    np.testing.assert_array_equal(slopes, gradient(lambda x: fun(x, targets, **options), x))
    assert slopes.any() and not slopes[:, ~steps._data].any()


def test_mask_of_all_observations(case):
    y, targets, terms = case
    steps = np.array([True, False, True, True, False])
    loss = tj.crossentropy(
        tj.dlarray(y, "CBT"), targets, mask=tj.dlarray(steps, "T"), normalization_factor="mask-included"
    )
    assert value(loss) == pytest.approx((terms * steps).sum() / (4 * 9), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_zero_and_one(dtype):
    info = np.finfo(dtype)
    floor = float(info.tiny) / float(info.eps)
    y = tj.dlarray(np.array([[0, 1], [1, 0]], dtype), "BC")
    targets = np.array([[1, 0], [1, 0]])
    loss = tj.crossentropy(y, targets)
    assert (loss.dtype, value(loss)) == (y.dtype, pytest.approx(-np.log(floor) / 2, rel=1e-6))
    np.testing.assert_array_equal(gradient(lambda y: tj.crossentropy(y, targets), y), [[0, 0], [-0.5, 0]])

    def multilabel(y):
        return tj.crossentropy(y, targets, classification_mode="multilabel")

    most = -np.log(float(info.epsneg))
    assert value(multilabel(y)) == pytest.approx((-np.log(floor) + most) / 2, rel=1e-6)
    assert np.isfinite(gradient(multilabel, y)).all()


def test_vanishing_probabilities_still_teach():
    z = tj.dlarray(np.array([[0, 60]], np.float32), "BC")

    def loss(z):
        return tj.crossentropy(tj.softmax(z), [[1, 0]])

    assert value(loss(z)) == pytest.approx(60)
    np.testing.assert_allclose(gradient(loss, z), [[-1, 1]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_logits(dtype):
    z = tj.dlarray(np.array([[1e4, -1e4], [-1e30, 1e30]], dtype), "BC")
    wrong, right = np.array([[0, 1], [1, 0]]), np.array([[1, 0], [0, 1]])
    for mode in ("single-label", "multilabel"):

        def loss(z, targets, mode=mode):
            return tj.crossentropy(
                z, targets, from_logits=True, classification_mode=mode, normalization_factor="none"
            )

        assert value(loss(z, right)) == 0
        assert value(loss(z, wrong)) == pytest.approx(2e30, rel=1e-6)
        slopes = gradient(lambda z: loss(z, wrong), z)
        np.testing.assert_allclose(slopes, [[1, -1], [-1, 1]], rtol=1e-6)


def test_multilabel_logits_at_zero():
    z = tj.dlarray(np.zeros((1, 2)), "BC")
    slopes = gradient(
        lambda z: tj.crossentropy(z, [[1, 0]], from_logits=True, classification_mode="multilabel"), z
    )
    np.testing.assert_array_equal(slopes, [[-0.5, 0.5]])


def test_mse_is_half_the_mean_over_observations(rng):
    y, targets = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4, 3))
    x = tj.dlarray(y, "TBC")
    assert value(tj.mse(x, targets)) == pytest.approx(((y - targets) ** 2).sum() / 8, rel=1e-13)
    assert value(tj.mse(y, targets, data_format="TBC")) == value(tj.mse(x, targets))
    np.testing.assert_allclose(gradient(lambda x: tj.mse(x, targets), x), (y - targets) / 4, rtol=1e-13)
    check_gradients(lambda x: tj.mse(x, targets), x, order=2)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_regression_losses(name, rng):
    fun, formula = ELEMENTWISE[name]
    y, targets = 2 * rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    weights, mask = np.array([1.0, 0.5, 2.0]), rng.integers(0, 2, (4, 3))
    x = tj.dlarray(y, "BC")
    terms = formula(y - targets)
    assert value(fun(x, targets)) == pytest.approx(terms.sum() / 4, rel=1e-13)
    assert value(fun(y, targets, data_format="BC")) == pytest.approx(terms.sum() / 4, rel=1e-13)
    assert value(fun(y, targets, normalization_factor="all-elements")) == pytest.approx(
        terms.mean(), rel=1e-13
    )
    assert value(fun(y, targets, normalization_factor="none")) == pytest.approx(terms.sum(), rel=1e-13)
    weighted = fun(x, targets, weights, mask=mask)
    assert value(weighted) == pytest.approx((terms * weights * mask).sum() / 4, rel=1e-13)
    included = fun(x, targets, mask=mask, normalization_factor="mask-included")
    expected = ((terms * mask).sum(1) / np.maximum(mask.sum(1), 1)).sum() / 4
    assert value(included) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(fun(x, targets, reduction="none")._data, terms, rtol=1e-13)
    check_gradients(lambda x, t, w: fun(x, t, w, mask=mask), x, tj.dlarray(targets), tj.dlarray(weights, "C"))


def test_huber_transition():
    y = np.array([0.5, -2.0, 2.0, 6.0, -1e20], np.float32)
    loss = tj.huber(y, np.zeros(5), transition_point=2, reduction="none")
    np.testing.assert_allclose(loss._data, [0.125, 2, 2, 10, 2e20], rtol=1e-6)
    slopes = gradient(
        lambda y: tj.huber(y, np.zeros(5), transition_point=2, normalization_factor="none"), tj.dlarray(y)
    )
    np.testing.assert_array_equal(slopes, [0.5, -2, 2, 2, -2])
    far = tj.dlarray(np.array([np.inf, -np.inf, np.nan]))
    slopes = gradient(lambda y: tj.huber(y, np.zeros(3), normalization_factor="none"), far)
    np.testing.assert_array_equal(slopes, [1, -1, np.nan])
    assert gradient(lambda y: tj.l1loss(y, 0.0, normalization_factor="none"), tj.dlarray(0.0)) == 0


def test_the_loss_has_the_dtype_of_the_predictions():
    y = tj.dlarray(np.full((2, 2), 0.5, np.float32), "BC")
    weights, mask = np.array([1.0, 2.0]), np.ones((2, 2))
    for targets in (np.eye(2), np.eye(2, dtype=np.int64), np.eye(2, dtype=bool), [[1, 0], [0, 1]]):
        for loss in (tj.crossentropy, tj.l1loss, tj.l2loss, tj.huber):
            assert loss(y, targets, weights, mask=mask).dtype == np.float32
            assert loss(y, targets, mask=mask, normalization_factor="mask-included").dtype == np.float32
        assert tj.mse(y, targets).dtype == np.float32
    assert tj.mse(tj.dlarray(np.eye(2, dtype=np.int64), "BC"), np.eye(2)).dtype == np.float64


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16])
def test_an_option_of_numpy_keeps_the_dtype(kind):
    x = np.full((2, 3, 4), 0.5, np.float32)
    half, rows = kind(0.5), x[0]
    for result in (
        tj.huber(rows, rows, transition_point=half, data_format="BC"),
        tj.dice(rows, rows, epsilon=half, data_format="CS"),
        tj.attention(x, x, x, 2, scale=half, data_format="BTC"),
        tj.layernorm(rows, rows[0], rows[0], epsilon=half, data_format="BC"),
        tj.dropout(x, half),
    ):
        assert result.dtype == np.float32


def test_no_observations_have_no_mean():
    assert np.isnan(tj.mse(np.zeros((0, 3)), np.zeros((0, 3)), data_format="BC").item())


def test_against_torch(rng):
    torch = pytorch()
    functional = torch.nn.functional
    z, other = rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    classes = rng.integers(0, 4, 6)
    onehot, binary = np.eye(4)[classes], rng.integers(0, 2, (6, 4)).astype(float)
    weights = rng.uniform(0.5, 2, 4)
    weighted = {"weight": torch.tensor(weights), "reduction": "none"}
    cases = [
        (lambda z: tj.crossentropy(z, onehot, from_logits=True),
         lambda z: functional.cross_entropy(z, torch.tensor(classes))),
        (lambda z: tj.crossentropy(z, onehot, weights, from_logits=True),
         lambda z: functional.cross_entropy(z, torch.tensor(classes), **weighted).mean()),
        (lambda z: tj.crossentropy(tj.softmax(z), onehot),
         lambda z: functional.cross_entropy(z, torch.tensor(classes))),
        (lambda z: tj.crossentropy(z, binary, from_logits=True, classification_mode="multilabel"),
         lambda z: functional.binary_cross_entropy_with_logits(z, torch.tensor(binary), reduction="sum") / 6),
        (lambda z: tj.mse(z, other),
         lambda z: functional.mse_loss(z, torch.tensor(other), reduction="sum") / 12),
        (lambda z: tj.l1loss(z, other),
         lambda z: functional.l1_loss(z, torch.tensor(other), reduction="sum") / 6),
        (lambda z: tj.huber(z, other, transition_point=0.7, normalization_factor="all-elements"),
         lambda z: functional.huber_loss(z, torch.tensor(other), delta=0.7)),
    ]  # fmt: skip
    for ours, theirs in cases:
        tensor = torch.tensor(z, requires_grad=True)
        result = theirs(tensor)
        result.backward()
        assert value(ours(tj.dlarray(z, "BC"))) == pytest.approx(result.item(), rel=1e-12)
        np.testing.assert_allclose(
            gradient(ours, tj.dlarray(z, "BC")), tensor.grad.numpy(), rtol=1e-11, atol=1e-15
        )


@pytest.mark.parametrize("from_logits", [False, True])
def test_loss_and_gradient_are_one_kernel(from_logits, rng):
    z = tj.dlarray(rng.standard_normal((4, 5)).astype(np.float32), "BC")
    targets = np.eye(5, dtype=np.float32)[rng.integers(0, 5, 4)]

    def step(z, targets):
        y = z if from_logits else tj.softmax(z)
        loss = tj.crossentropy(y, targets, from_logits=from_logits)
        return loss, tj.dlgradient(loss, z)

    program = program_of(step, z, targets, rtol=1e-5)
    assert len(program.rows) == 2  # the rows of the batch, and the division of the sum by their number


def test_all_losses_compile(case):
    y, targets, _ = case
    mask = np.ones((4, 5), bool)

    def step(y, targets, mask):
        mask = tj.dlarray(mask, "BT")
        total = tj.mse(y, targets) + tj.huber(y, targets, [1.0, 2.0, 3.0], mask=mask)
        total += tj.l1loss(y, targets, mask=mask, normalization_factor="mask-included")
        for from_logits in (False, True):
            total += tj.crossentropy(y, targets, from_logits=from_logits, classification_mode="multilabel")
            total += tj.crossentropy(y, targets, from_logits=from_logits)
        return total, tj.dlgradient(total, y)

    program_of(step, tj.dlarray(y, "CBT"), targets, mask)


def test_messages(case):
    y, targets, _ = case
    x = tj.dlarray(y, "CBT")

    def refused(error, text, fun=tj.crossentropy, y=x, targets=targets, *args, **options):
        with pytest.raises(error, match="^" + text):
            fun(y, targets, *args, **options)

    refused(
        ArgumentError, 'crossentropy: classification_mode must be "single-label" or', classification_mode="x"
    )
    refused(ArgumentError, 'crossentropy: reduction must be "sum" or "none", not \'mean\'', reduction="mean")
    refused(ArgumentError, "crossentropy: normalization_factor must be one of batch-size, all-",
            normalization_factor="batch")  # fmt: skip
    refused(ArgumentError, 'crossentropy: normalization_factor="mask-included" needs mask',
            normalization_factor="mask-included")  # fmt: skip
    refused(ArgumentError, "crossentropy: weights_format='C' is given without weights", weights_format="C")
    refused(
        ArgumentError,
        "huber: transition_point must be one positive, finite number, not 0",
        tj.huber,
        transition_point=0,
    )
    refused(
        DimsError,
        "crossentropy: an array of size 3x4x5 has no labels, but crossentropy finds the classes",
        y=y,
    )
    refused(DimsError, r'mse: an array of size 3x4x5 has no labels, but the result is divided by the',
            tj.mse, y=y)  # fmt: skip
    refused(DimsError, r"crossentropy: y is of 3\(S\) x 4\(B\) x 5\(T\), without classes \(C\); label them",
            y=tj.dlarray(y, "SBT"))  # fmt: skip
    refused(
        DimsError,
        r"crossentropy: data_format='CBT' is given for y of size 3\(C\) x",
        data_format="CBT",
    )
    refused(DimsError, r"crossentropy: y is of size 3\(C\) x 4\(B\) x 5\(T\), but targets are of size 4x5; they"
            r".*onehotencode", targets=targets[0])  # fmt: skip
    refused(DimsError, r"mse: y is of size 4x1, but targets are of size 4; .* \(4, 1\) against \(4,\) would give 16 "
            r"differences\.$", tj.mse, np.zeros((4, 1)), np.zeros(4))  # fmt: skip
    refused(
        DimsError,
        r"mse: y is of size 4, but targets are of size 3; .* labels\.$",
        tj.mse,
        np.zeros(4),
        np.zeros(3),
    )
    refused(DimsError, r"mse: y is of .*, but targets are of size 3\(S\) x 4\(B\) x 5\(T\)", tj.mse, x,
            tj.dlarray(targets, "SBT"))  # fmt: skip
    for weights, format in (
        (np.ones(4), None),
        (np.ones((3, 2)), "CB"),
        (np.ones(3), "S"),
        (np.ones((3, 4)), None),
    ):
        refused(DimsError, r"crossentropy: weights of .* cannot be applied to y of 3\(C\) x 4\(B\) x 5\(T\); expected",
                weights=weights, weights_format=format)  # fmt: skip
    refused(DimsError, "crossentropy: weights_format='C' is given", weights=tj.dlarray([1.0] * 3, "C"),
            weights_format="C")  # fmt: skip
    refused(DimsError, "crossentropy: mask of 4x5 cannot be applied to y", mask=np.ones((4, 5)))
