# SPDX-License-Identifier: BSD-3-Clause
"""The commands that look into the cache on disk: whole outputs, as text and as JSON, and exit codes."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tracejit import cli, config
from tracejit.cache import inspect
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import SUFFIX, KernelStore
from tracejit.store.programs import SCHEMA, Programs
from tracejit.util.text import size as in_words

AT = time.mktime((2026, 5, 4, 3, 2, 1, 0, 0, -1))


def entry(name: str) -> StoredKernel:
    key = KernelKey((("kind", "kernel"), ("source", name)))
    return StoredKernel(
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
        "defined": ["/home/me/train.py", 5],
        "signature": [["x", "128(B) x 64(C) float32"], ["params['w']", "64x10 float32"], ["rate", "0.1"]],
        "target": "cpu",
        "inputs": [f"{n}x3 float32" for n in range(1, 7)],
        "outputs": ["scalar float32"],
        "ops": [],
        "kernels": [{"name": name, "entry": entry(name).key.name, "lines": []} for name in names],
        "rows": [
            {
                "number": i,
                "kernel": i,
                "arguments": [1],
                "operations": "mul, add",
                "ops": [],
                "purpose": "",
                "where": [["/home/me/train.py", 7 + i]],
                "part": [0, 1, 0],
            }
            for i in range(len(names))
        ],
        "pairs": [],
        "memory": [],
        "left_out": {},
        "row_count": len(names) + (function == "long"),
        "arena_bytes": 2048,
        "constant_bytes": 0,
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of two programs that share a kernel."""
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    kept, programs = KernelStore(str(tmp_path / "cache"), 1 << 20), Programs(str(tmp_path / "cache"))
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


