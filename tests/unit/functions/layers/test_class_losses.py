# SPDX-License-Identifier: BSD-3-Clause
"""indexcrossentropy, focalcrossentropy and dice against their formulas, crossentropy and PyTorch."""

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray
from tracejit.errors import BoundsError

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(4, 5))
P = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
T = np.array([0, 4, 2, 2])
W = RNG.uniform(0.5, 2, 5)
LOG = np.log(P)


def value(x) -> np.ndarray:
    return tj.extractdata(x)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_indexcrossentropy(from_logits: bool, dtype: str) -> None:
    y = dlarray((Z if from_logits else P).astype(dtype), "BC")
    each = -LOG[range(4), T]
    eps = 64 * np.finfo(dtype).eps

    def loss(*args, **options):
        return value(tj.indexcrossentropy(y, *args, from_logits=from_logits, **options))

    assert loss(T).dtype == dtype
    np.testing.assert_allclose(loss(T), each.sum() / 4, rtol=eps)
    np.testing.assert_allclose(loss(T, W), (W[T] * each).sum() / 4, rtol=eps)
    np.testing.assert_allclose(loss(T, W, reduction="none"), W[T] * each, rtol=eps)
    np.testing.assert_allclose(loss(T, normalization_factor="none"), each.sum(), rtol=eps)
    np.testing.assert_allclose(loss(T, normalization_factor="all-elements"), each.mean(), rtol=eps)
    kept = T != 2
    np.testing.assert_allclose(loss(T, mask_index=2), each[kept].sum() / 4, rtol=eps)
    np.testing.assert_allclose(loss(np.where(kept, T, -7), mask_index=-7), each[kept].sum() / 4, rtol=eps)
    np.testing.assert_allclose(loss(T, mask=kept), each[kept].sum() / 4, rtol=eps)
    mean = (W[T] * each)[kept].sum() / W[T][kept].sum()
    np.testing.assert_allclose(
        loss(T, W, mask_index=2, normalization_factor="weights-included"), mean, rtol=eps
    )
    np.testing.assert_allclose(loss(T, normalization_factor="weights-included"), each.mean(), rtol=eps)
    both = loss(T, mask_index=2, mask=[1, 0, 1, 1], normalization_factor="mask-included")
    np.testing.assert_allclose(both, each[0] / 4, rtol=eps)


@pytest.mark.parametrize("format", ["BC", "CB", "BCSS", "BSSC", "SCBT", "C"])
def test_labels_in_any_order_are_those_of_one_hot_vectors(format: str) -> None:
    shape = [{"B": 3, "C": 4, "S": 2 + i, "T": 2}[label] for i, label in enumerate(format)]
    y = dlarray(np.random.default_rng(1).normal(size=shape), format)
    others = format.replace("C", "")
    rest = [n for n, label in zip(shape, format, strict=True) if label != "C"]
    targets = np.random.default_rng(2).integers(0, 4, rest)
    hot = tj.onehotencode(targets, format.index("C"), 4, dtype=np.float64)
    want = tj.crossentropy(y, dlarray(value(hot), format), from_logits=True)
    turned = np.asfortranarray(targets.T)
    ways = [targets, np.expand_dims(targets, format.index("C"))]
    if others:
        ways += [dlarray(targets, others), dlarray(np.expand_dims(targets, format.index("C")), format)]
    if len(set(others)) == len(others) and others:
        ways.append(dlarray(turned, others[::-1]))
    for way in ways:
        np.testing.assert_allclose(
            value(tj.indexcrossentropy(y, way, from_logits=True)), value(want), rtol=1e-13
        )
    unreduced = tj.indexcrossentropy(y, targets, from_logits=True, reduction="none")
    assert unreduced.shape == tuple(rest) and unreduced.format == (others or None)


def test_replays_check_the_numbers_of_classes() -> None:
    step = tj.dlaccelerate(lambda z, t: tj.indexcrossentropy(z, t, from_logits=True))
    for _ in range(4):
        np.testing.assert_allclose(value(step(dlarray(Z, "BC"), T)), -LOG[range(4), T].mean())
    assert step.hit_rate > 0
    for wrong in ([0, 1, 5, 0], [0, 1, -1, 0]):
        with pytest.raises(BoundsError):
            value(step(dlarray(Z, "BC"), np.array(wrong)))


@pytest.mark.parametrize("mode", ["single-label", "multilabel"])
@pytest.mark.parametrize("gamma", [0, 0.5, 1, 2, 3])
def test_focalcrossentropy(mode: str, gamma: float) -> None:
    targets = np.eye(5)[T]
    want = 0.3 * targets * (1 - P) ** gamma * LOG
    if mode == "multilabel":
        want = want + 0.7 * (1 - targets) * P**gamma * np.log1p(-P)
    options = {"gamma": gamma, "alpha": 0.3, "classification_mode": mode}
    found = tj.focalcrossentropy(dlarray(P, "BC"), targets, **options)
    np.testing.assert_allclose(value(found), -want.sum() / 4, rtol=1e-13)
    found = tj.focalcrossentropy(dlarray(P, "BC"), targets, reduction="none", mask=targets, **options)
    np.testing.assert_allclose(value(found), -want * targets, rtol=1e-13)


