# SPDX-License-Identifier: BSD-3-Clause
"""tracejit doctor --cuda, through the stand-in for the driver."""

import json
from functools import partial
from pathlib import Path

import pytest
from fake_cublas import fake_cublas
from fake_driver import FakeLibrary, fake_device
from llvm_texts import NEEDS_LLVM_22

from tracejit import cli
from tracejit.compile import link
from tracejit.compile.capability import Capability
from tracejit.config import settings
from tracejit.doctor import cuda, facts
from tracejit.errors import DeviceError
from tracejit.runtime.cuda import cublas, library
from tracejit.runtime.cuda import driver as drivers

pytestmark = NEEDS_LLVM_22


@pytest.fixture(name="short")
def fixture_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of few arrays and calls."""
    monkeypatch.setattr(cuda, "_CALLS", 2)
    monkeypatch.setattr(cuda, "_REPEATS", 2)
    monkeypatch.setattr(cuda, "_KERNELS", 3)
    monkeypatch.setattr(cuda, "examine_cuda", partial(cuda.examine_cuda, 2048))


@pytest.mark.slow
def test_the_report(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_device() as fake, fake_cublas(fake, None):
        assert cli.main(["doctor", "--cuda"]) == 0
        text = capsys.readouterr().out
        assert cli.main(["doctor", "--cuda", "--json"]) == 0
    for line in (
        "GPU             Emulated GPU, 1.0 GiB, capability 8.0", "training step   as on the CPU",
        "pageable access no: the driver copies memory of the host",
        "cuBLASLt        12.9.3", "cuBLASLt        as on the CPU",
    ):  # fmt: skip
        assert f"  {line}\n" in text
    assert text.endswith("\n\nIt works.\n")
    sections = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert sections == ["device", "checks", "measures", "cuBLASLt", "It works."]
    result = json.loads(capsys.readouterr().out)["result"]
    assert set(result["checks"].values()) == {None} and result["lost"] is None
    measures = {measure["name"]: measure for measure in result["measures"]}
    assert measures["replay, host"]["remark"].startswith("6 launches")
    for name in ("product", "by cuBLASLt"):
        assert measures[name]["unit"] == "TFLOP/s" and measures[name]["remark"].startswith("22 x 22 with its")
    assert settings.cublas_from is None
    assert all(measure["value"] > 0 for measure in measures.values())


@pytest.fixture(name="few")
def fixture_few(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that compares two functions, without cuBLASLt."""
    monkeypatch.setattr(cuda, "_COMPARED", dict.fromkeys(("chain", "other"), (cuda._chain, ((9,),))))
    monkeypatch.setattr(cublas, "files", lambda major: [f"libno.so.{major}"])


@pytest.mark.slow
def test_a_wrong_result_is_broken(
    few: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda, "first_difference", lambda *_: "output is 1")
    with fake_device():
        assert cli.main(["doctor", "--cuda"]) == 1
    text = capsys.readouterr().out
    assert "\n  chain           output is 1\n" in text and text.endswith("\nBroken: chain, other.\n")


