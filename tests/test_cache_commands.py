# SPDX-License-Identifier: BSD-3-Clause
"""The commands that look into the cache on disk: whole outputs, as text and as JSON, and exit codes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tracejit import cli, config
from tracejit.cache.entry import Entry, Key
from tracejit.cache.programs import Programs
from tracejit.cache.store import SUFFIX, Store

AT = time.mktime((2026, 5, 4, 3, 2, 1, 0, 0, -1))


def entry(name: str) -> Entry:
    key = Key((("kind", "kernel"), ("source", name)))
    return Entry(
        key,
        name,
        (),
        40_000_000,
        f"def {name}(args):\n    o = write_f32(args[0], 0)\n",
        b"\x7fELF" + bytes(100),
    )


def program(function: str, *names: str) -> dict[str, Any]:
    return {
        "function": function,
        "target": "cpu",
        "inputs": [f"{n}x3 float32" for n in range(1, 7)],
        "outputs": ["scalar float32"],
        "kernels": [{"name": name, "entry": entry(name).key.name} for name in names],
        "rows": [
            {
                "kernel": i,
                "arguments": [1],
                "operations": "mul, add",
                "where": [["/home/me/train.py", 7 + i]],
                "part": [0, 1],
            }
            for i in range(len(names))
        ],
        "row_count": len(names) + (function == "long"),
        "arena_bytes": 2048,
        "constant_bytes": 0,
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of two programs that share a kernel."""
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    kept, programs = Store(str(tmp_path / "cache"), 1 << 20), Programs(str(tmp_path / "cache"))
    for name in ("mul_1", "add_2", "sum_3"):
        kept.save(entry(name))
    programs.keep(
        program("step", "mul_1", "add_2"), {"at": AT, "build_ns": 1_500_000, "compile_ns": 80_000_000}
    )
    programs.keep(program("step", "mul_1", "add_2"), {"at": AT + 60, "build_ns": 1_400_000, "compile_ns": 0})
    programs.keep(program("evaluate", "add_2", "sum_3"), {"at": AT, "build_ns": 2_000_000, "compile_ns": 0})
    for each in programs.all():
        used = AT + (each.program["function"] == "step")
        os.utime(tmp_path / "cache" / "programs" / f"{each.name}.program", (used, used))
    return tmp_path / "cache"


def keys(root: Path) -> dict[str, str]:
    return {each.program["function"]: each.name for each in Programs(str(root)).all()}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["cache", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    found = json.loads(out)
    assert (found["schema"], found["command"]) == (1, f"cache {arguments[0]}")
    return code, found["result"]


def test_dir(capsys, root) -> None:
    assert run(capsys, "dir") == (0, f"{root}\n", "")
    assert data(capsys, "dir") == (0, {"folder": str(root)})


def test_info(capsys, root) -> None:
    size = sum(path.stat().st_size for path in (root / "kernels").iterdir())
    assert run(capsys, "info") == (
        0,
        f"folder    {root}\nused      yes\nsetting   private\n"
        f"kernels   3, {size / 1024:.1f} KiB of 1.0 GiB\nprograms  2\n",
        "",
    )
    assert data(capsys, "info") == (
        0,
        {
            "folder": str(root), "setting": "private", "problem": None, "kernels": 3, "kernel_bytes": size,
            "programs": 2, "limit_bytes": 1 << 30,
        },
    )  # fmt: skip


def test_info_says_why_a_folder_is_not_used(capsys, root, monkeypatch) -> None:
    root.chmod(0o777)
    problem = f"other users may write to the folder {root} (mode 777)"
    assert f"used      no: {problem}\n" in run(capsys, "info")[1]
    assert data(capsys, "info")[1]["problem"] == problem
    monkeypatch.setattr(config.settings, "cache", "off")
    assert "used      no: TRACEJIT_CACHE=off\n" in run(capsys, "info")[1]


def test_info_of_a_file(capsys, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "file"))
    assert "used      no: it cannot be read (Not a directory)\n" in run(capsys, "info")[1]


