# SPDX-License-Identifier: BSD-3-Clause
"""Folders that are damaged, forged or not exported at all are errors, and none of their code runs."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import ExportError
from tracejit.compile.symbols import symbols
from tracejit.errors import CodegenError
from tracejit.exports import files, loader
from tracejit.exports.code import ExportedCode, ObjectFile
from tracejit.exports.program_json import decoded, encoded
from tracejit.ir import Graph
from tracejit.ops import Layout
from tracejit.pipeline import build
from tracejit.runtime import object_layout

TABLE = np.arange(6.0).reshape(2, 3)


def step(x: Any, w: Any) -> Any:
    y = tj.tanh(x @ w) + TABLE
    return {"y": y, "total": y.sum()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "step.tj"
    tj.export(tj.dlaccelerate(step), path, args=(np.ones((2, 4)), np.ones((4, 3))), captured="constants")
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(made, tmp_path / "step.tj"))


def rehashed(path: Path, change: Callable[[Any], Any] | None = None) -> None:
    """Make the hashes of a folder agree again, as who means to do harm would; `change` edits the manifest."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        if (path / name).exists():
            content = (path / name).read_bytes()
            manifest["files"][name] = [len(content), hashlib.sha256(content).hexdigest()]
    if change is not None:
        manifest = change(manifest) or manifest
    (path / "manifest.json").write_text(json.dumps(manifest))
    seal(path)


def seal(path: Path) -> None:
    digest = hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest()
    (path / "manifest.sha256").write_text(f"{digest}  manifest.json\n")


def refused(path: Path, text: str, **options: Any) -> None:
    with pytest.raises(ExportError, match=text):
        tj.load(path, **options)


