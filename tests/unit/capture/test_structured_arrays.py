# SPDX-License-Identifier: BSD-3-Clause
"""Structured arrays in attributes: functions that write their fields compute what NumPy does, uncompiled if need be."""

import warnings

import numpy as np
import pytest

import tracejit as tj

FIELDS = [("pos", "f8", 2), ("vel", "f8", 2), ("alive", "?"), ("n", "i4"), ("m", "f4")]


class Particles:
    """Particles in a structured array, with functions that read and write it."""

    def __init__(self, align: bool = False) -> None:
        self.a = np.zeros(3, np.dtype(FIELDS, align=align))
        self.a["alive"] = True
        self.a["vel"] = np.arange(6).reshape(3, 2)

    def element_of_row(self, x, h):
        self.a["pos"] += h
        self.a[0]["pos"][1] += h
        return self.a["pos"].sum()

    def by_mask(self, x, h):
        out = self.a["pos"] > 1
        self.a["vel"][out] *= -1
        return self.a["vel"].sum()

    def bounce(self, x, h):
        self.a["pos"] += h * self.a["vel"]
        self.a["vel"][(self.a["pos"] < 0) | (self.a["pos"] > 1)] *= -1
        return 0

    def select_rows(self, x, h):
        self.a["pos"] += h
        self.a["alive"] &= self.a["pos"][:, 0] < 9
        return self.a[self.a["alive"]]["pos"].mean(0)

    def traced_in_place(self, x, h):
        self.a["pos"] += x[:2]
        return self.a["pos"].sum()

    def traced_field(self, x, h):
        self.a["pos"] = x[:2]
        self.a["vel"] = self.a["pos"] * 2
        self.a["pos"] += self.a["vel"]
        return self.a["pos"].copy()

    def traced_elements(self, x, h):
        self.a[0]["pos"][1] = x[0]
        self.a["m"][1] = x[1]
        self.a["n"] += int(x[0])
        return self.a["m"].sum() * x

    def traced_mask(self, x, h):
        self.a["pos"][self.a["pos"] < x[0]] += x[1]
        return self.a["pos"][0]

    def two_views(self, x, h):
        pos, vel = self.a["pos"], self.a["vel"]
        pos += x[:2] * vel
        vel *= 0.5
        return pos.sum() + vel[0, 1]

    def records(self, x, h):
        for row in self.a:
            row["m"] += x[0]
            row["pos"] = x[:2]
        return self.a["m"] + x

    def row(self, x, h):
        self.a[0] = (x[:2], x[1:], True, 3, x[0])
        return self.a["m"] + x

    def row_of_its_own_fields(self, x, h):
        self.a[0] = (self.a[0]["vel"] + x[:2], self.a["pos"][0], True, 3, x[0])
        return self.a["vel"].sum()

    def rows(self, x, h):
        self.a[0] = self.a[1]
        self.a["pos"][1] += x[:2]
        return self.a["pos"].sum()

    def replaced(self, x, h):
        b = self.a.copy()
        b["pos"] += x[:2]
        self.a = b
        return self.a["pos"].sum()

    def read(self, x, h):
        return self.a["vel"] @ x[:2] + self.a[1]["pos"][0]


METHODS = [name for name in vars(Particles) if not name.startswith("_")]


@pytest.mark.parametrize("align", [False, True], ids=["packed", "aligned"])
@pytest.mark.parametrize("name", METHODS)
def test_what_numpy_computes(name: str, align: bool) -> None:
    plain = getattr(Particles, name)
    accelerated = tj.dlaccelerate(plain)
    one, other = Particles(align), Particles(align)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for _ in range(8):
            x, h = rng.normal(size=3), float(rng.normal())
            np.testing.assert_allclose(np.asarray(accelerated(other, x, h)), plain(one, x, h), rtol=1e-6)
            for field in one.a.dtype.names:
                np.testing.assert_allclose(other.a[field], one.a[field], rtol=1e-6)


def test_the_warning_tells_to_keep_the_fields_apart() -> None:
    particles = Particles(align=True)
    accelerated = tj.dlaccelerate(Particles.traced_in_place)
    advice = (
        r"Keep its fields in arrays of their own \(self.a_x = self.a\['x'\].copy\(\)\), whose operations are"
    )
    with pytest.warns(tj.NotAcceleratedWarning, match=advice):
        for _ in range(6):
            accelerated(particles, np.ones(3), 0.5)