NO_MATCH = (
    "matches '{}'; expected the name of a function, with * and ?, or the beginning of a key (4 digits or "
    "more); `tracejit cache list` shows all"
)


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
    programs = sum(path.stat().st_size for path in (root / "programs").glob("*.program"))
    assert run(capsys, "info") == (
        0,
        f"folder    {root}\nused      yes\nsetting   private\n"
        f"kernels   3, {size / 1024:.1f} KiB of 1.0 GiB\nprograms  2, {programs / 1024:.1f} KiB\n",
        "",
    )
    assert data(capsys, "info") == (
        0,
        {
            "folder": str(root), "setting": "private", "problem": None, "kernels": 3, "kernel_bytes": size,
            "programs": 2, "program_bytes": programs, "limit_bytes": 1 << 30,
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


def on_disk(root: Path, key: str, *names: str) -> int:
    """Return the bytes of a program's description and kernels."""
    files = [root / "programs" / f"{key}.program"]
    files += [root / "kernels" / f"{entry(name).key.name}{SUFFIX}" for name in names]
    return sum(file.stat().st_size for file in files)


def test_list(capsys, root) -> None:
    key = keys(root)
    sizes = {
        "step": on_disk(root, key["step"], "mul_1", "add_2"),
        "evaluate": on_disk(root, key["evaluate"], "add_2", "sum_3"),
    }
    signature = "x: 128(B) x 64(C) float32, params['w']: 64x10 float32, rate: 0.1"
    assert run(capsys, "list") == (
        0,
        f"key           function  where       {'signature':<64}  target  kernels     size  hits  build ms  "
        "compile ms  used\n"
        f"{key['step'][:12]}  step      train.py:5  {signature}  cpu           2  {sizes['step'] / 1024:.1f} KiB     1"
        "       1.5        80.0  2026-05-04 03:03\n"
        f"{key['evaluate'][:12]}  evaluate  train.py:5  {signature}  cpu           2  "
        f"{sizes['evaluate'] / 1024:.1f} KiB     0       2.0         0.0  2026-05-04 03:02\n",
        "",
    )
    code, (first, second) = data(capsys, "list")
    assert code == 0
    assert first == {
        "key": key["step"], "function": "step", "file": "/home/me/train.py", "line": 5,
        "signature": [["x", "128(B) x 64(C) float32"], ["params['w']", "64x10 float32"], ["rate", "0.1"]],
        "arguments": 3, "target": "cpu", "kernels": 2, "launches": 2, "size_bytes": sizes["step"],
        "arena_bytes": 2048, "hits": 1, "build_ns": 1_500_000, "compile_ns": 80_000_000, "used_s": AT + 60,
    }  # fmt: skip
    assert second["function"] == "evaluate"


def functions(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    return [each["function"] for each in data(capsys, "list", *arguments)[1]]


def test_list_by_pattern(capsys, root) -> None:
    assert functions(capsys, "eval*") == ["evaluate"]
    assert functions(capsys, keys(root)["step"][:8]) == ["step"]
    nothing = f"no program in {root} {NO_MATCH.format('train*')}"
    assert run(capsys, "list", "train*") == (1, "", f"tracejit cache list: {nothing}\n")
    code, out, err = run(capsys, "list", "train*", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out) == {"schema": 1, "command": "cache list", "result": [], "note": nothing}


def test_list_names(capsys, root) -> None:
    Programs(str(root)).keep(program("step", "sum_3"), {"at": AT + 3})
    assert run(capsys, "list", "--names") == (0, "step\nevaluate\n", "")
    assert data(capsys, "list", "--names", "--sort", "function") == (0, ["evaluate", "step"])
    assert run(capsys, "list", "--names", "train*")[:2] == (1, "")


def test_list_filters(capsys, root) -> None:
    assert functions(capsys, "--file", "train.py") == ["step", "evaluate"]
    assert functions(capsys, "--file", "/home/*") == ["step", "evaluate"]
    assert functions(capsys, "--target", "cpu", "--limit", "1") == ["step"]
    assert functions(capsys, "--since", "2026-05-04T03:02:30") == ["step"]
    assert functions(capsys, "--since", "2026-05-04") == ["step", "evaluate"]
    nothing = f"tracejit cache list: no programs in {root} match the options\n"
    assert run(capsys, "list", "step", "--target", "gpu") == (1, "", nothing)
    for given in (["--file", "test.py"], ["--target", "gpu"], ["--since", "1m"]):
        assert data(capsys, "list", *given) == (1, [])
    Programs(str(root)).keep(program("now", "mul_1"), {"at": time.time() - 7000})
    (path,) = (root / "programs" / f"{key}.program" for name, key in keys(root).items() if name == "now")
    os.utime(path, (AT, AT))
    assert functions(capsys, "--since", "2h") == ["now"]
    assert functions(capsys, "--since", "3d") == functions(capsys, "--since", "1w") == ["now"]
    assert functions(capsys, "--since", f"{'9' * 400}d") == functions(capsys)
    assert data(capsys, "list", "--since", "90m") == (1, [])


@pytest.mark.parametrize(
    ("column", "first"),
    [
        ("used", "step"), ("function", "evaluate"), ("where", "step"), ("target", "step"), ("kernels", "step"),
        ("size", "evaluate"), ("hits", "step"), ("build", "evaluate"), ("compile", "step"),
    ],
)  # fmt: skip
def test_list_sorts(capsys, root, column, first) -> None:
    """Equal ones stay in the order of their last use."""
    found = functions(capsys, "--sort", column)
    assert found == [first, *({"step", "evaluate"} - {first})]
    same = column in ("where", "target", "kernels")
    assert functions(capsys, "--sort", column, "--reverse") == (found if same else found[::-1])


def test_list_sorts_by_key(capsys, root) -> None:
    names = sorted(keys(root).values())
    assert [each["key"] for each in data(capsys, "list", "--sort", "key")[1]] == names


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--sort", "colour"], "argument --sort: invalid choice: 'colour'"),
        (["--limit", "0"], "argument --limit: expected a positive integer, not '0'"),
        (
            ["--since", "soon"],
            "argument --since: expected a time such as 30m, 2h, 3d, 1w or 2026-05-04, not 'soon'",
        ),
    ],
)
def test_list_wrong_usage(capsys, root, given, text) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["cache", "list", *given])
    assert stop.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err


def test_list_shows_the_arguments_that_find_room(capsys, root) -> None:
    many = [[f"params['layer{i}']", "64x64 float32"] for i in range(20)]
    Programs(str(root)).keep(program("deep", "mul_1") | {"signature": many}, {"at": AT})
    row = run(capsys, "list", "deep")[1].splitlines()[1]
    assert "  params['layer0']: 64x64 float32, params['layer1']: 64x64 float32, 18 more  cpu  " in row
    (found,) = data(capsys, "list", "deep")[1]
    assert (len(found["signature"]), found["arguments"]) == (20, 20)
    for i in (0, 17):
        other = [list(each) for each in many]
        other[17][1] = f"64x{64 + i} float64"
        Programs(str(root)).keep(program("deep", "mul_1") | {"signature": other}, {"at": AT})
    rows = run(capsys, "list", "deep")[1]
    for differs in ("64x64 float32", "64x64 float64", "64x81 float64"):
        assert f"  params['layer17']: {differs}, params['layer0']: 64x64 float32, 18 more  cpu  " in rows
    one = [["x" * 300, "y" * 300]]
    Programs(str(root)).keep(program("long", "mul_1") | {"signature": one}, {"at": AT})
    assert f"  {'x' * 300}: {'y' * 200}  cpu  " in run(capsys, "list", "long")[1]


