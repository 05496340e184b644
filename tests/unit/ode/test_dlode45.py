# SPDX-License-Identifier: BSD-3-Clause
"""Solutions of differential equations and their gradients, against SciPy, closed forms and differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import tracejit as tj
from tracejit.ode.adjoint import OdeSolution
from tracejit.ode.steps import Tolerances, dormand_prince, next_size, weights_of
from tracejit.ode.tableau import BETWEEN, ERROR, NODES, STAGES

TIGHT = {"relative_tolerance": 1e-8, "absolute_tolerance": 1e-9}
MODES = ("direct", "adjoint", "adjoint-seminorm")
RNG = np.random.default_rng(0)
A, Y0 = RNG.standard_normal((3, 3)), RNG.standard_normal(3)
TIMES = [0, 0.3, 1.0]


def pull(t: Any, y: Any, theta: Any) -> Any:
    return theta @ tj.tanh(y) + 0.1 * t


def reference(a: np.ndarray, y0: np.ndarray, times: Any = TIMES) -> np.ndarray:
    """The states by SciPy, in another method."""
    result = solve_ivp(
        lambda t, y: a @ np.tanh(y) + 0.1 * t, (times[0], times[-1]), y0, "DOP853", times[1:],
        rtol=1e-12, atol=1e-13,
    )  # fmt: skip
    states: np.ndarray = result.y.T
    return states


class TestTableau:
    def test_rows_add_up_to_the_nodes(self) -> None:
        for node, row in zip(NODES[1:], STAGES, strict=True):
            assert sum(row) == pytest.approx(node, abs=1e-15)
        assert sum(ERROR) == pytest.approx(0, abs=1e-15)

    def test_order_of_the_solution_between_steps(self) -> None:
        """At the end it is the solution, and its derivatives at both ends are the slopes there."""
        ends = [sum(row) for row in BETWEEN]
        assert ends == pytest.approx([*STAGES[-1], 0], abs=1e-14)
        slopes = [sum(power * weight for power, weight in enumerate(row, 1)) for row in BETWEEN]
        assert slopes == pytest.approx([0, 0, 0, 0, 0, 0, 1], abs=1e-12)

    @pytest.mark.parametrize(("part", "order"), [(None, 6), (0.37, 5)])
    def test_error_of_a_step(self, part: float | None, order: int) -> None:
        """Half of a step has 2**-order of its error."""
        errors = []
        start = np.array([0.7, -0.4])
        for h in (0.2, 0.1):
            state = (start,)
            after, slopes, _ = dormand_prince(
                lambda t, y: (A[:2, :2] @ np.sin(y[0]) + t,), 0.0, h, state, (A[:2, :2] @ np.sin(start),),
                Tolerances(1e-3, 1e-6),
            )  # fmt: skip
            found = after[0]
            if part is not None:
                (weights,) = weights_of([part], np.dtype(float))
                parts = [start, *[h * slope[0] for slope in slopes]]
                found = sum(weight * part for weight, part in zip(weights, parts, strict=True))
            want = solve_ivp(
                lambda t, y: A[:2, :2] @ np.sin(y) + t,
                (0, h * (part or 1)),
                start,
                "DOP853",
                rtol=1e-13,
                atol=1e-15,
            ).y[:, -1]
            errors.append(np.abs(found - want).max())
        assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)

    def test_size_of_the_next_step(self) -> None:
        assert next_size(1.0, 0.0) == 5.0
        assert next_size(1.0, 1e9) == next_size(1.0, math.inf) == next_size(1.0, math.nan) == 0.2
        assert next_size(1.0, 1.0) == 0.9


class TestSolution:
    @pytest.mark.parametrize("mode", MODES)
    def test_states(self, mode: str) -> None:
        found = tj.dlode45(pull, TIMES, tj.dlarray(Y0), tj.dlarray(A), gradient_mode=mode, **TIGHT)
        np.testing.assert_allclose(found, reference(A, Y0), rtol=1e-6)

    @pytest.mark.parametrize("mode", MODES)
    def test_backwards_in_time(self, mode: str) -> None:
        times = [1.0, 0.6, 0.0]
        found = tj.dlode45(pull, times, Y0, A, gradient_mode=mode, **TIGHT)
        np.testing.assert_allclose(found, reference(A, Y0, times), rtol=1e-6)

    def test_two_times_give_the_last_state(self) -> None:
        found = tj.dlode45(pull, [0, 1], Y0, A, **TIGHT)
        assert found.shape == (3,)
        np.testing.assert_allclose(found, reference(A, Y0)[-1], rtol=1e-6)

    def test_tolerances_are_kept(self) -> None:
        want = reference(A, Y0)
        errors = [
            np.abs(
                np.asarray(tj.dlode45(pull, TIMES, Y0, A, relative_tolerance=r, absolute_tolerance=r)) - want
            ).max()
            for r in (1e-3, 1e-5, 1e-7)
        ]
        assert errors[0] < 1e-2 and errors[1] < 1e-4 and errors[2] < 1e-6

    def test_without_parameters(self) -> None:
        assert tj.dlode45(lambda t, y: -y, [0, 1], np.ones(2), **TIGHT).tolist() == pytest.approx(
            [math.exp(-1)] * 2
        )

    @pytest.mark.parametrize("mode", MODES)
    def test_labels(self, mode: str) -> None:
        y0 = tj.dlarray(RNG.standard_normal((3, 4)), "CB")
        weights = tj.dlarray(A)

        def layer(t: Any, y: Any, theta: Any) -> Any:
            assert y.format == "CB"
            return tj.fullyconnect(tj.tanh(y), theta["w"], theta["b"])

        theta = {"w": weights, "b": tj.zeros(3, dtype="float64")}
        found = tj.dlode45(layer, [0, 1, 2], y0, theta, gradient_mode=mode, **TIGHT)
        last = tj.dlode45(layer, [0, 2], y0, theta, gradient_mode=mode, **TIGHT)
        assert (found.format, found.shape, last.format) == ("CBT", (3, 4, 2), "CB")
        np.testing.assert_allclose(found[:, :, 1], last, rtol=1e-6)
        other = tj.dlode45(
            layer, [0, 2], tj.stripdims(y0), theta, data_format="CB", gradient_mode=mode, **TIGHT
        )
        np.testing.assert_allclose(other, last, rtol=1e-12)

    @pytest.mark.parametrize("mode", MODES)
    def test_containers(self, mode: str) -> None:
        def oscillator(t: Any, y: Any, theta: Any) -> Any:
            return {"x": y["v"], "v": -theta[0] * y["x"]}

        y0 = {"x": np.ones(2), "v": np.zeros((2, 1)).sum(axis=1)}
        found = tj.dlode45(oscillator, [0, 1, 2], y0, [np.array(4.0)], gradient_mode=mode, **TIGHT)
        np.testing.assert_allclose(found["x"], np.cos(2 * np.array([[1, 1], [2, 2]])), rtol=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("mode", MODES)
    def test_a_network_is_its_own_parameters(self, mode: str) -> None:
        network = tj.dlnetwork(
            [tj.nn.FeatureInput(2), tj.nn.FullyConnected(5), tj.nn.Tanh(), tj.nn.FullyConnected(2)]
        )
        network = network.initialize(seed=1) if not network.initialized else network

        def loss(network: Any, y0: Any) -> Any:
            y = tj.dlode45(network, [0, 1], y0, gradient_mode=mode)
            return tj.dlgradient((y**2).sum(), network)

        gradient = tj.dlfeval(loss, network, tj.dlarray(np.ones((3, 2), "float32"), "BC"))
        w = [
            value.numpy() if hasattr(value, "numpy") else np.asarray(value)
            for value in tj.tree.flatten(network)[0]
        ]
        assert [np.shape(leaf) for leaf in tj.tree.flatten(gradient)[0]] == [part.shape for part in w]
        assert all(np.abs(np.asarray(leaf)).max() > 0 for leaf in tj.tree.flatten(gradient)[0])

    @pytest.mark.parametrize("mode", MODES)
    def test_no_observations(self, mode: str) -> None:
        def solved(y0: Any, theta: Any) -> Any:
            y = tj.dlode45(lambda t, y, theta: -theta * y, TIMES, y0, theta, gradient_mode=mode)
            return y, tj.dlgradient(y.sum(), (y0, theta))

        accelerated = tj.dlaccelerate(solved)
        for _ in range(3):
            y, (by_state, by_theta) = accelerated(tj.zeros((0, 2)), tj.dlarray(2.0))
            assert y.shape == (2, 0, 2) and by_state.shape == (0, 2) and by_theta.item() == 0

    def test_float32(self) -> None:
        found = tj.dlode45(pull, TIMES, Y0.astype("float32"), A.astype("float32"))
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, reference(A, Y0), rtol=1e-2)

    def test_sizes_of_steps(self) -> None:
        times: list[float] = []

        def watched(t: Any, y: Any) -> Any:
            times.append(float(tj.extractdata(t)))
            return -y

        tj.dlfeval(
            lambda y: tj.dlode45(watched, [0, 1], y, initial_step_size=0.05, max_step_size=0.2), np.ones(1)
        )
        stages = times[1:]
        assert stages[:2] == pytest.approx([0.01, 0.015])
        starts = [stages[i + 5] for i in range(0, len(stages), 6)]
        assert max(np.diff([0, *starts])) <= 0.2 + 1e-12


class TestGradients:
    def gradients(self, mode: str, function: Callable[..., Any] = pull) -> list[np.ndarray]:
        def loss(y0: Any, a: Any) -> Any:
            y = tj.dlode45(function, TIMES, y0, a, gradient_mode=mode, **TIGHT)
            return tj.dlgradient((y**2).sum(), y0, a)

        return [*map(np.asarray, tj.dlfeval(loss, tj.dlarray(Y0), tj.dlarray(A)))]

    @pytest.mark.slow
    @pytest.mark.parametrize("mode", MODES)
    def test_by_differences(self, mode: str) -> None:
        def loss(y0: np.ndarray, a: np.ndarray) -> float:
            return float((reference(a, y0) ** 2).sum())

        by_state, by_theta = self.gradients(mode)
        for number in range(3):
            step = np.zeros(3)
            step[number] = 1e-5
            assert by_state[number] == pytest.approx(
                (loss(Y0 + step, A) - loss(Y0 - step, A)) / 2e-5, rel=1e-6
            )
            both = np.outer(np.eye(3)[1], step)
            assert by_theta[1, number] == pytest.approx(
                (loss(Y0, A + both) - loss(Y0, A - both)) / 2e-5, rel=1e-6
            )

    @pytest.mark.slow
    def test_modes_agree(self) -> None:
        direct, *others = [self.gradients(mode) for mode in MODES]
        for other in others:
            for one, two in zip(direct, other, strict=True):
                np.testing.assert_allclose(two, one, rtol=1e-6)

    @pytest.mark.slow
    def test_parameters_that_are_used_in_every_stage(self) -> None:
        """The state of a stage depends on the parameters; its slope is differentiated by the parameters alone."""

        def function(t: Any, y: Any, theta: Any) -> Any:
            return tj.sin(theta @ y) * theta[0]

        direct, adjoint = self.gradients("direct", function), self.gradients("adjoint", function)
        np.testing.assert_allclose(adjoint[1], direct[1], rtol=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("mode", MODES)
    def test_accelerated(self, mode: str) -> None:
        @tj.dlaccelerate
        def step(y0: Any, a: Any) -> Any:
            y = tj.dlode45(pull, TIMES, y0, a, gradient_mode=mode, **TIGHT)
            return tj.dlgradient((y**2).sum(), y0, a)

        for scale in (1.0, 0.5, 1.0, 0.25):
            found = step(tj.dlarray(scale * Y0), tj.dlarray(A))
            want = tj.dlfeval(step.function, tj.dlarray(scale * Y0), tj.dlarray(A))
            for one, two in zip(found, want, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-12)
        assert step.stats.hits == 2

    def test_steps_that_are_no_longer_kept_are_taken_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        solutions = []
        solved = OdeSolution.solved

        def counted(self: OdeSolution, times: np.ndarray, arrays: Any, saves: bool = False) -> Any:
            solutions.append(times)
            return solved(self, times, arrays, saves)

        monkeypatch.setattr(OdeSolution, "solved", counted)
        kept = self.gradients("direct")
        assert len(solutions) == 1
        monkeypatch.setattr("tracejit.ode.adjoint._MOST_KEPT", 0)
        again = self.gradients("direct")
        assert len(solutions) == 3
        for one, two in zip(again, kept, strict=True):  # the steps may be recorded once and replayed once
            np.testing.assert_allclose(one, two, rtol=1e-13)

    @pytest.mark.parametrize("room", [1 << 26, 500, 0])
    def test_steps_save_as_much_as_there_is_room_for(
        self, room: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their gradient is that of the steps that are computed again."""
        monkeypatch.setattr("tracejit.ode.solve.MOST_SAVED", room)
        saved = []
        solved = OdeSolution.solved

        def noted(self: OdeSolution, times: np.ndarray, arrays: Any, saves: bool = False) -> Any:
            solution = solved(self, times, arrays, saves)
            saved.append([sum(part._data.nbytes for part in step.saved) for step in solution.steps])
            return solution

        monkeypatch.setattr(OdeSolution, "solved", noted)
        found = self.gradients("direct")
        monkeypatch.setattr("tracejit.ode.adjoint._MOST_UNDIFFERENTIATED", 0)
        for one, two in zip(found, self.gradients("direct"), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)
        some, none = saved
        count = sum(map(bool, some))
        assert len(some) > 4
        assert not any(none)
        assert not any(some[count:])
        assert sum(some[: count - 1]) <= room
        assert count == len(some) or sum(some) > room

    def test_solutions_that_nobody_differentiates_save_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        solved = OdeSolution.solved

        def noted(self: OdeSolution, times: np.ndarray, arrays: Any, saves: bool = False) -> Any:
            asked.append(saves)
            return solved(self, times, arrays, saves)

        monkeypatch.setattr(OdeSolution, "solved", noted)

        def fall(t: Any, y: Any) -> Any:
            return -tj.tanh(y)

        def end(y: Any) -> Any:
            return tj.dlode45(fall, [0, 1], y).sum()

        y = tj.dlarray(Y0)
        for _ in range(6):
            end(y)
        tj.dlfeval(lambda y: tj.dlgradient(end(y), y), y)
        end(y)
        assert asked == [True] * 4 + [False] * 3 + [True]

    @pytest.mark.parametrize("mode", MODES)
    def test_a_second_derivative_is_refused(self, mode: str) -> None:
        def second(y0: Any) -> Any:
            y = tj.dlode45(lambda t, y: -tj.tanh(y), [0, 1], y0, gradient_mode=mode)
            (slope,) = tj.dlgradient(y.sum(), (y0,), enable_higher_derivatives=True)
            return tj.dlgradient(slope.sum(), y0)

        with pytest.raises(tj.GradientError, match="second derivative"):
            tj.dlfeval(second, tj.dlarray(Y0))

    def test_a_right_hand_side_that_is_made_again_is_the_same(self) -> None:
        from tracejit.ode import problem

        def solve(scale: Any) -> Any:
            return tj.dlode45(lambda t, y: -scale * y, [0, 1], np.ones(2))

        scale = 2.0
        before = {id(found) for found, _ in problem._problems.values()}
        for _ in range(3):
            solve(scale)
        assert len({id(found) for found, _ in problem._problems.values()} - before) <= 1


