# SPDX-License-Identifier: BSD-3-Clause
"""The inspector of programs on a device: operations and launches of its own kernels, times by events, the cache."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit import cache, config
from tracejit.accelerate.function import AcceleratedFunction
from tracejit.describe import device_profile
from tracejit.traces.device_replay import DeviceReplay
from tracejit.view import live

pytestmark = NEEDS_LLVM_22


@pytest.fixture(autouse=True)
def fixture_small_copies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(device_profile, "_COPIES", (1 << 10, 1 << 12))
    monkeypatch.setattr(device_profile, "_LIMIT_NS", 0)
    monkeypatch.setattr(device_profile, "_REPLAYS", 1)
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))


def step(w: Any, x: Any) -> Any:
    y = tj.tanh(x @ w)
    loss = (y * y).mean()
    return loss, w - 0.1 * tj.dlgradient(loss, w)


def stepped(function: Any = step, shapes: Any = ((3, 7), (5, 3))) -> AcceleratedFunction[..., Any]:
    accelerated = tj.dlaccelerate(function)
    rng = np.random.default_rng(0)
    arrays = tj.gpu([rng.standard_normal(shape).astype(np.float32) for shape in shapes])
    for _ in range(3):
        accelerated(*arrays)
    return accelerated


def replay_of(function: AcceleratedFunction[..., Any]) -> DeviceReplay:
    replay: DeviceReplay = function.variants()[0].traces[0].replay
    return replay


def test_a_description_is_that_of_the_devices_launches(fake: FakeLibrary) -> None:
    replay = replay_of(stepped())
    described, program = replay.describe(), replay.program
    assert [row.number for row in described.rows] == list(range(len(program.rows)))
    named = {op.number: op.name for op in described.ops}
    for row, launch in zip(described.rows, program.rows, strict=True):
        assert launch.grid is not None and all(named[number] in launch.note for number in row.ops)
    places = {(buffer.place.kind, buffer.place.number) for buffer in described.buffers}
    assert places == {("input", 0), ("input", 1), ("arena", 0), ("output", 0), ("output", 1)}
    assert all(
        buffer.place.offset + buffer.bytes <= program.arena_bytes
        for buffer in described.buffers
        if buffer.place.kind == "arena"
    )
    assert any("accumulates in memory of its own" in pair.why for pair in described.pairs)
    emitted = {kernel.name: kernel.text.splitlines() for kernel in program.kernels}
    lines = [emitted[name][line - 1] for name, by_line in described.lines.items() for line in by_line]
    assert any("tanh" in line for line in lines)


def test_lines_of_vectors_come_from_operations(fake: FakeLibrary) -> None:
    replay = replay_of(stepped(lambda x: tj.tanh(x) * 3.0, ((1030,),)))
    (lines,) = replay.describe().lines.values()
    (kernel,) = replay.program.kernels
    texts = [kernel.text.splitlines()[number - 1] for number in lines]
    assert sum("tanh_f32" in text for text in texts) == 2  # of vectors, and of the elements left over


def test_times_are_those_of_events_between_launches(fake: FakeLibrary) -> None:
    """The stand-in adds a millisecond for each block, and a quarter for each event, which is subtracted."""
    replay = replay_of(stepped())
    blocks = [row.grid.blocks for row in replay.program.rows if row.grid is not None]
    profile = replay.profile()
    assert profile is not None
    assert profile.launch_ns == pytest.approx([1e6 * number for number in blocks])
    assert profile.replays == 3 and profile.replay_ns == 1e6


def test_a_profile_leaves_nothing_on_the_device(fake: FakeLibrary) -> None:
    function = stepped()
    before = fake.leaks
    replay_of(function).profile()
    assert fake.leaks == before


def test_a_profile_of_guards_indices_writes_and_strides(fake: FakeLibrary) -> None:
    def function(x: Any, i: Any) -> Any:
        x += 1
        return x[i] if x.sum() < 1e6 else x

    accelerated = tj.dlaccelerate(function)
    x = tj.gpu(np.zeros((4, 3), np.float32))
    for _ in range(3):
        accelerated(x, tj.gpu(np.array([1, 2])))
    profile = replay_of(accelerated).profile()
    assert profile is not None and len(profile.launch_ns) == len(replay_of(accelerated).program.rows)
    assert x.tolist() == [[3.0] * 3] * 4  # the user's array is not touched


def test_a_page_shows_the_devices_program(fake: FakeLibrary, tmp_path: Path) -> None:
    function = stepped()
    page = live.page(function._running())
    (program,) = page["programs"]
    assert ("target", "cuda:0, Emulated GPU, compute capability 8.0") in program["facts"]
    assert [launch["threads"] for launch in program["launches"]] == replay_of(function).program.threads
    assert program["is_timed"] and program["timing"][-1].startswith("The device: copies, as measured now, ")
    assert program["launches"][1]["threads"].endswith(" x 128 threads, after 1")
    json.dumps(page)
    assert function.view(tmp_path / "page.html").exists()


def test_the_rates_of_a_device(fake: FakeLibrary) -> None:
    rates = replay_of(stepped()).rates()
    assert rates.flops_per_s == {"float32": 2 * 64 * 108 * 1e9, "float64": 64 * 108 * 1e9}
    assert [size for size, _ in rates.copies] == [1 << 10, 1 << 12]


def test_the_cache_describes_programs_of_a_device(fake: FakeLibrary) -> None:
    function = stepped()
    (row,) = cache.list()
    assert (row.function, row.target) == ("step", "cuda 8.0")
    shown = str(cache.show(row.key))
    assert "tanh" in shown and all(kernel.name in shown for kernel in replay_of(function).program.kernels)