def test_list_with_unknown_values(capsys, root) -> None:
    """A part of a function has no arguments of its own, and times may not have been written down."""
    half = program("half", "gone_4") | {"signature": [], "defined": None}
    Programs(str(root)).keep(half, {"at": AT})
    row = run(capsys, "list", "half")[1].splitlines()[1]
    assert (
        "half             1x3 float32, 2x3 float32, 3x3 float32, 4x3 float32, 5x3 float32, 1 more  cpu" in row
    )
    (found,) = data(capsys, "list", "half")[1]
    assert (found["file"], found["line"], found["build_ns"]) == (None, None, None)
    assert found["size_bytes"] == on_disk(root, keys(root)["half"])


def test_list_prints_nothing_that_a_terminal_obeys(capsys, root) -> None:
    Programs(str(root)).keep(program("red\x1b[31m\n", "mul_1"), {"at": AT})
    assert "  red\\x1b[31m\\n  " in run(capsys, "list", "red*")[1]
    assert run(capsys, "list", "red*", "--names")[1] == "red\\x1b[31m\\n\n"
    assert "  red\\x1b[31m\\n (/home/me/train.py:5)\n" in run(capsys, "why", "red*")[1]


def test_list_of_an_empty_cache(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "none"))
    assert run(capsys, "list") == (0, "", f"tracejit cache list: no programs in {tmp_path / 'none'}\n")
    assert data(capsys, "list") == (0, [])
    assert run(capsys, "list", "f")[0] == 1


def test_show_of_a_damaged_description(capsys, root) -> None:
    path = root / "programs" / f"{keys(root)['step']}.program"
    path.write_bytes(path.read_bytes()[:-1])
    text = f"the description of the program {path.stem[:12]} cannot be read"
    assert run(capsys, "show", "step") == (1, "", f"tracejit cache show: {text}\n")


def test_show_needs_one_program(capsys, root) -> None:
    assert run(capsys, "show", "train") == (
        1, "", "tracejit cache show: no program has the key or the function 'train'; `tracejit cache list` shows all\n"
    )  # fmt: skip
    code, out, err = run(capsys, "show", "*")
    assert (code, out) == (1, "")
    both = ", ".join(keys(root)[function][:12] for function in ("step", "evaluate"))
    assert err == f"tracejit cache show: 2 programs match '*': {both}; name one by its key\n"


def test_show_takes_the_program_used_last_and_names_the_others(capsys, root) -> None:
    first = keys(root)["step"]
    Programs(str(root)).keep(program("step", "sum_3"), {"at": AT + 99})
    last = next(each.key for each in inspect.listing("step") if each.key != first)
    code, out, err = run(capsys, "show", "step")
    assert (code, out.splitlines()[0]) == (0, last)
    assert (
        err
        == f"tracejit cache show: {last[:12]} was used last; the function has 1 more program: {first[:12]}\n"
    )
    assert run(capsys, "show", first)[2] == ""


def test_a_name_counts_before_a_key_that_begins_so(capsys, root) -> None:
    """Functions may have names of hexadecimal digits, such as f, which many keys begin with."""
    for name in ("f", "feed", "Model.loss"):
        Programs(str(root)).keep(program(name, "mul_1"), {"at": AT})
    odd = 0
    while not any(key.startswith("f") for name, key in keys(root).items() if name != "f"):
        Programs(str(root)).keep(program(f"leak{odd}", "mul_1"), {"at": AT})
        odd += 1
    count = len(keys(root))
    assert functions(capsys, "f") == ["f"]
    assert run(capsys, "show", "f")[1].splitlines()[0] == keys(root)["f"]
    assert run(capsys, "why", "f")[1].startswith(f"here   {keys(root)['f'][:12]}  f (")
    assert data(capsys, "remove", "f")[1]["programs"] == 1
    assert len(keys(root)) == count - 1
    assert run(capsys, "remove", "f")[0] == run(capsys, "list", "f")[0] == run(capsys, "show", "f")[0] == 1
    assert len(keys(root)) == count - 1
    step = keys(root)["step"]
    assert functions(capsys, step[:4]) == ["step"]
    assert data(capsys, "list", step[:3])[0] == 1
    Programs(str(root)).keep(program(step[:4], "mul_1"), {"at": AT})
    assert functions(capsys, step[:4]) == [step[:4]]


