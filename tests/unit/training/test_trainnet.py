# SPDX-License-Identifier: BSD-3-Clause
"""trainnet does what a loop over the public updates does, and goes on from checkpoints to the same bits."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj
from tracejit import nn

pytestmark = pytest.mark.usefixtures("python_backend")
RNG = np.random.default_rng(0)
X = tj.dlarray(RNG.standard_normal((20, 4)).astype(np.float32), "BC")
T = tj.dlarray(tj.onehotencode(np.arange(20) % 3, 1, 3), "BC")
OPTIONS: dict[str, Any] = {"max_epochs": 2, "mini_batch_size": 8, "verbose": False}


def network(*more: nn.Layer) -> tj.dlnetwork:
    layers = [nn.FeatureInput(4), nn.FullyConnected(5), nn.Tanh(), *more, nn.FullyConnected(3), nn.Softmax()]
    return tj.dlnetwork(layers, seed=3)


def arrays_of(net: tj.dlnetwork) -> dict[str, np.ndarray]:
    return {f"{row.layer}/{row.parameter}": np.asarray(row.value) for row in (*net.learnables, *net.state)}


def assert_equal(net: tj.dlnetwork, other: tj.dlnetwork) -> None:
    have, want = arrays_of(net), arrays_of(other)
    assert have.keys() == want.keys()
    for name, value in have.items():
        np.testing.assert_array_equal(value, want[name], err_msg=name)


def by_hand(options: dict[str, Any], solver: str, net: tj.dlnetwork) -> tj.dlnetwork:
    """Train with the public updates, in plain Python."""
    kept: list[Any] = [None, None]
    most, method = (
        options.get("gradient_threshold", math.inf),
        options.get("gradient_threshold_method", "l2norm"),
    )
    decay = options.get("l2_regularization", 1e-4)
    iteration = 0
    for _ in range(options["max_epochs"]):
        for start in range(0, 20, options["mini_batch_size"]):
            iteration += 1
            x, t = (array[start : start + options["mini_batch_size"]] for array in (X, T))

            def gradients_of(net: Any, x: Any, t: Any) -> Any:
                y, state = net.forward(x, acceleration="none")
                return tj.dlgradient(tj.crossentropy(y, t), net.learnables), state

            gradients, state = tj.dlfeval(gradients_of, net, x, t)
            factors = net.l2_factors.to_dict()
            changed = {
                (row.layer, row.parameter): np.asarray(row.value)
                + decay
                * factors[row.layer][row.parameter]
                * np.asarray(net.learnables[row.layer, row.parameter])
                for row in gradients
            }
            everything = math.sqrt(sum(float((g.astype(float) ** 2).sum()) for g in changed.values()))
            for name, g in changed.items():
                length = math.sqrt(float((g.astype(float) ** 2).sum())) if method == "l2norm" else everything
                if method == "absolute-value":
                    g = np.clip(g, -most, most)
                elif length > most:
                    g = g * (most / length)
                gradients = gradients.with_value(*name, tj.dlarray(g.astype(np.float32)))
            net = net.with_state(state) if len(net.state) else net
            rate = options.get("initial_learn_rate", 0.01 if solver == "sgdm" else 0.001)
            if solver == "adam":
                net, *kept = tj.adamupdate(net, gradients, *kept, iteration, rate)
            elif solver == "rmsprop":
                net, kept[0] = tj.rmspropupdate(net, gradients, kept[0], rate)
            else:
                net, kept[0] = tj.sgdmupdate(net, gradients, kept[0], rate)
    return net


@pytest.mark.parametrize("solver", ["sgdm", "adam", "rmsprop"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"l2_regularization": 0.0},
        {"l2_regularization": 0.3},
        {"gradient_threshold": 0.05},
        {"gradient_threshold": 0.05, "gradient_threshold_method": "global-l2norm"},
        {
            "gradient_threshold": 0.02,
            "gradient_threshold_method": "absolute-value",
            "initial_learn_rate": 0.1,
        },
        {"acceleration": "none"},
    ],
    ids=str,
)
def test_a_training_is_a_loop_over_the_updates(solver: str, more: dict[str, Any]) -> None:
    net = network(nn.BatchNormalization()).freeze("fc_1").with_l2_factor("fc", "bias", 2)
    trained, info = tj.trainnet(
        (X, T), net, options=tj.trainingoptions(solver, **(OPTIONS | more), shuffle="never")
    )
    expected = arrays_of(by_hand(OPTIONS | more, solver, net))
    for name, value in arrays_of(trained).items():
        np.testing.assert_allclose(value, expected[name], rtol=2e-4, atol=2e-6, err_msg=name)
    assert_equal(net, network(nn.BatchNormalization()))  # which stays as it is
    assert info.training_history["iteration"].tolist() == [1, 2, 3, 4, 5, 6]
    assert info.training_history["epoch"].tolist() == [1, 1, 1, 2, 2, 2]
    assert (info.stop_reason, info.output_iteration) == ("max_epochs completed", 6)


def checkpointed(folder: Path, **more: Any) -> Any:
    """Return options with dropout, every kind of state, and a checkpoint after each iteration."""
    return tj.trainingoptions(
        **{
            "solver": "adam",
            **OPTIONS,
            "shuffle": "every-epoch",
            "validation_data": (X, T),
            "validation_frequency": 2,
            "output_network": "best-validation",
            "metrics": {"top": lambda y, t: y.max()},
            "checkpoint_path": folder,
            "checkpoint_frequency_unit": "iteration",
            **more,
        }
    )


@pytest.mark.parametrize("solver", ["sgdm", "adam", "rmsprop"])
@pytest.mark.parametrize("shuffle", ["once", "every-epoch"])
def test_it_goes_on_from_any_iteration(tmp_path: Path, solver: str, shuffle: str) -> None:
    """Uncompiled, the functions of NumPy may round in two ways, by where arrays lie in memory."""
    net = network(nn.BatchNormalization(), nn.Dropout(0.4))
    options = {"solver": solver, "shuffle": shuffle}
    with tj.rng(5):
        want, told = tj.trainnet((X, T), net, options=checkpointed(tmp_path / "all", **options))
        after = tj.rng()
    for iteration in sweep((2, 3), range(1, 7)):
        with tj.rng(77):
            found, info = tj.trainnet(
                (X, T),
                net,
                options=checkpointed(tmp_path / "other", **options),
                resume=tmp_path / "all" / f"checkpoint_{iteration}.npz",
            )
            assert tj.rng() == after
        assert_equal(found, want)
        for have, expected in zip(info[:2], told[:2], strict=True):
            assert have.keys() == expected.keys()
            for name, column in have.items():
                np.testing.assert_array_equal(column, expected[name], err_msg=name)
        assert info[2:] == told[2:]


@pytest.mark.parametrize("part", ["data", "weights"])
def test_it_goes_on_where_the_state_becomes_wider(tmp_path: Path, part: str) -> None:
    """Statistics of float32 are float64 after a step with data or weights of float64."""
    net, x = network(nn.BatchNormalization()), X.astype(np.float64)
    if part == "weights":
        net, x = tj.dlupdate(lambda p: p.astype(np.float64), net), X
    assert net.state["batchnorm", "trained_mean"].dtype == np.float32
    want, _ = tj.trainnet((x, T), net, options=checkpointed(tmp_path, max_epochs=1))
    assert want.state["batchnorm", "trained_mean"].dtype == np.float64
    for iteration in (1, 2):
        path = tmp_path / f"checkpoint_{iteration}.npz"
        found, _ = tj.trainnet((x, T), net, options=checkpointed(tmp_path, max_epochs=1), resume=path)
        assert_equal(found, want)


@pytest.mark.slow
def test_a_stopped_training_goes_on(tmp_path: Path) -> None:
    net = network(nn.Dropout(0.2))
    with tj.rng(1):
        want, _ = tj.trainnet((X, T), net, options=checkpointed(tmp_path / "whole"))
    with tj.rng(1):
        stop = checkpointed(tmp_path / "part", output_fcn=lambda row: row["iteration"] == 4)
        _, info = tj.trainnet((X, T), net, options=stop)
        assert info.stop_reason == "output_fcn returned True" and len(info.training_history["loss"]) == 4
    found, _ = tj.trainnet((X, T), net, options=checkpointed(tmp_path / "part"), resume=tmp_path / "part")
    assert_equal(found, want)


def test_one_seed_gives_one_network() -> None:
    def trained(seed: int) -> tj.dlnetwork:
        with tj.rng(seed):
            return tj.trainnet(
                (X, T), network(nn.Dropout(0.5)), options=tj.trainingoptions("adam", **OPTIONS)
            )[0]

    assert_equal(trained(1), trained(1))
    assert any(
        (a.value != b.value).any() for a, b in zip(trained(1).learnables, trained(2).learnables, strict=True)
    )


def test_each_size_is_recorded_once_and_random_numbers_are_drawn_once() -> None:
    calls: list[str] = []

    def loss(y: Any, t: Any) -> Any:
        calls.append("")
        return tj.crossentropy(y, t)

    tj.trainnet((X, T), network(), loss, tj.trainingoptions("adam", **(OPTIONS | {"max_epochs": 10})))
    assert len(calls) <= 6  # of 8 and of 4 observations: recorded, confirmed, and looked at once


def test_validation(tmp_path: Path) -> None:
    queue = tj.minibatchqueue(X, T, mini_batch_size=3)
    options = tj.trainingoptions(
        "sgdm",
        **(OPTIONS | {"max_epochs": 4}),
        validation_data=queue,
        validation_frequency=5,
        metrics={"first": lambda y, t: y[0, 0], "mean": lambda y, t: y.mean()},
        output_network="best-validation",
    )
    net, info = tj.trainnet((X, T), network(), "crossentropy", options)
    history = info.validation_history
    assert history["iteration"].tolist() == [5, 10, 12] and len(queue) == 7 and queue.state["position"] == 0
    best = int(np.argmin(history["loss"]))
    assert info.output_iteration == history["iteration"][best]
    loss = tj.crossentropy(net.predict(X, acceleration="none"), T).item()
    assert history["loss"][best] == pytest.approx(loss, rel=1e-5)
    assert history["mean"] == pytest.approx([1 / 3] * 3, rel=1e-5)
    assert info.training_history.keys() == {"iteration", "epoch", "learn_rate", "loss", "first", "mean"}


def test_what_ends_a_training() -> None:
    def train(loss: Any = "crossentropy", **more: Any) -> Any:
        return tj.trainnet((X, T), network(), loss, tj.trainingoptions("sgdm", **(OPTIONS | more)))[1]

    worse = {"max_epochs": 50, "validation_data": (X, T), "validation_frequency": 1}
    info = train(
        lambda y, t: -tj.crossentropy(y, t) * 0.0 + 1.0 + 0.0 * y.sum(), **worse, validation_patience=3
    )
    assert info.stop_reason == "validation_patience is used up" and len(info.training_history["loss"]) == 4
    info = train(lambda y, t: tj.crossentropy(y, t) * np.inf)
    assert info.stop_reason == "the loss is inf" and len(info.training_history["loss"]) == 1


def test_rates() -> None:
    def rates(**more: Any) -> list[float]:
        options = tj.trainingoptions("adam", **(OPTIONS | {"max_epochs": 4, "mini_batch_size": 10}), **more)
        _, info = tj.trainnet((X, T), network(), options=options)
        return info.training_history["learn_rate"].tolist()

    assert rates() == [0.001] * 8
    assert (
        rates(
            learn_rate_schedule="piecewise",
            learn_rate_drop_period=3,
            learn_rate_drop_factor=0.5,
            initial_learn_rate=1.0,
        )
        == [1.0] * 6 + [0.5] * 2
    )
    own = rates(
        learn_rate_schedule=lambda rate, epoch, iteration: rate * epoch + iteration, initial_learn_rate=0.5
    )
    assert own == [
        1.5, 2.5, 4.0, 5.0, 6.5, 7.5, 9.0, 10.0,
    ]  # fmt: skip
    cosine = rates(learn_rate_schedule="cosine", initial_learn_rate=1.0)
    assert cosine == pytest.approx([0.5 * (1 + math.cos(math.pi * k / 8)) for k in range(8)])


def test_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = []
    options = tj.trainingoptions(
        "adam",
        **(OPTIONS | {"verbose": True}),
        verbose_frequency=4,
        validation_data=(X, T),
        output_fcn=rows.append,
    )
    tj.trainnet((X, T), network(), options=options)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1", "4", "6"]
    assert re.fullmatch(r"iteration 1  epoch 1  learn_rate 0\.001  loss \d\.\d+", lines[0])
    assert re.fullmatch(
        r"iteration 6  epoch 2  learn_rate 0\.001  loss \d\.\d+  validation_loss \d\.\d+", lines[2]
    )
    assert [row["iteration"] for row in rows] == [*range(1, 7)] and "validation_loss" in rows[-1]


def test_several_inputs_and_outputs() -> None:
    net = tj.dlnetwork(
        [nn.FeatureInput(4, name="a"), nn.FullyConnected(3, name="left"), nn.Addition(2, name="sum")],
        initialize=False,
    )
    net = net.add_layers([nn.FeatureInput(3, name="b"), nn.FullyConnected(3, name="right")])
    net = net.connect_layers("right", "sum/in2").initialize(seed=0)
    y = tj.dlarray(np.ones((20, 3), np.float32), "BC")
    trained, info = tj.trainnet(
        (X, y, T),
        net,
        "mse",
        tj.trainingoptions("adam", **(OPTIONS | {"max_epochs": 20}), initial_learn_rate=0.05),
    )
    assert trained.input_names == ("a", "b")
    assert info.training_history["loss"][-1] < 0.5 * info.training_history["loss"][0]


def test_a_checkpoint_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tj.trainnet((X, T), network(), options=checkpointed(tmp_path))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"checkpoint_{n}.npz" for n in range(1, 7))
    with np.load(tmp_path / "checkpoint_6.npz", allow_pickle=False) as file:
        assert json.loads(str(file["training"]))["iteration"] == 6
    before = (tmp_path / "checkpoint_1.npz").read_bytes()

    def fails(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fails)
    with pytest.raises(tj.ArgumentError, match="cannot be written \\(No space left on device\\)"):
        tj.trainnet((X, T), network(), options=checkpointed(tmp_path))
    assert (tmp_path / "checkpoint_1.npz").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_checkpoints_by_epochs(tmp_path: Path) -> None:
    options = checkpointed(tmp_path, max_epochs=5, checkpoint_frequency=2, checkpoint_frequency_unit="epoch")
    tj.trainnet((X, T), network(), options=options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint_12.npz", "checkpoint_15.npz", "checkpoint_6.npz",
    ]  # fmt: skip


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    tj.trainnet((X, T), network(), options=checkpointed(tmp_path))

    def resume(net: Any = None, path: Any = tmp_path, **more: Any) -> None:
        tj.trainnet((X, T), net or network(), options=checkpointed(tmp_path, **more), resume=path)

    with pytest.raises(tj.ArgumentError, match="its solver is 'adam', not 'sgdm'"):
        resume(solver="sgdm")
    with pytest.raises(tj.ArgumentError, match="its mini_batches is 3, not 2"):
        resume(mini_batch_size=10)
    with pytest.raises(tj.ArgumentError, match="is of another network: for batchnorm/offset of"):
        resume(network(nn.BatchNormalization()))
    broken = tmp_path / "checkpoint_9.npz"
    broken.write_bytes((tmp_path / "checkpoint_6.npz").read_bytes()[:-100])
    with pytest.raises(tj.ArgumentError, match=r"checkpoint_9.npz cannot be read \(it is no checkpoint\)"):
        resume()
    for content in (np.ones(3), np.array("[1]"), np.array(1.0)):
        np.savez(broken, training=content)
        with pytest.raises(
            tj.ArgumentError, match=r"checkpoint_9.npz cannot be read \(it is no checkpoint\)"
        ):
            resume()
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(tj.ArgumentError, match=r"array.npy cannot be read \(it is no checkpoint\)"):
        resume(path=tmp_path / "array.npy")


def test_it_goes_on_with_other_metrics(tmp_path: Path) -> None:
    def train(resume: Any = None, **metrics: Any) -> Any:
        more = {"metrics": metrics, "validation_data": (X, T), "validation_frequency": 1}
        return tj.trainnet((X, T), network(), options=checkpointed(tmp_path, **more), resume=resume)[1]

    first = train(a=lambda y, t: y[0, 0])
    second = train(tmp_path / "checkpoint_4.npz", b=lambda y, t: y[0, 1])
    for before, after in zip(first[:2], second[:2], strict=True):
        assert after.keys() == before.keys() | {"b"}
        np.testing.assert_array_equal(after["loss"], before["loss"])
        np.testing.assert_array_equal(after["a"], [*before["a"][:4], np.nan, np.nan])
        np.testing.assert_array_equal(np.isnan(after["b"]), [True] * 4 + [False] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_each_mini_batch_begins_with_the_state_that_was_passed(
    tmp_path: Path, kind: type[nn.Layer], inner: bool
) -> None:
    """Each mini-batch has sequences of its own, and the last one may have fewer."""
    x = tj.dlarray(RNG.standard_normal((10, 4, 3)).astype(np.float32), "BTC")
    t = tj.dlarray(RNG.standard_normal((10, 2)).astype(np.float32), "BC")
    recurrent = kind(5, output_mode="last")  # type: ignore[call-arg]
    if inner:
        recurrent = nn.Network(tj.dlnetwork([nn.SequenceInput(3), recurrent], seed=2))
    layers = [nn.SequenceInput(3), recurrent, nn.BatchNormalization(), nn.FullyConnected(2)]
    net = tj.dlnetwork(layers, seed=1)
    more = {"mini_batch_size": 4, "validation_data": (x[:3], t[:3]), "validation_frequency": 2}

    trained, info = tj.trainnet(
        (x, t),
        net,
        "mse",
        checkpointed(tmp_path, solver="sgdm", initial_learn_rate=0.0, shuffle="never", **more),
    )
    losses = info.training_history["loss"].reshape(2, 3)
    np.testing.assert_array_equal(losses[0], losses[1])
    first = tj.mse(net.forward(x[:4], acceleration="none")[0], t[:4]).item()
    assert losses[0, 0] == pytest.approx(first, rel=1e-5)
    before, after = arrays_of(net), arrays_of(trained)
    changed = [name for name, value in after.items() if not np.array_equal(value, before[name])]
    assert changed == ["batchnorm/trained_mean", "batchnorm/trained_variance"]
    assert trained.predict(x[:1]).shape == (1, 2)

    options = checkpointed(tmp_path, **more)
    whole, _ = tj.trainnet((x, t), net, "mse", options)
    again, _ = tj.trainnet((x, t), net, "mse", options, resume=tmp_path / "checkpoint_2.npz")
    assert_equal(again, whole)


@pytest.mark.slow
def test_validation_without_a_number_returns_the_last_network() -> None:
    options = tj.trainingoptions(
        "adam",
        **OPTIONS,
        validation_data=(X * np.nan, T),
        validation_frequency=1,
        output_network="best-validation",
        shuffle="never",
    )
    net, info = tj.trainnet((X, T), network(), options=options)
    last, _ = tj.trainnet((X, T), network(), options=options._replace(output_network="last-iteration"))
    assert info.output_iteration == 6 and np.isnan(info.validation_history["loss"]).all()
    assert_equal(net, last)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("method", ["l2norm", "global-l2norm"])
def test_a_gradient_whose_square_is_infinite_is_shortened(method: str, dtype: str) -> None:
    net = tj.dlupdate(
        lambda w: w.astype(dtype), tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(1)], seed=1)
    )
    x, large = tj.dlarray(np.full((1, 4), 3, dtype), "BC"), 1000.0 if dtype == "float16" else 1e30
    options = tj.trainingoptions(
        "sgdm", **(OPTIONS | {"max_epochs": 1}), initial_learn_rate=1.0, l2_regularization=0.0, gradient_threshold=0.5,
        gradient_threshold_method=method,
    )  # fmt: skip
    trained, _ = tj.trainnet((x,), net, lambda y: (y * large).sum(), options)
    moved = {name: array - arrays_of(net)[name] for name, array in arrays_of(trained).items()}
    lengths = {name: float(np.linalg.norm(change.astype(float))) for name, change in moved.items()}
    both = math.hypot(6.0, 1.0) if method == "global-l2norm" else None
    np.testing.assert_allclose(lengths["fc/weights"], 0.5 * 6.0 / (both or 6.0), rtol=2e-3)
    np.testing.assert_allclose(lengths["fc/bias"], 0.5 / (both or 1.0), rtol=2e-3)
    assert {array.dtype for array in moved.values()} == {np.dtype(dtype)}


@pytest.mark.slow
@pytest.mark.parametrize("stops", [True, np.bool_(True)])
def test_output_fcn_stops_with_a_truth_value_of_numpy_too(stops: Any) -> None:
    options = tj.trainingoptions("adam", **OPTIONS, output_fcn=lambda row: stops)
    assert tj.trainnet((X, T), network(), options=options)[1].stop_reason == "output_fcn returned True"
    options = tj.trainingoptions("adam", **OPTIONS, output_fcn=lambda row: "said")
    assert tj.trainnet((X, T), network(), options=options)[1].stop_reason == "max_epochs completed"


@pytest.mark.parametrize("given", ["a", None, math.nan, -1.0])
def test_a_schedule_returns_a_rate(given: Any) -> None:
    options = tj.trainingoptions("adam", **OPTIONS, learn_rate_schedule=lambda rate, epoch, iteration: given)
    with pytest.raises(
        tj.ArgumentError, match=r"^trainingoptions: the result of learn_rate_schedule must be "
    ):
        tj.trainnet((X, T), network(), options=options)


def test_a_metric_may_be_a_plain_number() -> None:
    metrics = {
        "rmse": lambda y, t: math.sqrt(((y - t) ** 2).mean()),
        "same": lambda y, t: ((y - t) ** 2).mean() ** 0.5,
    }
    options = tj.trainingoptions("adam", **OPTIONS, metrics=metrics, acceleration="none")
    history = tj.trainnet((X, T), network(), options=options)[1].training_history
    np.testing.assert_allclose(history["rmse"], history["same"], rtol=1e-6)
