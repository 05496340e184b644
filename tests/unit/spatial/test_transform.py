# SPDX-License-Identifier: BSD-3-Clause
"""Rotations: the numbers of scipy.spatial.transform, derivatives, and SciPy's own objects in recordings."""

import pickle
import warnings

import numpy as np
import pytest
import scipy
from scipy.spatial import transform
from scipy.spatial.transform import Rotation as R  # noqa: N817 (the usual short name)

import tracejit as tj
from tracejit.spatial.transform import Rotation, Slerp

SEQUENCES = ("xyz", "XYZ", "zyx", "ZYX", "zxz", "ZXZ", "yxz", "YZY", "xzx", "XZY")
SCALES = (0.0, 1e-9, 1e-4, 1e-3, 1.0, 4.0)
IS_RECENT = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)
FIXED = R.from_rotvec([0.1, 0.2, 0.3])
BETWEEN = transform.Slerp([0, 1, 3], R.from_rotvec([[0, 0, 0.1], [0.3, 0.2, 1], [2.0, 0.0, 0.0]]))


def compare(found, expected, rtol=1e-9, atol=1e-12):
    found = np.asarray(found)
    assert found.dtype == np.float64 and found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def pairs(rng, size):
    """Return rotations of ours and of SciPy's, made in each way."""
    q = rng.normal(size=(*size, 4))
    for scale in SCALES:
        v = rng.normal(size=(*size, 3)) * scale
        yield Rotation.from_rotvec(v), R.from_rotvec(v)
        yield Rotation.from_rotvec(v * 57, degrees=True), R.from_rotvec(v * 57, degrees=True)
        yield Rotation.from_mrp(v), R.from_mrp(v)
        yield Rotation.from_quat(q) * Rotation.from_rotvec(v), R.from_quat(q) * R.from_rotvec(v)
    yield Rotation.from_quat(q), R.from_quat(q)
    yield Rotation(3 * q), R(q)
    yield Rotation(np.roll(q, 1, -1), scalar_first=True), R(q)
    matrix = R.from_quat(q).as_matrix()
    yield Rotation.from_matrix(matrix), R.from_matrix(matrix)
    yield Rotation.from_matrix(matrix, assume_valid=True), R.from_matrix(matrix)
    yield Rotation.from_quat(q) ** 2.5, R.from_quat(q) ** 2.5
    yield Rotation.from_quat(q) ** -1, R.from_quat(q).inv()
    yield Rotation.from_quat(q).inv(), R.from_quat(q).inv()