def test_verify(capsys, root) -> None:
    assert run(capsys, "verify") == (0, "3 kernels and 2 programs are good\n", "")
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
        == "".join(f"{name[:12]}  {reasons[name]}\n" for name in names)
        + "1 kernel and 2 programs are good, 2 entries are not\n"
    )
    assert data(capsys, "verify") == (
        1,
        {
            "good": 3,
            "kernels": 1,
            "programs": 2,
            "bad": [{"key": name.removesuffix(SUFFIX), "reason": reasons[name]} for name in names],
        },
    )


def test_verify_says_what_cannot_be_read(capsys, root) -> None:
    path = root / "kernels" / (entry("mul_1").key.name + SUFFIX)
    path.rename(root / "aside")
    path.symlink_to(root / "aside")
    assert run(capsys, "verify") == (0, "2 kernels and 2 programs are good\n", "")  # a link is no entry


def test_verify_checks_programs(capsys, root) -> None:
    step, evaluate = (root / "programs" / f"{keys(root)[name]}.program" for name in ("step", "evaluate"))
    step.write_bytes(step.read_bytes()[:-9])
    evaluate.chmod(0o666)
    reasons = {
        step.stem: "a program: its content does not agree with its hash",
        evaluate.stem: f"a program: other users may write to the file {evaluate.name} (mode 666)",
    }
    code, found = data(capsys, "verify")
    assert (code, found["good"], found["kernels"], found["programs"]) == (1, 3, 3, 0)
    assert {each["key"]: each["reason"] for each in found["bad"]} == reasons
    assert run(capsys, "verify")[1].endswith("3 kernels and 0 programs are good, 2 entries are not\n")
    step.unlink()
    step.symlink_to(root / "aside")
    assert [each["key"] for each in data(capsys, "verify")[1]["bad"]] == [evaluate.stem]  # a link is none


def test_remove_leaves_shared_kernels(capsys, root) -> None:
    size = (root / "kernels" / (entry("mul_1").key.name + SUFFIX)).stat().st_size
    size += (root / "programs" / f"{keys(root)['step']}.program").stat().st_size
    assert run(capsys, "remove", "step") == (0, f"removed 1 program and 1 kernel, {in_words(size)}\n", "")
    left = {path.name.removesuffix(SUFFIX) for path in (root / "kernels").iterdir()}
    assert left == {entry(name).key.name for name in ("add_2", "sum_3")}
    assert list(keys(root)) == ["evaluate"]
    assert run(capsys, "remove", "step") == (
        1, "removed 0 programs and 0 kernels, 0 bytes\n",
        f"tracejit cache remove: no program in {root} {NO_MATCH.format('step')}\n",
    )  # fmt: skip
    assert data(capsys, "remove", "step") == (1, {"programs": 0, "kernels": 0, "bytes": 0})


def test_purge(capsys, root) -> None:
    for name in ("kernels/.new-1-ab", "programs/.new-2-cd", f"programs/{'0' * 64}.uses"):
        (root / name).write_bytes(b"of a process that was killed")
    whole = [path for path in root.glob("*/*") if path.suffix in (SUFFIX, ".program")]
    size = sum(path.stat().st_size for path in whole)
    assert data(capsys, "purge") == (0, {"programs": 2, "kernels": 3, "bytes": size})
    assert list((root / "kernels").iterdir()) == list((root / "programs").iterdir()) == []
    assert run(capsys, "purge") == (0, "removed 0 programs and 0 kernels, 0 bytes\n", "")


