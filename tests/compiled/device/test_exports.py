# SPDX-License-Identifier: BSD-3-Clause
"""Exported folders for GPUs: made with and without one, loaded through the stand-in for NVIDIA's driver."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, agree
from fake_driver import FakeLibrary, fake_device
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit.compile import link
from tracejit.compile.capability import Capability
from tracejit.exports import files
from tracejit.runtime.cuda import driver as drivers

pytestmark = NEEDS_LLVM_22
F32 = np.float32


def step(w: Any, x: Any) -> Any:
    loss = (tj.tanh(x @ w) ** 2).mean()
    return loss, w - 0.1 * tj.dlgradient(loss, w)


ARRAYS = tuple(np.random.default_rng(0).standard_normal(shape).astype(F32) for shape in ((3, 7), (5, 3)))


def exported(function: Any, folder: Path, args: Any, **options: Any) -> tj.Exported:
    """Export a function for GPUs without one, so that code is PTX; with an installed linker it would be cubins."""
    options = {"capabilities": "8.0", **options}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracejit.compile.link.linker_version", lambda: None)
        patch.setattr("tracejit.compile.link._library", lambda: None)
        return tj.export(tj.dlaccelerate(function), folder, args=args, target="cuda", **options)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions(case: Case, tmp_path: Path) -> None:
    arrays = case.arrays()
    want = tj.tree.flatten(tj.dlfeval(case.function, *map(tj.dlarray, arrays)))[0]
    made = exported(case.function, tmp_path / "f", arrays)
    assert made.cpus == ("cuda 8.0",) and made.kernels > 0
    with fake_device() as fake:
        loaded = tj.load(tmp_path / "f")
        assert loaded.cpu == "cuda 8.0"
        for args in (arrays, tj.gpu(arrays), tj.gpu(arrays)):
            results = tj.tree.flatten(loaded(*args))[0]
            assert all(result.device == "cuda:0" for result in results)
            agree([np.asarray(result) for result in results], want)
        assert fake.launched


def test_a_trace_of_the_device_is_exported_too(fake: FakeLibrary, tmp_path: Path) -> None:
    function = tj.dlaccelerate(step)
    for _ in range(3):
        want = function(*tj.gpu(ARRAYS))
    made = tj.export(function, tmp_path / "f", target="cuda")
    assert (made.traces, made.cpus) == (1, ("cuda 8.0",))
    found = tj.load(tmp_path / "f")(*tj.gpu(ARRAYS))
    assert [x.tolist() for x in found] == [x.tolist() for x in want]


def test_a_loaded_function_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(step, tmp_path / "f", ARRAYS)

    def refuse(*args: Any) -> Any:
        raise AssertionError("it compiles")

    monkeypatch.setattr("tracejit.compile.device_code.compiled", refuse)
    with fake_device():
        loaded = tj.load(tmp_path / "f")
        for _ in range(3):
            loaded(*tj.gpu(ARRAYS))
        assert "on a GPU; arena" in loaded.source()


def test_guards_writes_captured_arrays_random_numbers_and_indices(tmp_path: Path) -> None:
    scale = np.array([2.0, 3.0, 4.0], F32)

    def function(x: Any, i: Any, rate: Any) -> Any:
        x *= scale
        y = x[i] if x.sum() > 0 else -x
        return y * rate + tj.rand(3) * 0

    x = np.ones(3, F32)
    i = np.array([2, 0, 1])
    exported(function, tmp_path / "f", (x, i, 0.5), captured="constants")
    scale[:] = 0
    with fake_device():
        loaded = tj.load(tmp_path / "f")
        assert loaded.signature[0].writes == ("x",) and loaded.signature[0].draws
        there = tj.gpu(x)
        assert loaded(there, tj.gpu(i), 0.5).tolist() == [2.0, 1.0, 1.5]
        assert there.tolist() == [2.0, 3.0, 4.0]
        here = x.copy()
        assert loaded(here, i, 0.5).tolist() == [2.0, 1.0, 1.5]
        assert here.tolist() == [2.0, 3.0, 4.0]
        with pytest.raises(tj.RetraceError, match="a branch that no exported trace has"):
            loaded(tj.gpu(-x), tj.gpu(i), 0.5)
        with pytest.raises(tj.BoundsError):
            loaded(tj.gpu(x), tj.gpu(np.array([0, 1, 9])), 0.5)


def test_a_function_without_arguments(tmp_path: Path) -> None:
    weights = tj.dlarray(np.arange(3, dtype=F32))
    exported(lambda: np.exp(weights), tmp_path / "f", (), captured="constants")
    with fake_device() as fake:
        loaded = tj.load(tmp_path / "f")
        for _ in range(3):
            result = loaded()
            assert result.device == "cuda:0" and fake.launched
            np.testing.assert_allclose(tj.gather(result), np.exp(np.arange(3, dtype=F32)), rtol=1e-6)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS)
    with fake_device():
        loaded = tj.load(tmp_path / "f")
        with pytest.raises(
            tj.ArgumentError, match="x is 4x3 float32 on cuda:0, expected 5x3 float32 on cuda:0"
        ):
            loaded(ARRAYS[0], np.ones((4, 3), F32))


def with_capability(major: int, minor: int) -> Any:
    library = FakeLibrary()
    library.attributes |= {75: major, 76: minor}
    return drivers.replaced(drivers.Driver(library, kept_bytes=0))


def test_the_best_code_is_chosen(tmp_path: Path) -> None:
    made = exported(step, tmp_path / "f", ARRAYS, capabilities=("8.0", "9.0", "10.0"))
    assert made.cpus == ("cuda 8.0", "cuda 9.0", "cuda 10.0")
    for own, best in (((8, 6), "8.0"), ((9, 0), "9.0"), ((12, 0), "10.0")):
        with with_capability(*own):
            assert tj.load(tmp_path / "f").cpu == f"cuda {best}"
    with with_capability(9, 0):
        assert tj.load(tmp_path / "f", cpu="cuda 8.0").cpu == "cuda 8.0"
    with (
        with_capability(7, 5),
        pytest.raises(tj.ExportError, match=r"no code for this GPU \(cuda 7.5\); it has cuda 8.0"),
    ):
        tj.load(tmp_path / "f")


def test_cubins_run_on_gpus_of_their_major_capability(tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS, capabilities=("8.0", "8.9"))
    content = files.read(str(tmp_path / "f"), False)
    for target in content.manifest["cuda"]:
        target["form"] = "cubin"
    renamed = {name.replace(".ptx", ".cubin"): data for name, data in content.files.items()}
    files.write(str(tmp_path / "f"), content.manifest, renamed, True)
    for own, best in (((8, 6), "8.0"), ((8, 9), "8.9")):
        with with_capability(*own):
            assert tj.load(tmp_path / "f").cpu == f"cuda {best}"
    with (
        with_capability(9, 0),
        pytest.raises(tj.ExportError, match=r'Export the function with capabilities="9\.0"'),
    ):
        tj.load(tmp_path / "f")


def test_the_linker_makes_cubins(tmp_path: Path) -> None:
    if link.linker_version() is None:
        pytest.skip("nvJitLink is not installed")
    tj.export(tj.dlaccelerate(step), tmp_path / "f", args=ARRAYS, target="cuda", capabilities=("8.0", "9.0"))
    names = [path.name for path in (tmp_path / "f" / "code" / "cuda-9.0").iterdir()]
    assert names and all(name.endswith(".cubin") for name in names)


def test_what_the_linker_refuses_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def linked(ptx: str, capability: Capability, *options: str) -> link.Linked:
        return link.Linked(None, f"\nptxas error : too many parameters\nsm_{capability.major}0", is_known)

    is_known = True
    monkeypatch.setattr(link, "linker_version", lambda: "a linker 1.0")
    monkeypatch.setattr(link, "linked", linked)
    export = partial(tj.export, tj.dlaccelerate(step), args=ARRAYS, target="cuda", capabilities="8.0")
    text = (
        r"^export: NVIDIA's linker does not take \w+ for GPUs of capability 8\.0, and no driver would: ptxas error : "
        r'too many parameters\. Export the function with target="cpu", or as several functions\.$'
    )
    with pytest.raises(tj.ExportError, match=text):
        export(path=tmp_path / "f")
    assert not (tmp_path / "f").exists()
    is_known = False  # a driver that is newer than the linker may know the GPU
    export(path=tmp_path / "f")
    assert all(path.suffix == ".ptx" for path in (tmp_path / "f" / "code" / "cuda-8.0").iterdir())


def test_a_folder_says_what_is_in_it(tmp_path: Path) -> None:
    made = exported(step, tmp_path / "f", ARRAYS)
    manifest = json.loads((tmp_path / "f" / "manifest.json").read_text())
    (target,) = manifest["cuda"]
    assert (target["name"], target["form"], len(target["code"])) == ("cuda 8.0", "ptx", made.kernels)
    assert "cpus" not in manifest
    program = json.loads((tmp_path / "f" / "programs" / "cuda" / "trace-0.json").read_text())
    assert all(row["grid"] for row in program["rows"])
    with fake_device():
        loaded = tj.load(tmp_path / "f")
        assert str(loaded.signature[0]) == "(w: 3x7 float32, x: 5x3 float32) -> scalar float32, 3x7 float32"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda row: row.update(grid=[0, 128]), "the blocks of row 0 is 0"),
        (lambda row: row.update(grid=[1, 2048]), "the threads of row 0 is 2048"),
        (lambda row: row.update(needs=[0]), "a row before row 0 is 0"),
        (lambda row: row.pop("grid"), "a kernel of the CPU cannot run on a device"),
    ],
)
def test_forged_threads(change: Any, what: str, tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS)
    content = files.read(str(tmp_path / "f"), False)
    name = "programs/cuda/trace-0.json"
    program = json.loads(content.files[name])
    change(program["rows"][0])
    files.write(
        str(tmp_path / "f"), content.manifest, {**content.files, name: json.dumps(program).encode()}, True
    )
    with fake_device(), pytest.raises(tj.ExportError, match=what):
        tj.load(tmp_path / "f")


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise tj.DeviceError("there is no GPU.")

    exported(step, tmp_path / "f", ARRAYS, capabilities=("8.0", "9.0"))
    monkeypatch.setattr(drivers, "driver", missing)
    expected = r"has code for GPUs only: cuda 8.0 \(ptx\), cuda 9.0 \(ptx\). there is no GPU. Or export"
    with pytest.raises(tj.ExportError, match=expected):
        tj.load(tmp_path / "f")
    with pytest.raises(tj.DeviceError, match="there is no GPU"):
        exported(step, tmp_path / "g", ARRAYS, capabilities=None)


def rewritten(folder: Path, change: Any) -> None:
    content = files.read(str(folder), False)
    change(content.manifest, content.files)
    files.write(str(folder), content.manifest, content.files, True)


def test_code_of_an_unknown_gpu(tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS)
    rewritten(tmp_path / "f", lambda manifest, _: manifest["cuda"][0].update(name="cuda 5.5"))
    with fake_device(), pytest.raises(tj.ExportError, match=r"code for 'cuda 5\.5'"):
        tj.load(tmp_path / "f")


def test_a_kernel_without_code(tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS)
    rewritten(tmp_path / "f", lambda manifest, _: manifest["cuda"][0]["code"].pop())
    with (
        fake_device(),
        pytest.raises(tj.ExportError, match=r"the folder has no code of \w+. Export the function again"),
    ):
        tj.load(tmp_path / "f")


def test_code_that_the_driver_refuses(fake: FakeLibrary, tmp_path: Path) -> None:
    exported(step, tmp_path / "f", ARRAYS)
    fake.faults["cuModuleLoadDataEx"] = 218
    with pytest.raises(
        tj.ExportError, match=r"the driver does not take the code of \w+ \(.* Export the function for"
    ):
        tj.load(tmp_path / "f")


def test_python_between_kernels(tmp_path: Path) -> None:
    with pytest.raises(tj.ExportError, match="it calls "):
        exported(lambda x: np.linalg.eig(x)[0], tmp_path / "f", (np.eye(3),))
