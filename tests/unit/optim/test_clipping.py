# SPDX-License-Identifier: BSD-3-Clause
"""Clipped gradients: by norms and elements, against torch, of networks, in accelerated functions."""

import numpy as np
import pytest
from accelerated import dlaccelerate
from peers import pytorch

import tracejit as tj


def same(first, second, **tolerance):
    for a, b in zip(tj.tree.flatten(first)[0], tj.tree.flatten(second)[0], strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, **tolerance)


GRADIENTS = {"w": np.array([[3.0, -4.0]]), "b": [np.array([0.3], np.float32), np.zeros(2)]}


class TestClipping:
    def scaled(self, *scales):
        w, (b, zeros) = GRADIENTS["w"], GRADIENTS["b"]
        return {"w": w * scales[0], "b": [(b * scales[1]).astype(np.float32), zeros]}

    @pytest.mark.parametrize(
        ("threshold", "method", "scales"),
        [
            (1.0, "l2norm", (0.2, 1.0)),
            (0.1, "l2norm", (0.02, 1 / 3)),
            (1.0, "global-l2norm", (1 / np.sqrt(25.09),) * 2),
            (6.0, "global-l2norm", (1.0, 1.0)),
            (np.inf, "global-l2norm", (1.0, 1.0)),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda x: x, tj.dlarray])
    def test_by_norms(self, threshold, method, scales, wrap):
        accelerated = dlaccelerate(lambda g, most: tj.clipgradients(g, most, method))
        for clip in (
            lambda g, most: tj.clipgradients(g, most, method),
            accelerated,
            accelerated,
            accelerated,
        ):
            same(
                clip(GRADIENTS, wrap(threshold)),
                tj.tree.map(tj.dlarray, self.scaled(*scales)),
                rtol=1e-6,
            )

    def test_by_elements(self):
        for most in (2.0, tj.dlarray(2.0)):
            found = tj.clipgradients(GRADIENTS, most, "absolute-value")
            assert found["w"].tolist() == [[2.0, -2.0]] and found["b"][0].dtype == np.float32
            assert found["b"][0].tolist() == GRADIENTS["b"][0].tolist()

    def test_against_torch(self, rng):
        torch = pytorch()
        gradients = [rng.standard_normal(5), rng.standard_normal((2, 3))]
        tensors = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in gradients]
        for tensor, g in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(g)
        torch.nn.utils.clip_grad_norm_(tensors, 0.7)
        for g, tensor in zip(tj.clipgradients(gradients, 0.7, "global-l2norm"), tensors, strict=True):
            np.testing.assert_allclose(g, tensor.grad.numpy(), rtol=1e-5)  # torch adds 1e-6 to the norm

    def test_of_a_network(self):
        net = tj.dlnetwork([tj.nn.FeatureInput(2), tj.nn.FullyConnected(1)], seed=0)
        gradients = tj.dlupdate(lambda w: 0 * w + 2, net.learnables)
        found = tj.clipgradients(gradients, 1.0, "global-l2norm")
        assert type(found) is tj.nn.LearnablesTable
        np.testing.assert_allclose(found["fc", "bias"], 1 / np.sqrt(3), rtol=1e-6)

    def test_squares_that_overflow_float32(self):
        g = tj.dlarray(np.full(2, 1e30, np.float32))
        np.testing.assert_allclose(tj.clipgradients(g, 1.0), np.full(2, np.sqrt(0.5)), rtol=1e-6)

    def test_a_threshold_whose_square_overflows(self):
        g = tj.dlarray(np.array([3.0, 4.0]))
        assert tj.clipgradients(g, 1e200).tolist() == [3.0, 4.0]