@pytest.mark.slow
def test_what_fails_is_a_line_and_the_check_goes_on(
    few: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("of\nno use")

    for name in ("_bounds", "_norm"):
        monkeypatch.setattr(cuda, name, fail)
    monkeypatch.setattr(cuda._Large, "copy", fail)
    monkeypatch.setattr(cuda.link, "description", fail)
    told: list[str] = []
    with fake_device():
        report = cuda.examine_cuda(tell=told.append)
        assert cli.main(["doctor", "--cuda"]) == 1
    for name in ("linker", "bounds", "copy", "layer norm"):
        assert f"  {name:<16}failed: RuntimeError: of no use" in told
    assert report.broken == ["linker", "bounds", "copy", "layer norm"] and report.lost is None
    assert [measure.name for measure in report.measures if measure.value is not None] == [
        "chain", "softmax", "product", "replay, host", "replay, device", "layer, first", "layer, replay",
    ]  # fmt: skip
    assert str(report) == "\n".join([*told, "", "Broken: linker, bounds, copy, layer norm."])
    shown = capsys.readouterr().out.splitlines()
    assert [line[:18] for line in shown] == [line[:18] for line in str(report).splitlines()]


def test_the_check_ends_where_the_device_is_lost(
    few: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_device() as fake:

        def lose() -> None:
            fake.faults["cuStreamSynchronize"] = 719
            drivers.driver().synchronize()

        monkeypatch.setattr(cuda, "_bounds", lose)
        assert cli.main(["doctor", "--cuda"]) == 1
    shown = capsys.readouterr()
    *_, other, bounds, empty, end = shown.out.splitlines()
    assert other == "  other           as on the CPU" and empty == "" and not shown.err
    assert bounds.startswith(
        "  bounds          failed: DeviceError: cuda:0: the device is lost to this process (cuSt"
    )
    assert end == "Broken: bounds; the device is lost to this process, and the check ended."


@pytest.mark.slow
def test_the_library_is_opened_last(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take the device with it, and none of our kernels is tried by it where a setting asks for it."""
    monkeypatch.setattr(settings, "cublas_from", 1)
    with fake_device() as fake:

        def lose(*_: object) -> None:
            fake.faults["cuStreamSynchronize"] = 700
            drivers.driver().synchronize()

        monkeypatch.setattr(cublas, "load", lose)
        report = cuda.examine_cuda()
    assert report.broken == ["cuBLASLt"] and report.lost is not None and len(report.measures) == 9
    assert settings.cublas_from == 1


def test_without_cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "files", lambda major: [f"libno.so.{major}"])
    with fake_device():
        works, text = cuda.library_of_products(drivers.driver())
        assert not works and text.startswith(
            "none; TRACEJIT_CUBLAS_FROM: cuBLASLt was not found (libno.so.12)"
        )
        report = cuda.CudaReport()
        cuda._of_library(report, drivers.driver(), 64)
        assert report.device == {"cuBLASLt": text} and not report.checks and not report.broken


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(library, "names", lambda: ("libno.so.1",))
    with drivers.replaced(None):
        assert cli.main(["doctor", "--cuda"]) == 1
        assert (
            "there is no NVIDIA driver on this machine (libno.so.1 was not found)" in capsys.readouterr().err
        )
        assert facts.gpu()[0] is None
        with pytest.raises(DeviceError):
            facts.describe_device()


def test_with_an_old_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeLibrary()
    fake.version = 11080
    monkeypatch.setattr(library, "load", lambda: fake)
    with drivers.replaced(None):
        assert cli.main(["doctor", "--cuda"]) == 1
        assert (
            "the NVIDIA driver is too old: it is made for CUDA 11.8, expected 12.0" in capsys.readouterr().err
        )
        assert facts.gpu()[0] is None


def test_a_linker_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its package is there, but not its library: the driver translates PTX, as without the package."""

    class File:
        name, suffix = "libnvJitLink.so.13", ".13"

        def locate(self) -> Path:
            return tmp_path / self.name

    monkeypatch.setattr(link, "linker_version", lambda: "nvidia-nvjitlink 13.0.88")
    monkeypatch.setattr(link.importlib.metadata, "files", lambda package: [File()])
    link._library.cache_clear()
    try:
        assert link.cubin_of("", Capability(8, 0)) is None
        assert link.description() == (
            "nvidia-nvjitlink 13.0.88, which cannot be loaded; the driver translates PTX"
        )
    finally:
        link._library.cache_clear()


def test_a_gpu_is_a_fact() -> None:
    with fake_device() as fake:
        assert facts.gpu() == ("Emulated GPU, 1.0 GiB, capability 8.0", None)
        assert isinstance(fake, FakeLibrary)
