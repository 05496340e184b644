# SPDX-License-Identifier: BSD-3-Clause
"""Rotations in space, and interpolation between them, under the names of scipy.spatial.transform.

In: quaternions (x, y, z, w), matrices, rotation vectors, angles. Out: dlarrays of float64, and rotations, which are
containers of one array: arguments, results and state of accelerated functions.
May import: functions/.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from tracejit import containers, tree
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions import elementwise, joining, linalg, movement, reductions, taking
from tracejit.functions.formats import describe_sizes, in_dtype
from tracejit.functions.numpy_api.ordering import searchsorted
from tracejit.record.demands import demand
from tracejit.spatial import euler, quaternions
from tracejit.util.arguments import flag
from tracejit.util.text import brief

__all__ = ["Rotation", "Slerp"]

_DEGREE = np.pi / 180
_FLOAT = np.dtype(np.float64)
_ORTHOGONAL = 1e-12  # of the elements of M M' - 1


class _FixedPart(containers.Fixed):
    """The part of a rotation that is no array: there is nothing."""

    __slots__ = ()

    title = "Rotation"

    def places(self, kind: type) -> Sequence[str]:
        return (".as_quat()",)


_FIXED = _FixedPart()


class Rotation(tree.TreeNode):
    """A rotation in space, or an array of rotations.

    Args:
        quat: quaternions (x, y, z, w) along the last axis, of any lengths but 0.
        normalize: whether to divide them by their lengths.
        copy: without effect; there for SciPy's sake.
        scalar_first: whether the order is (w, x, y, z).

    Raises:
        DimsError: if the last axis has not four elements, or a quaternion is 0, in replays as well.

    It is a container of one array, so that functions that tracejit accelerates take it, return it and assign it to
    attributes. ``p * q`` rotates by q first. ``==`` is identity, as for SciPy's.

    There are derivatives of any order, also at the rotation by no angle.

    Examples:
        >>> import tracejit as tj
        >>> Rotation = tj.spatial.transform.Rotation
        >>> turn = Rotation.from_euler("z", 90, degrees=True)
        >>> turn.apply([1.0, 0.0, 0.0]).round(6).tolist(), round((turn * turn).magnitude().item(), 6)
        ([0.0, 1.0, 0.0], 3.141593)
    """

    __slots__ = ()

    def __init__(
        self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False
    ) -> None:
        q = _operand("Rotation", "quat", quat, 4)
        if flag("Rotation", "scalar_first", scalar_first):
            q = joining.concatenate([q[..., 1:], q[..., :1]], -1)
        if flag("Rotation", "normalize", normalize):
            is_zero = reductions.any(quaternions.squares(q) == 0)
            demand(elementwise.logical_not(is_zero), "Rotation", _refuse_zero)
            q = quaternions.normalized(q)
        self._fixed, self._leaves = _FIXED, (q,)

    @classmethod
    def _of(cls, q: dlarray) -> Self:
        """Return the rotations of unit quaternions."""
        found: Self = tree.rebuild_node(cls, _FIXED, (q,))
        return found

    @property
    def _q(self) -> Any:
        return as_array(self._leaves[0])

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Self:
        """Return the rotations of quaternions, (..., 4)."""
        return cls(quat, scalar_first=scalar_first)

    @classmethod
    def from_matrix(cls, matrix: Any, *, assume_valid: bool = False) -> Self:
        """Return the rotations of matrices.

        Args:
            matrix: (..., 3, 3), with positive determinants. Of one that is not orthogonal the nearest orthogonal one is
                taken, as in SciPy 1.17.
            assume_valid: whether they are orthogonal; then nothing is looked at.

        Raises:
            DimsError: if `matrix` has other sizes, or a determinant that is not positive; in replays as well.
        """
        m = _operand("Rotation.from_matrix", "matrix", matrix, 3, axes=2)
        if not flag("Rotation.from_matrix", "assume_valid", assume_valid):
            demand(reductions.all(linalg.det(m) > 0), "Rotation.from_matrix", _refuse_mirrors)
            differences = movement.swapaxes(m, -1, -2) @ m - np.eye(3)
            if bool(reductions.any(elementwise.abs(differences) > _ORTHOGONAL)):
                m = quaternions.nearest(m)
        return cls._of(quaternions.of_matrix(m))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Self:
        """Return the rotations of rotation vectors, (..., 3): axes times angles, in radians or degrees."""
        v = _operand("Rotation.from_rotvec", "rotvec", rotvec, 3)
        return cls._of(quaternions.of_vector(_in_radians("from_rotvec", v, degrees)))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Self:
        """Return the rotations of modified Rodrigues parameters, (..., 3)."""
        return cls._of(quaternions.of_parameters(_operand("Rotation.from_mrp", "mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Self:
        """Return the rotations of Euler angles.

        Args:
            seq: one to three axes, such as "xyz" (fixed) or "ZYX" (of the body).
            angles: as many angles along the last axis as there are axes; a number for one axis.
            degrees: whether they are in degrees.

        Raises:
            ArgumentValueError: if `seq` names no axes.
            DimsError: if there are more or fewer angles.
        """
        axes = euler.axes_of("Rotation.from_euler", seq)
        given = _floats("Rotation.from_euler", "angles", angles)
        if not given.ndim and len(axes) == 1:
            given = movement.reshape(given, (1,))
        if not given.ndim or given.shape[-1] != len(axes):
            raise DimsError(
                f"Rotation.from_euler: angles has size {describe_sizes(given) or '()'}, expected a last axis of "
                f"{len(axes)} for seq={seq!r}."
            )
        return cls._of(euler.of_angles(axes, _in_radians("from_euler", given, degrees), seq.islower()))

    @classmethod
    def identity(cls, num: Any = None, *, shape: Any = None) -> Self:
        """Return the rotation by no angle, or an array of `num` of them, or of a shape."""
        if num is not None and shape is not None:
            raise ArgumentError("Rotation.identity: num and shape are two ways to say the same; give one.")
        sizes = num if shape is None else shape
        sizes = () if sizes is None else (sizes,) if not isinstance(sizes, tuple) else sizes
        return cls._of(movement.broadcast_to(as_array(np.array([0.0, 0.0, 0.0, 1.0])), (*sizes, 4)))

    @classmethod
    def concatenate(cls, rotations: Iterable[Any]) -> Self:
        """Return rotations, and arrays of them along one axis, one after the other."""
        each = [rotations] if is_rotation(rotations) else list(rotations)
        found = [_of_any("Rotation.concatenate", one)._q for one in each]
        return cls._of(joining.concatenate([q if q.ndim > 1 else q[None] for q in found], 0))

    @classmethod
    def align_vectors(cls, a: Any, b: Any, weights: Any = None) -> tuple[Self, dlarray]:
        """Return the rotation that takes vectors b nearest to a, and the root of the weighted sum of squared distances.

        Args:
            a, b: two vectors or more, (N, 3).
            weights: N numbers that are not negative; None: 1.

        Raises:
            DimsError: if the sizes do not fit.

        The derivative needs different singular values of the sum of a b'.
        """
        function = "Rotation.align_vectors"
        x, y = _operand(function, "a", a, 3), _operand(function, "b", b, 3)
        if x.ndim != 2 or x.shape != y.shape or x.shape[0] < 2:
            raise DimsError(
                f"{function}: a has size {describe_sizes(x)} and b {describe_sizes(y)}, expected (N, 3) both, with N "
                "of 2 or more."
            )
        given = None if weights is None else _weights(function, weights, x.shape[0])
        matrix, distance = quaternions.aligned(x, y, given)
        return cls._of(quaternions.of_matrix(matrix)), distance

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> dlarray:
        """Return unit quaternions, (..., 4).

        Args:
            canonical: whether to give the one of q and -q with a positive w.
            scalar_first: whether in the order (w, x, y, z).
        """
        q: dlarray = (
            quaternions.canonical(self._q) if flag("Rotation.as_quat", "canonical", canonical) else self._q
        )
        is_first = flag("Rotation.as_quat", "scalar_first", scalar_first)
        return joining.concatenate([q[..., 3:], q[..., :3]], -1) if is_first else q

    def as_matrix(self) -> dlarray:
        """Return matrices, (..., 3, 3)."""
        return quaternions.matrix_of(self._q)

    def as_rotvec(self, degrees: bool = False) -> dlarray:
        """Return rotation vectors, (..., 3), of angles up to pi."""
        return _in_degrees("as_rotvec", quaternions.vector_of(self._q), degrees)

    def as_mrp(self) -> dlarray:
        """Return modified Rodrigues parameters, (..., 3)."""
        return quaternions.parameters_of(self._q)

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> dlarray:
        """Return Euler angles, (..., 3).

        Args:
            seq: three axes, such as "xyz" (fixed) or "ZYX" (of the body).
            degrees: whether in degrees.
            suppress_warnings: without effect: where the first and third axis are the same line, the third angle is 0,
                as SciPy's, and there is no warning.

        Raises:
            ArgumentValueError: if `seq` names no axes.
        """
        axes = euler.axes_of("Rotation.as_euler", seq, (3,))
        return _in_degrees("as_euler", euler.angles_of(self._q, axes, seq.islower()), degrees)

    def apply(self, vectors: Any, inverse: bool = False) -> dlarray:
        """Return rotated vectors.

        Args:
            vectors: (..., 3); sizes before the last are those of the rotations, or broadcast with them.
            inverse: whether to rotate by the inverse.

        Raises:
            DimsError: if the sizes do not fit.
        """
        v = _operand("Rotation.apply", "vectors", vectors, 3)
        _check_sizes("Rotation.apply", self._q, v, "vectors")
        m = self.as_matrix()
        if flag("Rotation.apply", "inverse", inverse):
            m = movement.swapaxes(m, -1, -2)
        return reductions.sum(m * v[..., None, :], axis=-1)

    def inv(self) -> Self:
        """Return the inverse rotations."""
        return self._of(quaternions.inverse(self._q))

    def magnitude(self) -> dlarray:
        """Return the angles, from 0 to pi; the derivative at 0 is 0."""
        return quaternions.angle_of(self._q)

    def mean(self, weights: Any = None) -> Self:
        """Return the mean of an array of rotations along one axis, with weights that are not negative."""
        q = self._q
        if q.ndim != 2:
            raise DimsError(
                f"Rotation.mean: there are {self._sizes()} rotations, expected an array with one axis."
            )
        given = None if weights is None else _weights("Rotation.mean", weights, q.shape[0])
        return self._of(quaternions.mean(q, given))

    def approx_equal(self, other: Any, atol: Any = None, degrees: bool = False) -> dlarray:
        """Return whether the angles between rotations are below a tolerance, 1e-8 radians if none is given."""
        between = (_of_any("Rotation.approx_equal", other) * self.inv()).magnitude()
        limit = (
            1e-8 if atol is None else atol * (_DEGREE if flag("approx_equal", "degrees", degrees) else 1.0)
        )
        found: dlarray = between < limit
        return found

    def __mul__(self, other: Any) -> Any:
        if not is_rotation(other):
            return NotImplemented
        p, q = self._q, _of_any("Rotation", other)._q
        _check_sizes("Rotation", p, q, "the second one")
        return self._of(quaternions.normalized(quaternions.product(p, q)))

    def __rmul__(self, other: Any) -> Any:
        return _of_any("Rotation", other) * self if is_rotation(other) else NotImplemented

    def __pow__(self, n: Any, modulus: None = None) -> Self:
        """Return the rotations by n times the angle."""
        if modulus is not None:
            raise ArgumentError("Rotation: pow() of three arguments is not defined; leave the third one out.")
        power = _floats("Rotation", "n", n)
        return self._of(quaternions.of_vector(power * quaternions.vector_of(self._q)))

    @property
    def single(self) -> bool:
        """True of one rotation, and not an array."""
        return not self.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the array of rotations; () of one."""
        sizes: tuple[int, ...] = self._q.shape[:-1]
        return sizes

    def _sizes(self) -> str:
        return " x ".join(map(str, self.shape)) or "single"

    def __len__(self) -> int:
        if self.single:
            raise ArgumentError("Rotation: a single rotation has no len().")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Self:
        if self.single:
            raise ArgumentError("Rotation: a single rotation is not subscriptable.")
        return self._of(self._q[(*key, Ellipsis, slice(None)) if isinstance(key, tuple) else key])

    def __iter__(self) -> Iterator[Self]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"Rotation.from_quat({np.array2string(np.asarray(self._q), separator=', ')})"