def replacing(path: Path, other: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let another process put `other` in place of the folder whenever the manifest was read, so many times."""
    read, left = files._read, [times]

    def replaced(folder: str, name: str, *rest: Any) -> bytes:
        content = read(folder, name, *rest)
        if name == "manifest.json" and left[0]:
            left[0] -= 1
            shutil.rmtree(path)
            shutil.copytree(other, path)
        return content

    monkeypatch.setattr(files, "_read", replaced)


@pytest.mark.parametrize("times", [1, 5])
def test_a_folder_that_is_replaced_while_it_is_read(
    times: int, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tj.export(tj.dlaccelerate(lambda x: x + 1), tmp_path / "other.tj", args=(np.ones(3),))
    replacing(path, tmp_path / "other.tj", monkeypatch, times)
    found = tj.load(path)
    assert found.sha256 == other.sha256
    assert found(np.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_a_folder_that_is_moved_aside(
    made: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process renames the old and the new one there is none for a moment."""
    os.rename(path, tmp_path / "step.tj.new-1-2-old")
    read = files._read_all

    def later(*given: Any) -> files.Content:
        try:
            return read(*given)
        finally:
            if not path.exists():
                shutil.copytree(made, path)

    monkeypatch.setattr(files, "_read_all", later)
    assert tj.load(path).path == str(path)
    (tmp_path / "step.tj.new-1-2-old").rename(tmp_path / "other.tj.new-1-2-old")
    shutil.rmtree(path)
    monkeypatch.setattr(files, "_read_all", read)
    with pytest.raises(ExportError, match=r"step\.tj does not exist\. Give the path"):
        tj.load(path)


def test_a_folder_that_is_replaced_continuously(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tj.export(tj.dlaccelerate(lambda x: x + 1), tmp_path / "other.tj", args=(np.ones(3),))
    replacing(path, tmp_path / "other.tj", monkeypatch, 1)
    monkeypatch.setattr(files, "_ATTEMPTS", 1)
    with pytest.raises(ExportError, match=r"code/host/.* is missing\. Export the function again\."):
        tj.load(path)


def renaming(monkeypatch: pytest.MonkeyPatch, before: Callable[[str, str], None]) -> None:
    """Let something happen before each folder is renamed."""
    rename = os.rename

    def renamed(source: Any, target: Any, **options: Any) -> None:
        if not options:  # with options, of a file in the cache
            before(source, target)
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", renamed)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_replacement_leaves_the_old_folder(
    error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tj.load(path).sha256
    fun = tj.dlaccelerate(lambda x: x + 1)

    def interrupted(source: str, target: str) -> None:
        if target == str(path) and not source.endswith("-old"):
            raise error

    renaming(monkeypatch, interrupted)
    with pytest.raises((KeyboardInterrupt, ExportError)):
        tj.export(fun, path, args=(np.ones(3),), replace=True)
    assert tj.load(path).sha256 == before
    assert os.listdir(path.parent) == ["step.tj"]


@pytest.mark.parametrize("number", [0, 1])
def test_two_processes_replace_a_folder(
    number: int, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has it out of the way when this one wants to move it, or its own in place by then."""
    other = Path(shutil.copytree(path, tmp_path / "other.tj"))
    renames = iter(range(9))

    def meanwhile(_: str, __: str) -> None:
        if next(renames) == number:
            shutil.move(path, tmp_path / "theirs") if number == 0 else shutil.copytree(other, path)

    fun = tj.dlaccelerate(lambda x: x + 1)
    fun(np.ones(3))
    renaming(monkeypatch, meanwhile)
    made = tj.export(fun, path, args=(np.ones(3),), replace=True)
    assert tj.load(path).sha256 == made.sha256
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["other.tj", "step.tj", *(["theirs"] if number == 0 else [])]
    )


def test_paths_of_bytes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "new" / "step.tj")
    made = tj.export(tj.dlaccelerate(lambda x: x + 1), path, args=(np.ones(3),))  # type: ignore[arg-type]
    assert made.path == tj.load(path).path == os.fsdecode(path)  # type: ignore[arg-type]
    assert os.listdir(tmp_path / "new") == ["step.tj"]


def test_sha256sum_agrees(made: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "-c", "manifest.sha256"], cwd=made, capture_output=True, text=True, check=True
    )
    assert done.stdout == "manifest.json: OK\n"
    for name, (size, digest) in json.loads((made / "manifest.json").read_text())["files"].items():
        content = (made / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (size, digest)


def test_files_of_a_folder(made: Path) -> None:
    names = sorted(str(each.relative_to(made)) for each in made.rglob("*") if each.is_file())
    vectors = json.loads((made / "manifest.json").read_text())["cpus"][0]["vector_bytes"]
    assert [name for name in names if not name.startswith(("code", "constants"))] == [
        "manifest.json", "manifest.sha256", f"programs/vectors-{vectors}/trace-0.json",
        f"programs/vectors-{vectors}/trace-0.py",
    ]  # fmt: skip
    assert {name for name in names if name.startswith("code/")} >= {
        "code/host/run.o", "code/host/run_parts.o", "code/host/work.o",
    }  # fmt: skip
    (constant,) = [name for name in names if name.startswith("constants/")]
    np.testing.assert_array_equal(np.load(made / constant, allow_pickle=False), TABLE)


def test_others_may_read_the_folder_but_not_write_to_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        tj.export(tj.dlaccelerate(lambda x: 2 * x), tmp_path / "f.tj", args=(np.ones(2),))
    finally:
        os.umask(before)
    for each in [tmp_path / "f.tj", *(tmp_path / "f.tj").rglob("*")]:
        assert each.stat().st_mode & 0o777 == (0o755 if each.is_dir() else 0o644)
    tj.load(tmp_path / "f.tj")


# Who may have written it.


def every(path: Path) -> list[Path]:
    return [
        path,
        path / "programs",
        path / "manifest.json",
        next(path.glob("code/*/*.o")),
        next(path.glob("code/*")),
    ]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files to other users")
@pytest.mark.parametrize("number", range(5))
def test_files_of_a_different_user_are_refused(number: int, path: Path) -> None:
    target = every(path)[number]
    os.chown(target, 4321, -1)
    refused(
        path,
        r"is not loaded, because the f\w+ .* belongs to another user \(number 4321\)\. The folder "
        r"runs as code\. ",
    )
    tj.load(path, shared=True)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("mode", [0o002, 0o020])
def test_files_that_others_may_write_to_are_refused(number: int, mode: int, path: Path) -> None:
    target = every(path)[number]
    target.chmod(target.stat().st_mode | mode)
    refused(
        path,
        r"is not loaded, because other users may write to the f\w+ .* \(mode \d+\)\. The folder "
        r"runs as code\. ",
    )
    tj.load(path, shared=True)


@pytest.mark.parametrize("number", range(5))
def test_links_are_refused(number: int, path: Path) -> None:
    target = every(path)[number]
    aside = path.parent / "aside"
    target.rename(aside)
    os.symlink(aside, target)
    for shared in (False, True):
        refused(path, r"(is a link|Too many levels of symbolic links)", shared=shared)


def test_special_files_are_refused(path: Path) -> None:
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")
    refused(path, r"is not loaded, because the file manifest.json is not an ordinary file\.")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="has files of the administrator")
def test_a_folder_of_the_administrator_is_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    tj.load(path)
    for owner in (1234, 4321):
        os.chown(path / "manifest.json", owner, -1)
        if owner == 1234:
            tj.load(path)
    refused(path, r"the file manifest.json belongs to another user \(number 4321\)")


# Damage.


def test_changed_bytes_are_noticed(made: Path, path: Path) -> None:
    # TRACEJIT_FUZZ=100000 tries as many.
    rng = random.Random(1)
    names = [str(each.relative_to(path)) for each in sorted(path.rglob("*")) if each.is_file()]
    for _ in range(int(os.environ.get("TRACEJIT_FUZZ", "300"))):
        name = rng.choice(names)
        content = (path / name).read_bytes()
        data = bytearray(content)
        way, at = rng.randrange(5), rng.randrange(len(data))
        if way == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del data[at:]
        elif way == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 20))
        elif way == 3:
            other = (path / rng.choice(names)).read_bytes()
            data = bytearray(other)
        else:
            (path / name).unlink()
        if way != 4:
            if bytes(data) == content:
                continue
            (path / name).write_bytes(data)
        refused(path, r"^load: .*step\.tj")
        (path / name).write_bytes(content)
    assert tj.load(path).sha256 == tj.load(made).sha256


def test_a_missing_file(path: Path) -> None:
    next(path.glob("code/host/run.o")).unlink()
    refused(path, r"step.tj: code/host/run.o is missing\. Export the function again\.$")


def test_swapped_object_code_is_noticed(path: Path) -> None:
    one, two = sorted(path.glob("code/host/*_*.o"))[:2]
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    refused(
        path,
        r"step.tj: code/host/\w+\.o (does not agree with its hash in manifest.json|is larger than "
        r"manifest.json says)",
    )
    rehashed(path)  # even so: the function of that name is not in it
    refused(path, r"object code of \w+ cannot be loaded: there is no function of that name in it")


def test_an_expected_hash(made: Path, path: Path) -> None:
    sha256 = tj.load(made).sha256
    tj.load(path, sha256=sha256)
    refused(path, rf"step.tj: the hash of manifest.json is {sha256}, expected {'0' * 64}\.$", sha256="0" * 64)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: [1], r"is not an exported folder: export\(\) did not write its manifest.json"),
        (
            lambda m: m | {"kind": "cake"},
            r"is not an exported folder: export\(\) did not write its manifest.json",
        ),
        (
            lambda m: m | {"format": 2},
            r"has format 2, this version of tracejit reads 1\. Export the function again\.",
        ),
        (lambda m: m | {"files": 3}, "manifest.json has no list of files"),
        (
            lambda m: m | {"executor": "0" * 64},
            "was exported by a version of tracejit with a different executor",
        ),
        (
            lambda m: m | {"system": "riscv64 linux"},
            r"has no object code for this machine \(\w+ \w+, \w+\); it has code for riscv64 linux: host "
            r"\(\w+\)\. Export",
        ),
        (lambda m: m | {"traces": []}, r"is not what export\(\) writes \(ValueError: there are no traces\)"),
        (lambda m: m | {"traces": 7}, r"is not what export\(\) writes \(TypeError: "),
        (
            lambda m: {k: v for k, v in m.items() if k != "function"},
            r"is not what export\(\) writes "
            r"\(KeyError: 'function'\)",
        ),
        (
            lambda m: m | {"cpus": [{"name": 3}]},
            r"is not what export\(\) writes \(TypeError: 3 is not a string\)",
        ),
        (lambda m: m["cpus"][0].update(features="+sse2,+quantum"), "has no object code for this machine"),
        (
            lambda m: m["cpus"][0].update(features="-sse2", cpu="another"),
            "has no object code for this machine",
        ),
        (lambda m: m["cpus"][0].update(code={}), "the folder has no object code of "),
        (
            lambda m: m["cpus"][0]["code"]["run"].update(symbol="run"),
            "of run cannot be loaded: there is no function of",
        ),
    ],
)
def test_invalid_manifests(change: Any, text: str, path: Path) -> None:
    rehashed(path, change)
    refused(path, text)


def test_code_for_a_lesser_cpu_runs(path: Path) -> None:
    rehashed(path, lambda m: m["cpus"][0].update(cpu="older", features="+sse2,-quantum"))
    assert tj.load(path).cpu == "host"


def results(change: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda manifest: change(manifest["traces"][0]["results"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda r: r.update(structure="leaf", orders=[], leaves=r["leaves"][:1]),
            "the outputs of a program are not the",
        ),
        (
            lambda r: r["leaves"].__setitem__(0, ["array", "C"]),
            "the labels of a result are not those of its array",
        ),
        (
            lambda r: r["leaves"].__setitem__(1, ["number", "float", None]),
            "a number of the result is an array",
        ),
    ],
)
def test_results_that_do_not_fit_the_program(change: Any, text: str, path: Path) -> None:
    rehashed(path, results(change))
    refused(path, text)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd", "/etc/passwd", "code/host/../../../x.o", "code/host/..", "code//host/x.o",
        "code/host/x.o\n",
        "constants/../manifest.json", "manifest.json", "programs/vectors-64/trace-0.json/", "code/host/\0.o",
        "code\\x.o", "",
    ],
)  # fmt: skip
def test_names_outside_the_folder_are_refused(name: str, path: Path) -> None:
    rehashed(path, lambda m: m["files"].update({name: [0, "0" * 64]}))
    refused(
        path,
        r"step.tj: manifest.json names '.*', which no exported folder has\. Export the function again\.$",
    )


@pytest.mark.parametrize(
    "told",
    [
        None,
        [1],
        [1, 2],
        ["1", "0" * 64],
        [True, "0" * 64],
        [-1, "0" * 64],
        [1 << 60, "0" * 64],
        [1, "0" * 63],
    ],
)
def test_invalid_sizes_and_hashes(told: Any, path: Path) -> None:
    rehashed(path, lambda m: m["files"].update({"code/host/run.o": told}))
    refused(path, r"manifest.json has no size and hash of code/host/run.o\.")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "manifest.json cannot be read"),
        (b"\xff\xfe", "manifest.json cannot be read"),
        (b"[" * 200_000, r"manifest.json cannot be read \(maximum recursion depth exceeded"),
        (
            b'{"kind": "tracejit export", "format": 1, "files": {}, "x": ' + b"9" * 100_000 + b"}",
            "manifest.json cannot be read",
        ),
        (b'{"kind": NaN}', r"manifest.json cannot be read \(NaN\)"),
        (b'{"kind": "tracejit export", "format": 1e400, "files": {}}', "has format inf, this version"),
    ],
)
def test_hostile_json(content: bytes, text: str, path: Path) -> None:
    (path / "manifest.json").write_bytes(content)
    refused(path, r"manifest.json does not agree with manifest.sha256")
    seal(path)
    refused(path, text)


def test_a_manifest_that_is_too_large(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_MANIFEST_BYTES", 100)
    refused(path, "step.tj: manifest.json is larger than 100 bytes")


def test_a_folder_that_was_not_exported(tmp_path: Path) -> None:
    refused(
        tmp_path / "nowhere", r"nowhere does not exist\. Give the path of a folder that export\(\) wrote\.$"
    )
    refused(tmp_path, r"is not an exported folder: it has no manifest.sha256\. Give the path")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", r"file: manifest.sha256 cannot be read \(Not a directory\)\.$")


# Arrays.


def test_pickles_in_arrays_are_refused(path: Path) -> None:
    (constant,) = path.glob("constants/*.npy")
    np.save(constant, np.array([print, 1], object), allow_pickle=True)
    refused(path, "does not agree with its hash in manifest.json|is larger than manifest.json says")
    rehashed(path)
    refused(path, r"is not what export\(\) writes \(ValueError: an array of object\)")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "EOF: reading magic string"),
        (b"\x93NUMPY\x02\x00" + bytes(100), "an unsupported version of the .npy format"),
        (files.encode_array(np.ones(3))[:-1], "an array whose size is not that in its header"),
        (files.encode_array(np.ones(3)) + b"\0", "an array whose size is not that in its header"),
        (files.encode_array(np.ones(3)).replace(b"(3,), }  ", b"(9**9,)} "), "."),
        (
            files.encode_array(np.ones(3)).replace(b"(3,), }      ", b"(-3,-1)}     "),
            "an array whose size is not that in its header",
        ),
        (files.encode_array(np.ones(3)).replace(b"False", b"True "), "an array of float64"),
        (files.encode_array(np.ones(3)).replace(b"<f8", b"|O8"), "."),
        (
            files.encode_array(np.ones(3)).replace(b"(3,), }        ", b"(99999999999,)}"),
            "an array whose size is not that in its header",
        ),
    ],
)
def test_invalid_arrays(content: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        files.decode_array(content)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bool", "int8", "uint64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_arrays_round_trip(shape: tuple[int, ...], dtype: str) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found = files.decode_array(files.encode_array(array))
    assert (found.shape, found.dtype, found.tobytes()) == (shape, array.dtype, array.tobytes())
    assert found.flags.writeable
    assert found.flags.aligned


# Programs.


def data_of(path: Path) -> tuple[Any, Path]:
    (file,) = path.glob("programs/*/trace-0.json")
    return json.loads(file.read_text()), file


def pointers(data: Any, kind: str) -> list[Any]:
    return [a for row in data["rows"] for a in row["arguments"] if isinstance(a, list) and a[0] == kind]


def edit(place: str, index: int, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        pointers(data, place)[0][index] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (edit("input", 3, 65), "is byte 65 of 0 to "),
        (edit("input", 3, 1 << 20), "a place of row 0 is byte 1048576 of 0 to "),
        (edit("input", 3, -8), "a place of row 0 is byte -8 of 0 to "),
        (edit("input", 1, 2), "the input of row 0 is 2"),
        (edit("input", 1, -1), "the input of row 0 is -1"),
        (edit("input", 1, True), "the input of row 0 is True"),
        (edit("input", 2, 64), "is float64 at byte 64 of input"),
        (edit("input", 4, "float32"), "is float32 at byte 0 of input"),
        (edit("input", 4, "object"), "the dtype of a place of row 0 is 'object'"),
        (edit("input", 0, "stack"), "a place of row 0 is 'stack'"),
        (edit("output", 3, 1 << 20), r"is byte 1048576 of 0 to \d+ \(output\)"),
        (edit("constant", 3, 1 << 20), r"is byte 1048576 of 0 to 48 \(constant\)"),
        (edit("constant", 3, 4), r"is byte 4 of 0 to 48 \(constant\)"),
        (edit("arena", 2, 1 << 30), r"is byte 1073741824 of 0 to \d+ \(arena\)"),
        (edit("arena", 2, 8), "begins at 8 of the arena"),
        (edit("arena", 1, 1), "the arena of row 0 is 1"),
        (lambda d: d.update(arena_bytes=-1), "the size of the arena is -1"),
        (lambda d: d.update(arena_bytes=1 << 60), "the size of the arena is 1152921504606846976"),
        (lambda d: d.update(arena_bytes=0), r"of 0 to 0 \(arena\)"),
        (lambda d: d["rows"][0].update(kernel=99), "the kernel of row 0 is 99"),
        (lambda d: d["rows"][0].update(part=[1, 2, 1]), "row 0 is part 1 of 2"),
        (lambda d: d["rows"][-1].update(part=[0, 2, 1]), "the last launch lacks parts"),
        (lambda d: d["rows"][0].update(part=[0, 1 << 62, 1]), "row 1 is part 0 of 1"),
        (lambda d: d["rows"][0].update(part=[2, 2, 1]), "the part of row 0 is 2"),
        (lambda d: d["rows"][-1].update(part=[0, 1, 2]), "the last launch lacks parts"),
        (lambda d: d["rows"][0].update(part=[0, 1, 0]), "the rows of a part of row 0 is 0"),
        (lambda d: d["rows"][0]["arguments"].append(1 << 63), "a number of row 0 is 9223372036854775808"),
        (lambda d: d["rows"][0]["arguments"].append(1.5), "a number of row 0 is 1.5"),
        (lambda d: d["rows"][0]["arguments"].append(["symbol", "system"]), "row 0 calls 'system'"),
        (lambda d: d["rows"][0]["arguments"].append(["number", "float64", "00"]), "a number of row 0 has 1 bytes"),
        (lambda d: d["rows"][0]["arguments"].append([]), r"a program is not what was written \(IndexError"),
        (lambda d: d["rows"][0].update(where=[["a", -1]]), "a line is -1"),
        (lambda d: d["rows"][0].update(operations=3), "what row 0 does is 3"),
        (lambda d: d["kernels"][0].update(text="def f(args): pass"),
         "the text of kernel .* does not have the hash in its name"),
        (lambda d: d["kernels"].append(d["kernels"][0]), "two kernels are the same"),
        (lambda d: d["inputs"][0].__setitem__(0, [9, 9]), "the inputs of a program are not the arrays of its "
                     "arguments"),
        (lambda d: d["inputs"][0].__setitem__(0, [1 << 50]), "a size of input 0 is 1125899906842624"),
        (lambda d: d["inputs"][0].__setitem__(0, [1 << 40, 1 << 40]), "input 0 has 1208925819614629174706176 "
                     "elements"),
        (lambda d: d["inputs"][0].__setitem__(0, [1] * 65), "the shape of input 0 is "),
        (lambda d: d["inputs"][0].__setitem__(1, "ZZ"), r"not what was written \(DimsError"),
        (lambda d: d["inputs"].pop(), "it has 1 inputs, not 2"),
        (lambda d: d["outputs"].pop(), "."),
        (lambda d: d["constants"].__setitem__(0, "constants/0.npy"), r"not what was written \(KeyError"),
        (lambda d: d.update(guard=0), "the guard is scalar float64"),
        (lambda d: d.update(guard=17), "the number of the guard is 17"),
        (lambda d: d.update(checked=[3]), "a checked operation is 3"),
        (lambda d: d.pop("rows"), r"not what was written \(KeyError: 'rows'\)"),
    ],
)  # fmt: skip
def test_addresses_outside_their_memory_are_refused(change: Any, text: str, path: Path) -> None:
    data, file = data_of(path)
    change(data)
    file.write_text(json.dumps(data))
    rehashed(path)
    refused(path, text)


def test_changed_programs_load_or_are_refused(path: Path) -> None:
    """Whatever a program says, loading it raises an ExportError if it raises anything."""
    rng = random.Random(2)
    data, file = data_of(path)
    manifest = json.loads((path / "manifest.json").read_text())
    text = (path / "manifest.json").read_bytes()
    values: list[Any] = [
        0,
        1,
        -1,
        7,
        1 << 40,
        -(1 << 70),
        None,
        "",
        "x",
        [],
        {},
        0.5,
        True,
        "float32",
        ["a"] * 3,
    ]
    found = 0
    for _ in range(int(os.environ.get("TRACEJIT_FUZZ", "400"))):
        changed = json.loads(json.dumps(data))
        whole = json.loads(text)
        target: Any = rng.choice([changed, whole["traces"], whole["cpus"], whole["function"]])
        while True:
            at = rng.choice(list(target) if isinstance(target, dict) else range(len(target)))
            if not isinstance(target[at], (dict, list)) or not target[at] or rng.random() < 0.2:
                break
            target = target[at]
        target[at] = rng.choice(values)
        file.write_text(json.dumps(changed))
        whole["files"] = manifest["files"]
        (path / "manifest.json").write_text(json.dumps(whole))
        rehashed(path)
        try:
            tj.load(path)
        except ExportError:
            found += 1
    assert found > 100


def test_places_of_strided_inputs() -> None:
    def layout(array: np.ndarray) -> Layout:
        return Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))

    from tracejit.aval import Aval
    from tracejit.ir import Builder

    x = np.arange(40.0).reshape(5, 8)[::-1, 1::3]
    graph = Graph()
    b = Builder(graph)
    graph.outputs = [b.neg(b.input(Aval(x.shape, None, x.dtype)))]
    program = build(graph, [layout(x)])
    data = encoded(program, [])
    assert decoded(data, {}, [layout(x)]).rows == program.rows
    (pointer,) = [
        a for row in data["rows"] for a in row["arguments"] if isinstance(a, list) and a[0] == "input"
    ]
    for low, high in ((-4 * 64, 6 * 8 + 8),):
        for offset in (low, high - 8):
            pointer[3] = offset
            decoded(data, {}, [layout(x)])
        for offset in (low - 8, high):
            pointer[3] = offset
            with pytest.raises(CodegenError, match=rf"is byte {offset} of {low} to {high} \(input\)"):
                decoded(data, {}, [layout(x)])


def test_missing_object_code() -> None:
    with pytest.raises(
        ExportError,
        match=r"^load: the folder has no object code of run\. Export the function on the machine that is to",
    ):
        ExportedCode({}).function("run")


@pytest.fixture(scope="module")
def code(made: Path) -> bytes:
    return (made / "code/host/run_parts.o").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="object files of Linux")
def test_names_in_object_code(code: bytes) -> None:
    found = symbols(code)
    assert found.functions == {"tracejit_run_parts"}
    assert {"pthread_mutex_lock", "sched_yield"} <= found.missing


@pytest.mark.skipif(sys.platform != "linux", reason="object files of Linux")
def test_missing_symbols_are_found_before_llvm_aborts(code: bytes) -> None:
    assert code.count(b"\0sched_yield\0") == 1
    other = code.replace(b"\0sched_yield\0", b"\0sched_YIELD\0")
    with pytest.raises(
        ExportError,
        match=r"^load: object code of tracejit_run_parts cannot be loaded: there is no sched_YIELD\. Export the",
    ):
        ExportedCode({"run_parts": ObjectFile("tracejit_run_parts", (), other)}).function("run_parts")


@pytest.mark.skipif(sys.platform != "linux", reason="object files of Linux")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda code: b"", "it is not an ELF file of 64 bits"),
        (lambda code: b"MZ" + code[2:], "it is not an ELF file of 64 bits"),
        (lambda code: code[:18] + b"\xf3" + code[19:], "it is for a different kind of CPU"),
        (lambda code: code[:58] + b"\0" + code[59:], "its sections have an unknown size"),
        (lambda code: code[:30], "unpack_from requires a buffer"),
        (lambda code: code[:40] + b"\xff" * 7 + code[47:], "."),
    ],
)
def test_invalid_object_code(change: Any, text: str, code: bytes) -> None:
    with pytest.raises(CodegenError, match=rf"^not an object file that can be loaded here \(.*{text}"):
        symbols(change(code))


@pytest.mark.skipif(sys.platform != "linux", reason="object files of Linux")
def test_object_code_of_random_bytes(code: bytes) -> None:
    rng = random.Random(3)
    for _ in range(2000):
        data = bytearray(code)
        for _ in range(rng.randint(1, 4)):
            data[rng.choice([rng.randrange(64), rng.randrange(len(data) - 900, len(data))])] = rng.randrange(
                256
            )
        with contextlib.suppress(CodegenError):
            symbols(bytes(data[: rng.randint(64, len(data))] if rng.random() < 0.3 else data))


def test_a_python_with_a_different_array_layout(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        raise CodegenError("this build of Python lays out its objects differently")

    monkeypatch.setattr(object_layout, "check_layout", check)
    refused(path, "^load: this build of Python lays out its objects differently$")


def test_a_missing_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'scipy'")

    monkeypatch.setattr(loader, "read_traces", missing)
    refused(path, r"step.tj needs a package that cannot be imported \(No module named 'scipy'\)\.$")