class TestNumbers:
    @pytest.mark.parametrize("size", [(), (1,), (5,)], ids=str)
    def test_all_forms(self, size, rng):
        x = rng.normal(size=(*size, 3))
        for ours, theirs in pairs(rng, size):
            assert ours.single == theirs.single and ours.shape == size
            compare(ours.as_matrix(), theirs.as_matrix())
            compare(ours.as_quat(canonical=True), theirs.as_quat(canonical=True))
            compare(
                ours.as_quat(canonical=True, scalar_first=True),
                np.roll(theirs.as_quat(canonical=True), 1, -1),
            )
            compare(ours.as_rotvec(), theirs.as_rotvec(), atol=1e-11)
            compare(ours.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True), atol=1e-9)
            compare(ours.as_mrp(), theirs.as_mrp(), atol=1e-10)
            compare(ours.magnitude(), theirs.magnitude(), atol=1e-11)
            compare(ours.apply(x), theirs.apply(x))
            compare(ours.apply(x, inverse=True), theirs.apply(x, inverse=True))

    @pytest.mark.parametrize("seq", SEQUENCES)
    def test_euler_angles(self, seq, rng):
        for size in ((3,), (4, 3)):
            angles = rng.normal(size=size) * 3
            for degrees in (False, True):
                ours, theirs = Rotation.from_euler(seq, angles, degrees), R.from_euler(seq, angles, degrees)
                compare(ours.as_matrix(), theirs.as_matrix())
                compare(ours.as_euler(seq, degrees), theirs.as_euler(seq, degrees), atol=1e-9)

    @pytest.mark.parametrize("seq", SEQUENCES)
    @pytest.mark.parametrize("second", [np.pi / 2, -np.pi / 2, 0.0, np.pi])
    def test_euler_angles_that_are_not_unique(self, seq, second):
        theirs = R.from_euler(seq, [0.3, second, 0.5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(Rotation(theirs.as_quat()).as_euler(seq), theirs.as_euler(seq), atol=1e-7)

    @pytest.mark.parametrize(
        ("seq", "angles"),
        [
            ("x", 1.0),
            *([("Y", [1.0])] if IS_RECENT else []),
            ("z", [[1.0], [2.0]]),
            ("xy", [1.0, 2.0]),
            ("ZX", [[1.0, 2.0]]),
        ],
    )
    def test_fewer_axes(self, seq, angles):
        compare(Rotation.from_euler(seq, angles).as_matrix(), R.from_euler(seq, angles).as_matrix())

    def test_half_turns(self):
        for q in (np.eye(4), -np.eye(4)):
            ours, theirs = Rotation(q), R(q)
            compare(np.abs(ours.as_rotvec()), np.abs(theirs.as_rotvec()))
            compare(ours.as_matrix(), theirs.as_matrix())
            compare(Rotation.from_matrix(theirs.as_matrix()).as_matrix(), theirs.as_matrix())

    @pytest.mark.skipif(not IS_RECENT, reason="SciPy before 1.17 takes another rotation")
    def test_matrices_that_are_not_orthogonal(self, rng):
        matrices = R.from_rotvec(rng.normal(size=(4, 3))).as_matrix() + 0.1 * rng.normal(size=(4, 3, 3))
        compare(Rotation.from_matrix(matrices).as_matrix(), R.from_matrix(matrices).as_matrix())

    def test_several(self, rng):
        theirs = R.from_rotvec(rng.normal(size=(4, 3)))
        ours = Rotation(theirs.as_quat())
        compare(ours.mean().as_matrix(), theirs.mean().as_matrix())
        compare(ours.mean([1, 2, 3, 4]).as_matrix(), theirs.mean([1, 2, 3, 4]).as_matrix())
        compare(ours[1:3].as_matrix(), theirs[1:3].as_matrix())
        compare(ours[2].as_matrix(), theirs[2].as_matrix())
        compare([one.magnitude() for one in ours], theirs.magnitude())
        if IS_RECENT:
            compare((theirs[0] * ours).as_matrix(), (theirs[0] * theirs).as_matrix())
        compare((ours * theirs[0]).as_matrix(), (theirs * theirs[0]).as_matrix())
        compare(
            Rotation.concatenate([ours, theirs[0], ours[1]]).as_matrix(),
            theirs[[0, 1, 2, 3, 0, 1]].as_matrix(),
        )
        assert len(ours) == 4 and ours and Rotation.concatenate(ours).shape == (4,)
        assert ours.approx_equal(theirs).all() and not ours[0].approx_equal(ours[1], 1.0, degrees=True)
        compare(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2))
        assert Rotation.identity().single and Rotation.identity(shape=(2, 3)).shape == (2, 3)

    @pytest.mark.parametrize("weights", [None, np.arange(1.0, 6.0)])
    def test_alignment(self, weights, rng):
        for sign in (1.0, -1.0):  # also where the nearest orthogonal matrix is a reflection
            a, b = rng.normal(size=(2, 5, 3))
            b = sign * a + 0.1 * b
            (ours, distance), (theirs, expected) = (
                kind.align_vectors(a, b, weights) for kind in (Rotation, R)
            )
            compare(ours.as_matrix(), theirs.as_matrix())
            compare(distance, expected)

    def test_interpolation(self):
        times, turns = np.array([0.0, 1.0, 2.5]), R.from_rotvec([[0, 0, 0.1], [0.3, 0.2, 1], [2.0, 0.0, 0.0]])
        ours, theirs = Slerp(times, turns), transform.Slerp(times, turns)
        for t in (0.0, 0.3, 1.0, 2.5, np.linspace(0, 2.5, 7)):
            compare(ours(t).as_matrix(), theirs(t).as_matrix())


def cubes(rotation):
    return (rotation.as_matrix() ** 3).sum() + (rotation.as_rotvec() ** 3).sum()


WAYS = {
    "rotvec": lambda u: Rotation.from_rotvec(u),
    "euler": lambda u: Rotation.from_euler("ZYX", u),
    "quat": lambda u: Rotation.from_quat(tj.concatenate([u, np.ones(1)])),
    "mrp": lambda u: Rotation.from_mrp(u),
    "product": lambda u: Rotation.from_rotvec(u) * Rotation.from_euler("xyx", 2 * u),
    "power": lambda u: Rotation.from_rotvec(u) ** (1 + u[0]),
    "matrix": lambda u: Rotation.from_matrix(Rotation.from_rotvec(u).as_matrix()),
    "mean": lambda u: Rotation.from_rotvec(tj.stack([u, 2 * u, u + 1])).mean(),
    "alignment": lambda u: Rotation.align_vectors(tj.stack([u, u**2, u + 1]), np.eye(3))[0],
    "slerp": lambda u: Slerp([0.0, 1.0], Rotation.from_rotvec(tj.stack([u, 2 * u + 1])))(0.3 + 0.1 * u[1]),
    "angles": lambda u: Rotation.from_rotvec(Rotation.from_rotvec(u).as_euler("zxz")),
}


class TestDerivatives:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", WAYS)
    def test_first_and_second_ones(self, name, rng):
        def loss(u):
            return cubes(WAYS[name](u))

        step = tj.dlaccelerate(lambda u, v: (tj.dlgradient(loss(u), u), tj.hvp(loss, u, v)))
        for _ in range(4):
            u, v = 0.7 * rng.normal(size=(2, 3))
            gradient, second = map(np.asarray, step(u, v))
            values = [float(tj.dlfeval(loss, u + h * v)) for h in (1e-6, -1e-6)]
            assert gradient @ v == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-6)
            slopes = [np.asarray(step(u + h * v, v)[0]) for h in (1e-6, -1e-6)]
            np.testing.assert_allclose(second, (slopes[0] - slopes[1]) / 2e-6, rtol=1e-4, atol=1e-5)
        assert step.stats.hits >= 8

    @pytest.mark.parametrize("form", ["as_matrix", "as_rotvec", "as_mrp", "as_quat"])
    def test_at_no_angle(self, form, rng):
        """The derivatives of series: those of a first and second order exist, and are continuous."""
        weights = rng.normal(size=getattr(Rotation.identity(), form)().shape)

        def loss(u):
            return (getattr(Rotation.from_rotvec(u), form)() * weights).sum()

        at = [np.zeros(3), np.array([2e-4, 0, 0]), np.array([0, 2e-3, 0])]
        first, *others = [np.asarray(tj.dlfeval(lambda u: tj.dlgradient(loss(u), u), u)) for u in at]
        for other in others:
            np.testing.assert_allclose(other, first, atol=2e-2)
        first, *others = [np.asarray(tj.dlfeval(lambda u: tj.hessian(loss, u), u)) for u in at]
        for other in others:
            np.testing.assert_allclose(other, first, atol=2e-2)

    def test_the_angle_at_0(self):
        slope = tj.dlfeval(lambda u: tj.dlgradient(Rotation.from_rotvec(u).magnitude(), u), np.zeros(3))
        assert slope.tolist() == [0.0, 0.0, 0.0]