@pytest.mark.parametrize("command", [["list"], ["show", "step"], ["verify"], ["remove", "step"], ["purge"]])
def test_a_folder_that_is_not_to_be_used(capsys, root, command) -> None:
    root.chmod(0o777)
    assert run(capsys, *command) == (
        1, "",
        f"tracejit cache {command[0]}: the cache in {root} cannot be used: "
        f"other users may write to the folder {root} (mode 777); set TRACEJIT_CACHE_DIR to a folder of your own\n",
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


def test_a_list_of_damaged_programs(capsys, root) -> None:
    """Damaged parts are left out or shown as they are; nothing fails. Lines of uses have no hash."""
    random = Random(0)
    files = sorted((root / "programs").iterdir())
    contents = {path: path.read_bytes() for path in files}
    found = []
    for _ in range(100):
        path = random.choice(files)
        content = bytearray(contents[path])
        place = random.randrange(len(content))
        if random.random() < 0.3:
            del content[place:]
        else:
            content[place] = random.randrange(256)
        path.write_bytes(content)
        assert run(capsys, "list")[0] == run(capsys, "list", "--json")[0] == 0
        found.append(len(functions(capsys)))
        assert run(capsys, "why", "step")[0] in (0, 1)
        assert run(capsys, "info")[0] == 0
        path.write_bytes(contents[path])
    assert {1, 2} == {*found}


@pytest.mark.parametrize(
    "line",
    [
        b'{"at":1e999}',
        b'{"at":"soon"}',
        b'{"at":-1e300}',
        b'{"build_ns":"x","compile_ns":[1]}',
        b'{"at":NaN}',
    ],
)
def test_a_list_of_odd_uses(capsys, root, line) -> None:
    for path in (root / "programs").glob("*.uses"):
        path.write_bytes(line + b"\n")
    code, found = data(capsys, "list")
    assert code == 0
    assert [(each["hits"], each["build_ns"], each["compile_ns"]) for each in found] == [(0, None, None)] * 2
    assert [each["used_s"] for each in found] == [AT + 1, AT]
    assert run(capsys, "list")[0] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("function", 5), ("target", None), ("kernels", [7]), ("kernels", None), ("signature", [["x"]]),
        ("signature", [["x", 1]]), ("defined", ["a.py"]), ("defined", ["a.py", "1"]), ("row_count", "1"),
        ("arena_bytes", None), ("schema", 1),
    ],
)  # fmt: skip
def test_heads_written_by_another_program(capsys, root, name, value) -> None:
    """The hashes of such a file agree: they protect from damage."""
    (path,) = (
        root / "programs" / f"{key}.program" for function, key in keys(root).items() if function == "step"
    )
    _, _, rest = path.read_bytes().partition(b"\n")
    head = {
        "schema": SCHEMA, "function": "odd", "defined": None, "signature": [], "arguments": 0, "target": "cpu",
        "kernels": [], "row_count": 1, "arena_bytes": 0,
    }  # fmt: skip
    for changed, number in (({}, 3), ({name: value}, 2)):
        text = json.dumps(head | changed).encode()
        content = hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n" + rest
        other = path.with_name(f"{hashlib.sha256(content).hexdigest()}.program")
        other.write_bytes(content)
        other.chmod(0o600)
        assert len(functions(capsys)) == number
        other.unlink()


def test_list_with_a_time_beyond_the_calendar(capsys, root) -> None:
    path = root / "programs" / f"{keys(root)['step']}.program"
    os.utime(path, (2**55, 2**55))
    if path.stat().st_mtime > 2**54:  # not every file system holds that
        assert run(capsys, "list", "step")[1].endswith("       1.5        80.0\n")


def test_a_list_reads_the_beginning_of_each_program_and_its_uses(root, monkeypatch) -> None:
    """A list reads only the first lines, so that 1000 programs take 0.2 s."""
    for i in range(20):
        long = program(f"f{i}", "mul_1") | {"rows": [{"operations": "x" * 10_000, "where": []}] * 10}
        Programs(str(root)).keep(long, {"at": AT})
    opened: list[str] = []
    read: list[int] = []

    def open_(path: str, *arguments: Any, **options: Any) -> int:
        opened.append(str(path))
        return os_open(path, *arguments, **options)

    def read_(file: int, count: int) -> bytes:
        content = os_read(file, count)
        read.append(len(content))
        return content

    os_open, os_read = os.open, os.read
    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "read", read_)
    assert len(inspect.listing()) == 22
    names = [Path(path).suffix for path in opened]
    assert {suffix: names.count(suffix) for suffix in set(names)} == {".program": 22, ".uses": 22, "": 8}
    assert sum(read) < 22 * 5000


def test_the_command_imports_no_compiler(tmp_path: Path) -> None:
    kept, programs = KernelStore(str(tmp_path / "cache"), 1 << 30), Programs(str(tmp_path / "cache"))
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