class TestFixedSteps:
    @pytest.mark.slow
    @pytest.mark.parametrize(("solver", "order"), [(tj.dlrk4, 4), (tj.dleuler, 1)])
    def test_order(self, solver: Callable[..., Any], order: int) -> None:
        want = reference(A, Y0)
        errors = [np.abs(np.asarray(solver(pull, TIMES, Y0, A, num_steps=n)) - want).max() for n in (40, 80)]
        assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)

    @pytest.mark.slow
    def test_gradient(self) -> None:
        def loss(solve: Callable[..., Any], a: Any) -> Any:
            return tj.dlgradient((solve(a) ** 2).sum(), a)

        fixed = tj.dlfeval(
            lambda a: loss(lambda a: tj.dlrk4(pull, TIMES, Y0, a, num_steps=60), a), tj.dlarray(A)
        )
        adaptive = tj.dlfeval(
            lambda a: loss(lambda a: tj.dlode45(pull, TIMES, Y0, a, **TIGHT), a), tj.dlarray(A)
        )
        np.testing.assert_allclose(fixed, adaptive, rtol=1e-6)


class TestVariables:
    """What a right-hand side reads besides its arguments is read again at each call."""

    @pytest.mark.parametrize("is_accelerated", [False, True])
    @pytest.mark.parametrize("mode", MODES)
    def test_of_enclosing_functions(self, mode: str, is_accelerated: bool) -> None:
        rate, items, array = 2.0, {"rate": 1.0}, np.ones(2)
        start = tj.dlarray([1.0, 2.0])

        def slope(t: Any, y: Any) -> Any:
            return -rate * items["rate"] * array * y

        def solved(y0: Any) -> Any:
            y = tj.dlode45(slope, [0, 1], y0, gradient_mode=mode, relative_tolerance=1e-7)
            return y, tj.dlgradient(y.sum(), y0)

        call = tj.dlaccelerate(solved) if is_accelerated else lambda y0: tj.dlfeval(solved, y0)

        def check() -> None:
            for _ in range(4):
                factor = np.exp(-rate * items["rate"] * array)
                y, gradient = call(start)
                assert_allclose(y, factor * np.asarray(start), rtol=1e-4)
                assert_allclose(gradient, factor, rtol=1e-3)

        check()
        rate = 1.5
        check()
        items["rate"] = 0.5
        check()
        array[:] = 3.0
        check()
        array = np.full(2, 0.5)
        check()

    def test_functions_that_were_alike(self) -> None:
        def made() -> tuple[Any, Any]:
            rate = 2.0

            def set_rate(value: float) -> None:
                nonlocal rate
                rate = value

            return (lambda t, y: -rate * y), set_rate

        (first, set_first), (second, _) = made(), made()
        start, ends = tj.dlarray([1.0]), []
        for fun in (first, second, first, second):
            ends.append(tj.dlode45(fun, [0, 1], start, relative_tolerance=1e-6).item())
            set_first(1.0)
        assert_allclose(ends, np.exp([-2.0, -2.0, -1.0, -2.0]), rtol=1e-4)

    def test_a_method_is_one_right_hand_side(self) -> None:
        class Decay:
            rate = 2.0

            def slope(self, t: Any, y: Any) -> Any:
                return -self.rate * y

        decay = Decay()
        solved = tj.dlaccelerate(lambda y0: tj.dlode45(decay.slope, [0, 1], y0, relative_tolerance=1e-6))
        for rate in (2.0, 2.0, 2.0, 2.0, 1.0, 1.0):
            decay.rate = rate
            assert_allclose(solved(tj.dlarray([1.0])), [np.exp(-rate)], rtol=1e-4)
        assert solved.stats.hits >= 3