OF_SCIPY = {
    "rotvec": lambda u: R.from_rotvec(u).apply(np.array([1.0, 2.0, 3.0])),
    "euler": lambda u: R.from_euler("xyz", u).as_matrix(),
    "product": lambda u: (R.from_rotvec(u) * FIXED).as_rotvec(),
    "class": lambda u: R(np.append(u, 1.0)).as_matrix(),
    "quat": lambda u: R.from_quat(np.append(u, 1.0)).as_euler("ZYX", degrees=True),
    "concatenate": lambda u: R.concatenate([R.from_rotvec(u)]).as_mrp(),
    "slerp": lambda u: transform.Slerp([0, 1], R.from_rotvec(np.stack([u, 2 * u])))(0.3).as_rotvec(),
    "module": lambda u: transform.Rotation.from_mrp(u).magnitude() * u,
    "package": lambda u: scipy.spatial.transform.Rotation.from_rotvec(u).apply(u[None] + np.eye(3)),
    "power": lambda u: (R.from_rotvec(u) ** 0.5).as_rotvec(),
    "fixed": lambda u: FIXED.apply(u),
    "fixed, of a constant": lambda u: FIXED.apply(np.ones((2, 3))) @ u,
    "of a constant": lambda u: R.from_rotvec(np.ones(3)).as_matrix() @ u,
}
OF_RECENT = {
    "product from the left": lambda u: (FIXED * R.from_rotvec(u)).as_quat(),
    "fixed slerp": lambda u: BETWEEN(np.abs(np.tanh(u))).as_matrix(),
}


