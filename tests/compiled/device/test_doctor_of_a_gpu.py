# SPDX-License-Identifier: BSD-3-Clause
"""tracejit doctor --cuda, through the stand-in for the driver."""

import json
from functools import cache
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


@pytest.mark.slow
def test_the_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    examine = cache(cuda.examine_cuda)
    monkeypatch.setattr(cuda, "_CALLS", 2)
    monkeypatch.setattr(cuda, "_REPEATS", 2)
    monkeypatch.setattr(cuda, "_KERNELS", 3)
    monkeypatch.setattr(cuda, "examine_cuda", lambda: examine(elements=2048))
    with fake_device() as fake, fake_cublas(fake, None):
        assert cli.main(["doctor", "--cuda"]) == 0
        text = capsys.readouterr().out
        assert cli.main(["doctor", "--cuda", "--json"]) == 0
    for line in (
        "GPU             Emulated GPU, 1.0 GiB, capability 8.0", "training step   as on the CPU",
        "cuBLASLt        12.9.3", "cuBLASLt        as on the CPU",
    ):  # fmt: skip
        assert f"  {line}\n" in text
    assert text.endswith("\nIt works.\n")
    result = json.loads(capsys.readouterr().out)["result"]
    assert set(result["checks"].values()) == {None}
    measures = {measure["name"]: measure for measure in result["measures"]}
    assert measures["replay, host"]["remark"].startswith("6 launches")
    for name in ("product", "by cuBLASLt"):
        assert measures[name]["unit"] == "TFLOP/s" and measures[name]["remark"].startswith("22 x 22 with its")
    assert settings.cublas_from is None
    assert all(measure["value"] > 0 for measure in measures.values())


def test_a_wrong_result_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_COMPARED", {"chain": (cuda._chain, ((9,),))})
    monkeypatch.setattr(cuda, "first_difference", lambda *_: "output is 1")
    with fake_device():
        checks = cuda._checks()
    report = cuda.CudaReport({}, checks, [])
    assert report.broken == ["chain"] and str(report).endswith("Broken: 1 of 2 checks.")


def test_without_cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "files", lambda major: [f"libno.so.{major}"])
    with fake_device():
        works, text = cuda.library_of_products(drivers.driver())
        assert not works and text.startswith(
            "none; TRACEJIT_CUBLAS_FROM: cuBLASLt was not found (libno.so.12)"
        )
        assert [measure.name for measure in cuda._products(drivers.driver(), 8)] == ["product"]


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