def test_list(capsys, root) -> None:
    key = keys(root)
    inputs = "1x3 float32, 2x3 float32, 3x3 float32, 4x3 float32, ..."
    assert run(capsys, "list") == (
        0,
        "key           function  where       inputs"
        + " " * 51
        + "rows  kernels  uses  build ms  compile ms  last use\n"
        f"{key['step'][:12]}  step      train.py:7  {inputs}  "
        "2     2        2     1.5       80.0        2026-05-04 03:03\n"
        f"{key['evaluate'][:12]}  evaluate  train.py:7  {inputs}  "
        "2     2        1     2.0       0.0         2026-05-04 03:02\n",
        "",
    )
    code, (first, second) = data(capsys, "list")
    assert code == 0
    assert first == {
        "key": key["step"], "function": "step", "where": "train.py:7",
        "inputs": [f"{n}x3 float32" for n in range(1, 7)],
        "kernels": 2, "rows": 2, "arena_bytes": 2048, "uses": 2, "build_ns": 1_500_000, "compile_ns": 80_000_000,
        "last_use_s": AT + 60,
    }  # fmt: skip
    assert second["function"] == "evaluate"


def test_list_by_pattern(capsys, root) -> None:
    assert [each["function"] for each in data(capsys, "list", "eval*")[1]] == ["evaluate"]
    assert [each["function"] for each in data(capsys, "list", keys(root)["step"][:8])[1]] == ["step"]
    nothing = f"no programs in {root} fit 'train*'"
    assert run(capsys, "list", "train*") == (1, "", f"tracejit cache list: {nothing}\n")
    assert data(capsys, "list", "train*") == (1, [])


def test_list_of_an_empty_cache(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "none"))
    assert run(capsys, "list") == (0, "", f"tracejit cache list: no programs in {tmp_path / 'none'}\n")
    assert data(capsys, "list") == (0, [])


def test_show(capsys, root) -> None:
    key = keys(root)["step"]
    inputs = "".join(f"input     {n}x3 float32\n" for n in range(1, 7))
    expected = (
        f"{key}\nfunction  step\n{inputs}output    scalar float32\narena     2.0 KiB\n\n"
        "   0  mul_1  mul, add  (/home/me/train.py:7)\n   1  add_2  mul, add  (/home/me/train.py:8)\n\n"
        "# mul_1: 104 bytes, compiled in 40.0 ms\ndef mul_1(args):\n    o = write_f32(args[0], 0)\n\n"
        "# add_2: 104 bytes, compiled in 40.0 ms\ndef add_2(args):\n    o = write_f32(args[0], 0)\n"
    )
    assert run(capsys, "show", "step") == (0, expected, "")
    assert run(capsys, "show", key[:10]) == (0, expected, "")
    code, found = data(capsys, "show", "step")
    assert (code, found["key"], found["program"]["function"]) == (0, key, "step")
    assert found["kernels"]["add_2"] == {
        "key": {"kind": "kernel", "source": "add_2"}, "source": entry("add_2").source, "code_bytes": 104,
        "compile_ns": 40_000_000,
    }  # fmt: skip


def test_show_says_what_is_missing(capsys, root) -> None:
    Programs(str(root)).keep(program("long", "gone_4"), {"at": AT})
    out = run(capsys, "show", "long")[1]
    assert "   0  gone_4  mul, add  (/home/me/train.py:7)\n      and 1 more\n" in out
    assert out.endswith("# gone_4: not on disk any more\n")


def test_show_needs_one_program(capsys, root) -> None:
    assert run(capsys, "show", "train") == (
        1, "", "tracejit cache show: no program has the key or the function 'train'; `tracejit cache list` shows all\n"
    )  # fmt: skip
    code, out, err = run(capsys, "show", "*")
    assert (code, out) == (1, "")
    both = ", ".join(keys(root)[function][:12] for function in ("step", "evaluate"))
    assert err == f"tracejit cache show: 2 programs fit '*': {both}; name one by its key\n"