@pytest.mark.parametrize("gamma", [0.5, 2, 2.5])
def test_focalcrossentropy_of_certain_predictions(gamma: float) -> None:
    def gradient(y):
        loss = tj.focalcrossentropy(y, np.eye(2), gamma=gamma, classification_mode="multilabel")
        return loss, tj.dlgradient(loss, y)

    loss, found = tj.dlfeval(gradient, dlarray(np.eye(2), "BC"))
    assert loss.item() == 0 and np.isfinite(value(found)).all()


@pytest.mark.parametrize("format", ["BCSS", "BSSC", "SSCB", "CS", "BS"])
@pytest.mark.parametrize("generalized", [False, True])
def test_dice(format: str, generalized: bool) -> None:
    shape = [{"B": 2, "C": 3, "S": 4 + i}[label] for i, label in enumerate(format)]
    y, t = (np.random.default_rng(seed).uniform(0.1, 1, shape) for seed in (1, 2))
    axes = tuple(i for i, label in enumerate(format) if label == "S")
    both, total, of_t = 2 * (y * t).sum(axes), (y + t).sum(axes), t.sum(axes)
    kept = format.replace("S", "")
    if generalized:
        both, total = both / (of_t + 1e-3) ** 2, total / (of_t + 1e-3) ** 2
        if "C" in kept:
            both, total = both.sum(kept.index("C")), total.sum(kept.index("C"))
            kept = kept.replace("C", "")
    found = tj.dice(dlarray(y, format), t, generalized=generalized, epsilon=1e-3)
    np.testing.assert_allclose(value(found), (both + 1e-3) / (total + 1e-3), rtol=1e-12)
    assert found.format == (kept or None)
    assert tj.dice(y, t, generalized=generalized, data_format=format).format is None


def test_dice_of_equal_disjoint_and_empty_regions() -> None:
    region = np.array([[1.0, 1, 0, 0]])
    for generalized in (False, True):
        for y, t, want in ((region, region, 1), (region, 1 - region, 0), (0 * region, 0 * region, 1)):
            found = tj.dice(dlarray(y, "CS"), t, generalized=generalized)
            np.testing.assert_allclose(value(found), want, atol=1e-7)
    masked = tj.dice(dlarray([[1.0, np.nan]], "CS"), [[1.0, np.nan]], mask=[[1, 0]])
    np.testing.assert_allclose(value(masked), 1)


FUNCTIONS = {
    "index": lambda x: tj.indexcrossentropy(x, T, W, from_logits=True),
    "index masked": lambda x: tj.indexcrossentropy(
        x, T, W, mask_index=2, normalization_factor="weights-included"
    ),
    "focal": lambda x: tj.focalcrossentropy(x, np.eye(5)[T], gamma=1.5),
    "focal multilabel": lambda x: tj.focalcrossentropy(x, np.eye(5)[T], classification_mode="multilabel"),
    "dice": lambda x: tj.dice(tj.dlarray(tj.stripdims(x), "CS"), P[::-1]),
    "generalised dice": lambda x: tj.dice(tj.dlarray(tj.stripdims(x), "CS"), P[::-1], generalized=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    tj.testing.check_gradients(FUNCTIONS[name], dlarray(P, "BC"), order=2, rtol=1e-5)


def test_dice_by_both_operands() -> None:
    tj.testing.check_gradients(
        lambda y, t: tj.dice(y, t), dlarray(P, "CS"), dlarray(P[::-1].copy(), "CS"), order=2
    )


@pytest.mark.parametrize(
    "options", [{}, {"weight": W}, {"ignore_index": 2}, {"weight": W, "ignore_index": 2}]
)
def test_pytorch(options) -> None:
    torch = pytorch()
    tensor = torch.tensor(Z, requires_grad=True)
    theirs = {name: torch.tensor(v) if name == "weight" else v for name, v in options.items()}
    torch.nn.functional.cross_entropy(tensor, torch.tensor(T), **theirs).backward()

    def loss(z):
        y = tj.indexcrossentropy(
            z, T, options.get("weight"), mask_index=options.get("ignore_index"), from_logits=True,
            normalization_factor="weights-included",
        )  # fmt: skip
        return tj.dlgradient(y, z)

    found = tj.dlfeval(loss, dlarray(Z, "BC"))
    np.testing.assert_allclose(value(found), tensor.grad.numpy(), rtol=1e-10, atol=1e-14)
