# SPDX-License-Identifier: BSD-3-Clause
"""Fits of geometry and of curves: bundle adjustment, a hand, a spline."""

from typing import Any

import numpy as np

from benchmarks.programs.program import Words, gradients


def rotated(words: Words, angles: Any, points: Any) -> Any:
    """Return points turned by the vector of an axis, as long as the angle (the formula of Rodrigues)."""
    xp = words.np
    angle = xp.sqrt((angles**2).sum(-1, keepdims=True) + 1e-12)
    axis = angles / angle
    c, s = xp.cos(angle), xp.sin(angle)
    along = (axis * points).sum(-1, keepdims=True)
    return points * c + xp.cross(axis, points) * s + axis * along * (1 - c)


def bundle(words: Words, params: Any, seen_by: Any, seen: Any, pixels: Any) -> Any:
    """Return the squared errors of pixels: cameras are angles, a place, a focal length and two distortions."""
    cameras, points = params
    camera, point = cameras[seen_by], points[seen]
    local = rotated(words, camera[:, :3], point) + camera[:, 3:6]
    flat = local[:, :2] / (local[:, 2:] + 6.0)
    radius = (flat**2).sum(1, keepdims=True)
    distorted = flat * (1 + camera[:, 7:8] * radius + camera[:, 8:9] * radius**2)
    return ((camera[:, 6:7] * distorted - pixels) ** 2).sum()


def bundle_data(rng: np.random.Generator) -> tuple[Any, ...]:
    params = 0.3 * rng.normal(size=(20, 9)), 0.3 * rng.normal(size=(500, 3))
    return params, rng.integers(0, 20, 2000), rng.integers(0, 500, 2000), rng.normal(size=(2000, 2))


PARENTS = (-1, 0, 1, 2, 0, 4, 5, 6, 0, 8, 9, 10, 0, 12, 13, 14, 0, 16, 17, 18)  # five fingers of four bones


def hand(words: Words, pose: Any, bones: Any, skin: Any, weights: Any, seen: Any) -> Any:
    """Return the squared distances of points of the skin, which bones move by weights, to points that were seen."""
    xp = words.np
    turns, places = [], []
    for bone, parent in enumerate(PARENTS):
        turn = rotated(words, pose[bone], np.eye(3)).T
        if parent < 0:
            turns, places = [turn], [pose[-1]]
        else:
            turns.append(turns[parent] @ turn)
            places.append(places[parent] + turns[parent] @ bones[bone])
    moved = xp.einsum("bij,nbj->nbi", xp.stack(turns), skin) + xp.stack(places)
    return (((weights[:, :, None] * moved).sum(1) - seen) ** 2).sum()


def hand_data(rng: np.random.Generator) -> tuple[Any, ...]:
    count, points = len(PARENTS), 500
    weights = rng.dirichlet(np.full(count, 0.2), points)
    return (0.3 * rng.normal(size=(count + 1, 3)), rng.normal(size=(count, 3)), rng.normal(size=(points, count, 3)),
            weights, rng.normal(size=(points, 3)))  # fmt: skip


def spline(words: Words, params: Any, times: Any, samples: Any) -> Any:
    """Return the squared errors of a natural cubic spline by its heights and knots, and what it costs to bend it."""
    xp = words.np
    heights, steps = params
    knots = xp.concatenate([xp.zeros(1), xp.cumsum(xp.exp(steps))])
    curve = words.spline(knots / knots[-1], heights)
    return ((curve(times, 0) - samples) ** 2).sum() + 1e-6 * (curve(times, 2) ** 2).sum()


def spline_data(rng: np.random.Generator) -> tuple[Any, ...]:
    times = np.linspace(0.001, 0.999, 1000)
    samples = np.sin(9 * times) + 0.1 * rng.normal(size=1000)
    return (rng.normal(size=40), 0.1 * rng.normal(size=39)), times, samples


PROGRAMS = (
    gradients("bundle adjustment", bundle, bundle_data),
    gradients("hand", hand, hand_data),
    gradients("spline fit", spline, spline_data),
)