def test_verify(capsys, root) -> None:
    assert run(capsys, "verify") == (0, "3 entries are good, 0 are not\n", "")
    paths = {name: root / "kernels" / (entry(name).key.name + SUFFIX) for name in ("mul_1", "add_2")}
    paths["mul_1"].write_bytes(b"damaged")
    paths["add_2"].chmod(0o666)
    names = sorted(path.name for path in paths.values())
    code, out, err = run(capsys, "verify")
    assert (code, err) == (1, "")
    reasons = {
        paths["mul_1"].name: "it is not an entry of the cache",
        paths["add_2"].name: f"other users may write to the file {paths['add_2'].name} (mode 666)",
    }
    assert (
        out
        == "".join(f"{name[:12]}  {reasons[name]}\n" for name in names) + "1 entries are good, 2 are not\n"
    )
    assert data(capsys, "verify") == (
        1,
        {"good": 1, "bad": [{"key": name.removesuffix(SUFFIX), "reason": reasons[name]} for name in names]},
    )


def test_verify_says_what_cannot_be_read(capsys, root) -> None:
    path = root / "kernels" / (entry("mul_1").key.name + SUFFIX)
    path.rename(root / "aside")
    path.symlink_to(root / "aside")
    assert run(capsys, "verify") == (0, "2 entries are good, 0 are not\n", "")  # a link is no entry


def test_remove_leaves_kernels_that_others_use(capsys, root) -> None:
    size = (root / "kernels" / (entry("mul_1").key.name + SUFFIX)).stat().st_size
    assert run(capsys, "remove", "step") == (0, f"removed 1 program and 1 kernel, {size} bytes\n", "")
    left = {path.name.removesuffix(SUFFIX) for path in (root / "kernels").iterdir()}
    assert left == {entry(name).key.name for name in ("add_2", "sum_3")}
    assert list(keys(root)) == ["evaluate"]
    assert data(capsys, "remove", "step") == (1, {"programs": 0, "kernels": 0, "bytes": 0})


def test_purge(capsys, root) -> None:
    code, found = data(capsys, "purge")
    assert (code, found["programs"], found["kernels"]) == (0, 2, 3)
    assert list((root / "kernels").iterdir()) == list((root / "programs").iterdir()) == []
    assert run(capsys, "purge") == (0, "removed 0 programs and 0 kernels, 0 bytes\n", "")


@pytest.mark.parametrize("command", [["list"], ["show", "step"], ["verify"], ["remove", "step"], ["purge"]])
def test_a_folder_that_is_not_to_be_used(capsys, root, command) -> None:
    root.chmod(0o777)
    assert run(capsys, *command) == (
        1, "",
        f"tracejit cache {command[0]}: the cache in {root} cannot be used: "
        f"other users may write to the folder {root} (mode 777)\n",
    )  # fmt: skip
    root.chmod(0o700)
    assert len(keys(root)) == 2


def test_paths_in_place_of_keys_lead_nowhere(capsys, root, tmp_path) -> None:
    (tmp_path / "victim.program").write_text("{}")
    for argument in ("../victim", "../../victim", str(tmp_path / "victim"), "..", ""):
        run(capsys, "remove", argument) if argument else None
        assert run(capsys, "show", argument or "../")[0] == 1
    assert (tmp_path / "victim.program").exists()
    assert len(keys(root)) == 2


@pytest.mark.parametrize(
    ("arguments", "text"), [(["cache"], "required: COMMAND"), (["cache", "show"], "required: KEY")]
)
def test_wrong_usage(capsys, arguments, text) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert text in capsys.readouterr().err


def test_the_command_imports_no_compiler(tmp_path: Path) -> None:
    kept, programs = Store(str(tmp_path / "cache"), 1 << 30), Programs(str(tmp_path / "cache"))
    for i in range(30):
        kept.save(entry(f"mul_{i}"))
        programs.keep(program(f"step_{i}", f"mul_{i}"), {"at": AT})
    code = (
        "import sys; from tracejit import cli; code = cli.main(['cache', 'list', '--json']); "
        "print([m for m in ('numba', 'scipy', 'llvmlite') if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"TRACEJIT_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.stderr == "[]\n"
    assert len(json.loads(done.stdout)["result"]) == 30
