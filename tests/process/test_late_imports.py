# SPDX-License-Identifier: BSD-3-Clause
"""Packages of SciPy that a recorded function imports itself."""

import subprocess
import sys

import pytest

CODE = """
import types
import numpy as np
import tracejit as tj


def blurred(x):
    from scipy import ndimage

    return ndimage.gaussian_filter(x, 1.0)


def inverse(x):
    import scipy.linalg

    return scipy.linalg.inv(x)


for plain in (blurred, inverse):
    accelerated = tj.dlaccelerate(plain)
    for n in range(1, 5):
        assert np.allclose(accelerated(np.eye(3) * n), plain(np.eye(3) * n))
    assert accelerated.stats.hits == 2

import scipy.linalg, scipy.ndimage

assert type(scipy.ndimage.gaussian_filter) is type(scipy.linalg.inv) is types.FunctionType
"""


def test_packages_that_the_function_imports():
    pytest.importorskip("scipy")
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=120)