class TestObjectsOfSciPy:
    @pytest.mark.parametrize("name", [*OF_SCIPY, *(OF_RECENT if IS_RECENT else ())])
    def test_traced_arrays(self, name, rng):
        run = {**OF_SCIPY, **OF_RECENT}[name]
        step = tj.dlaccelerate(lambda u: (run(u), tj.dlgradient((run(u) ** 3).sum(), u)))
        for _ in range(4):
            u, v = 0.7 * rng.normal(size=(2, 3))
            found, slope = step(u)
            compare(found, run(u))
            along = ((run(u + 1e-6 * v) ** 3).sum() - (run(u - 1e-6 * v) ** 3).sum()) / 2e-6
            assert float(slope @ v) == pytest.approx(along, rel=1e-5, abs=1e-6)
            compare(tj.dlfeval(run, u), run(u))
        assert step.stats.hits == 2

    @pytest.mark.skipif(
        not IS_RECENT, reason="before SciPy 1.17 its rotations ask no other class for a product"
    )
    def test_state(self, rng):
        class Body:
            def __init__(self):
                self.attitude, self.rate = R.identity(), np.array([0.1, 0.2, 0.3])

            def plain(self, torque):
                self.rate = self.rate + 0.01 * torque
                self.attitude = self.attitude * R.from_rotvec(0.01 * self.rate)
                return self.attitude.apply(np.array([1.0, 0.0, 0.0])), self.attitude

            step = tj.dlaccelerate(plain)

        ours, theirs = Body(), Body()
        for _ in range(8):
            torque = rng.normal(size=3)
            (found, attitude), (expected, _) = ours.step(torque), theirs.plain(torque)
            compare(found, expected)
            compare(attitude.as_quat(), theirs.attitude.as_quat())
            compare(ours.attitude.as_quat(), theirs.attitude.as_quat())
        assert ours.step.stats.hits >= 4 and ours.step.stats.uncompiled == 0

    def test_rotations_that_change(self, rng):
        turns, others = R.from_rotvec(np.eye(3) * 0.3), R.from_rotvec(rng.normal(size=(3, 3)))
        holder = {"turn": R.from_rotvec([0.1, 0.2, 0.3]), "between": BETWEEN}

        def plain(u):
            start = holder["between"](0.5).apply(u)
            return turns.apply(u), holder["turn"].apply(start), u * holder["turn"].magnitude()

        step = tj.dlaccelerate(plain)
        for n in range(12):
            u = rng.normal(size=3)
            for found, expected in zip(step(u), plain(u), strict=True):
                compare(found, expected)
            if n == 3:
                turns[0] = others[0]
            elif n == 5:
                holder["turn"] = others[1]
            elif n == 7:
                holder["between"] = transform.Slerp([0, 1], others[:2])
            elif n == 9:
                turns[1] = others[2]
        assert step.stats.uncompiled == 0


class TestAsContainers:
    def test_arguments_and_results(self, rng):
        step = tj.dlaccelerate(lambda p, q: {"both": p * q})
        for _ in range(4):
            p, q = (Rotation.from_rotvec(rng.normal(size=3)) for _ in range(2))
            compare(step(p, q)["both"].as_quat(), (p * q).as_quat())
        assert step.stats.hits == 2

    def test_copies(self, rng):
        turn = Rotation.from_rotvec(rng.normal(size=(2, 3)))
        compare(pickle.loads(pickle.dumps(turn)).as_quat(), np.asarray(turn.as_quat()))
        assert repr(Rotation.identity()) == "Rotation.from_quat([0., 0., 0., 1.])"

    def test_other_operands(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            Rotation.identity() * 3
        with pytest.raises(TypeError, match="unsupported operand"):
            3.0 * Rotation.identity()


def test_conditions_hold_in_replays():
    step = tj.dlaccelerate(lambda q: Rotation(q).as_matrix())
    for _ in range(3):
        step(np.array([0.0, 0.0, 1.0, 1.0]))
    with pytest.raises(tj.DimsError, match="a quaternion is 0"):
        step(np.zeros(4))
