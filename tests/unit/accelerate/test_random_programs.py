# SPDX-License-Identifier: BSD-3-Clause
"""Random programs: replays equal the function, and so do gradients through a call."""

import numpy as np
from accelerated import dlaccelerate
from effort import sweep
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tracejit as tj
from tracejit import (
    dlarray,
    dlfeval,
    dlgradient,
    tree,
)


def assigned(a, b):
    a[0] = b[-1]
    a[:, -1] += 1.5
    a[::-1, 0] = a[:, 0] * 0.5
    return a


def slope(a, b):
    return dlgradient((np.tanh(a) * b).mean(), a)


@dlaccelerate
def accelerated_slope(a, b):
    return dlgradient((np.sin(a) * b).sum(), b)


def curvature(a, b):
    first = dlgradient((tj.sigmoid(a) * b**2).sum(), a, b, enable_higher_derivatives=True)
    return dlgradient((first[0] * first[1]).sum(), a)


STEPS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b * 0.5,
    "rsub": lambda a, b: 1.0 - a,
    "div": lambda a, b: a / (1 + b**2),
    "max": np.maximum,
    "where": lambda a, b: np.where(a > b, a, b),
    "tanh": lambda a, b: np.tanh(a),
    "exp": lambda a, b: np.exp(-(a**2)) + b,
    "rows": lambda a, b: a.sum(axis=0, keepdims=True) * 0.1 + b,
    "columns": lambda a, b: b - a.max(axis=1, keepdims=True),
    "mean": lambda a, b: a.mean() * b,
    "product": lambda a, b: a @ (a.T @ b) * 0.05,
    "turned": lambda a, b: (a.T[::-1]).T * b,
    "flipped": lambda a, b: a[::-1] + b[:1],
    "picked": lambda a, b: a[:, [0, -1, 0]].sum(axis=1, keepdims=True) + b,
    "joined": lambda a, b: np.concatenate([a, b])[a.shape[0] // 2 :][: a.shape[0]],
    "padded": lambda a, b: np.pad(a, ((1, 0), (0, 1)))[:-1, 1:] + b,
    "assigned": lambda a, b: assigned(a * 1, b),
    "assigned in place": assigned,
    "softmax": lambda a, b: tj.softmax(a, axis=1) - b,
    "loss": lambda a, b: tj.huber(a, tj.stop_gradient(b), data_format="BC") * b,
    "slope": slope,
    "curvature": curvature,
    "through": accelerated_slope,
    "evaluated": lambda a, b: dlfeval(slope, a, b),
    "constant": lambda a, b: a * np.arange(1.0, a.shape[1] + 1) + np.eye(*a.shape, dtype=a.dtype),
    "cast": lambda a, b: a.astype(np.float32).astype(a.dtype) * (b.shape[0] > 1),
    "flat": lambda a, b: (a.reshape(-1) + b.ravel()[::-1]).reshape(a.shape),
}


@st.composite
def programs(draw):
    names = draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6))
    places = [draw(st.tuples(st.integers(0, i + 1), st.integers(0, i + 1))) for i in range(len(names))]

    def program(params, x):
        values = [params["w"], x]
        for name, (i, j) in zip(names, places, strict=True):
            values.append(STEPS[name](values[i], values[j]))
        total = (values[-1] ** 2).sum() * 0.1
        return {
            "values": values[-3:],
            "total": total,
            "grads": dlgradient(total, params),
            "x": x,
            "names": names,
        }

    program.__qualname__ = " ".join(f"{name}{place}" for name, place in zip(names, places, strict=True))
    note(program.__qualname__)
    return program


@st.composite
def arguments(draw, shape, dtype):
    """Return arrays of one shape that lie in memory in some way."""

    def array():
        numbers = draw(
            st.lists(st.integers(-8, 8), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
        )
        data = np.array(numbers, dtype).reshape(shape) / 4
        how = draw(st.sampled_from("CCFSR"))
        if how == "F":
            return np.asfortranarray(data)
        if how == "S":
            wide = np.full((shape[0] * 2, shape[1] * 3), np.nan, dtype)
            wide[::2, ::3] = data
            return wide[::2, ::3]
        return data[::-1].copy()[::-1] if how == "R" else data

    return {"w": array()}, array()


def numbers_of(result):
    """Return all arrays in a result, as ndarrays, and the rest of it."""
    leaves, treedef = tree.flatten(result)
    arrays = [leaf._data for leaf in leaves if isinstance(leaf, dlarray)]
    return arrays, [leaf for leaf in leaves if not isinstance(leaf, dlarray)], treedef


def assert_equal(result, expected, dtype):
    (have, others, treedef), (want, other_wants, want_treedef) = numbers_of(result), numbers_of(expected)
    assert treedef == want_treedef and others == other_wants
    scale = max([1.0, *[np.abs(a).max() for a in want if a.size]])
    for a, b in zip(have, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=scale * (1e-4 if dtype == np.float32 else 1e-6))


class TestRandomPrograms:
    @settings(
        max_examples=sweep(6, 40, sample=2),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs(), st.sampled_from([np.float64, np.float64, np.float32]), st.data())
    def test_replays_equal_the_function(self, program, dtype, data):
        accelerated = dlaccelerate(program)
        for shape in data.draw(st.lists(st.sampled_from([(1, 1), (2, 3), (3, 2)]), min_size=1, max_size=2)):
            for _ in range(2):
                params, x = data.draw(arguments(shape, dtype))
                before = [params["w"].copy(), x.copy()]
                expected = dlfeval(program, params, x)
                written = [params["w"].copy(), x.copy()]
                for _ in range(3):  # the last one by the generated call path
                    params["w"][...], x[...] = before
                    result = accelerated(params, x)
                    assert_equal(result, expected, dtype)
                    assert_equal([dlarray(params["w"]), dlarray(x)], list(map(dlarray, written)), dtype)
                outs = numbers_of(result)[0]
                for i, out in enumerate(outs):
                    assert not any(np.shares_memory(out, other) for other in (params["w"], x, *outs[:i]))

    @settings(
        max_examples=sweep(5, 20, sample=2),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs(), st.data())
    def test_gradients_through_a_call(self, program, data):
        """The call is one op of the evaluation around it; its first and second derivatives are the function's."""
        accelerated = dlaccelerate(program)
        chosen = data.draw(st.sets(st.integers(0, 2), min_size=1))
        order = data.draw(st.integers(1, 2))

        def outer(fun):
            def evaluated(params, x):
                out = fun({"w": params["w"] * 1.5}, np.tanh(x))
                parts = [*out["values"], out["grads"]["w"], out["total"]]
                y = sum([(np.sin(parts[i]) * (i + 1)).sum() for i in sorted(chosen) if i < len(parts)])
                grads = dlgradient(y, params, x)
                if order == 2:
                    grads = (grads, dlgradient((grads[0]["w"] * grads[1]).sum(), params, x))
                return y, grads, out["x"]

            return evaluated

        for _ in range(2):
            params, x = data.draw(arguments((2, 2), np.float64))
            expected = dlfeval(outer(program), params, x)
            assert_equal(dlfeval(outer(accelerated), params, x), expected, np.float64)