class Slerp:
    """Spherical linear interpolation between rotations, at a constant speed from one to the next.

    Args:
        times: two numbers or more, increasing.
        rotations: as many rotations.

    Raises:
        DimsError: if there are not as many.
        ArgumentValueError: if times do not increase, in replays as well.

    Examples:
        >>> import tracejit as tj
        >>> turns = tj.spatial.transform.Rotation.from_euler("z", [[0], [90]], degrees=True)
        >>> tj.spatial.transform.Slerp([0.0, 1.0], turns)(0.5).as_euler("xyz", degrees=True).round(6).tolist()
        [0.0, 0.0, 45.0]
    """

    def __init__(self, times: Any, rotations: Any) -> None:
        found = _of_any("Slerp", rotations)
        self.times = _floats("Slerp", "times", times)
        self.rotations = found
        if self.times.ndim != 1 or found.shape != self.times.shape or self.times.size < 2:
            raise DimsError(
                f"Slerp: there are {describe_sizes(self.times) or 'single'} times and {found._sizes()} rotations, "
                "expected as many, along one axis, and two at least."
            )
        self.timedelta = self.times[1:] - self.times[:-1]
        demand(reductions.all(self.timedelta > 0), "Slerp", _refuse_times)
        self.rotvecs = (found[:-1].inv() * found[1:]).as_rotvec()

    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at times.

        Args:
            times: a number or several, between the first and the last of those that were given.

        Raises:
            ArgumentValueError: if one is outside, in replays as well.
        """
        t = _floats("Slerp", "times", times)
        if t.ndim > 1:
            raise DimsError(f"Slerp: times has size {describe_sizes(t)}, expected a number or one axis.")
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        demand(reductions.all(inside), "Slerp", _refuse_outside)
        place = elementwise.clip(searchsorted(self.times, t, side="left") - 1, 0, self.times.size - 2)
        starts, spans, vectors = (
            taking.take(part, place, 0) for part in (self.times, self.timedelta, self.rotvecs)
        )
        share = (t - starts) / spans
        first = Rotation._of(taking.take(self.rotations._q, place, 0))
        found: Rotation = first * Rotation._of(quaternions.of_vector(vectors * share[..., None]))
        return found


def is_rotation(x: Any) -> bool:
    """Return whether an object is a rotation, of tracejit's or of SciPy's."""
    return isinstance(x, Rotation) or (hasattr(type(x), "as_quat") and hasattr(type(x), "apply"))


def _of_any(function: str, x: Any) -> Rotation:
    """Return a rotation of tracejit's, of one of SciPy's too."""
    if isinstance(x, Rotation):
        return x
    if not is_rotation(x):
        raise ArgumentError(
            f"{function}: {brief(x)} is no Rotation; make one with Rotation.from_quat, or another."
        )
    return Rotation._of(as_array(x.as_quat()))


def _floats(function: str, argument: str, x: Any) -> dlarray:
    array = movement.relabel(as_array(x, function, argument), None)
    return array if array.dtype == _FLOAT else in_dtype(array, _FLOAT)


def _operand(function: str, argument: str, x: Any, size: int, axes: int = 1) -> dlarray:
    array = _floats(function, argument, x)
    if array.shape[-axes:] != (size,) * axes:
        expected = f"(..., {', '.join([str(size)] * axes)})"
        raise DimsError(
            f"{function}: {argument} has size {describe_sizes(array) or '()'}, expected {expected}."
        )
    return array


def _weights(function: str, weights: Any, count: int) -> dlarray:
    found = _floats(function, "weights", weights)
    if found.shape != (count,):
        raise DimsError(f"{function}: weights has size {describe_sizes(found) or '()'}, expected {count}.")
    demand(reductions.all(found >= 0), function, _refuse_weights)
    return found


def _check_sizes(function: str, q: dlarray, other: dlarray, what: str) -> None:
    pairs = zip(q.shape[-2::-1], other.shape[-2::-1], strict=False)
    if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
        sizes = " x ".join(map(str, q.shape[:-1]))
        raise DimsError(
            f"{function}: {sizes} rotations do not broadcast with {what} of size {describe_sizes(other)}, whose last "
            "axis is that of the parts."
        )


def _in_radians(function: str, angles: dlarray, degrees: Any) -> dlarray:
    return angles * _DEGREE if flag(f"Rotation.{function}", "degrees", degrees) else angles


def _in_degrees(function: str, angles: dlarray, degrees: Any) -> dlarray:
    return angles / _DEGREE if flag(f"Rotation.{function}", "degrees", degrees) else angles


def _refuse_zero() -> None:
    raise DimsError("Rotation: a quaternion is 0, which is no rotation; the one by no angle is (0, 0, 0, 1).")


def _refuse_mirrors() -> None:
    raise DimsError(
        "Rotation.from_matrix: a determinant is not positive, so that the matrix is no rotation but a reflection; "
        "change the sign of one of its columns."
    )


def _refuse_weights() -> None:
    raise ArgumentValueError(
        "Rotation: weights must not be negative; pass np.abs(weights), or leave rotations out."
    )


def _refuse_times() -> None:
    raise ArgumentValueError("Slerp: times must increase strictly; sort them, with the rotations.")


def _refuse_outside() -> None:
    raise ArgumentValueError(
        "Slerp: a time lies outside of those of the rotations; use np.clip(t, first, last)."
    )
