# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache why`: differences between programs, between kernels, and from this process; whole outputs."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracejit import cache, cli, config
from tracejit.cache.diff import differing, key_parts
from tracejit.compile.key import key_of
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import SUFFIX, KernelStore
from tracejit.store.programs import SCHEMA, Programs

PARTS = {
    "kind": "kernel", "source": "", "format": "1", "tracejit": "a" * 64, "numba": "0.61.0", "llvmlite": "0.44",
    "numpy": "2.1", "python": "cpython-311", "system": "linux", "cpu": "znver3", "cpu features": "+avx,+sse,-avx512f",
}  # fmt: skip


def entry(text: str, **changed: str) -> StoredKernel:
    """Return a kernel that this process finds, or one of another key."""
    key = key_of("kernel", text)
    assert key is not None
    if changed:
        parts = dict(key.parts) | {name.replace("_", " "): value for name, value in changed.items()}
        key = KernelKey(tuple(parts.items()))
    name = text[4 : text.index("(")]
    return StoredKernel(key, name, (), 1, text, b"\x7fELF")


def source(name: str, *lines: str) -> str:
    return "\n".join([f"def {name}(args):", *(f"    {line}" for line in lines)]) + "\n"


MUL, ADD, TANH = (
    source("mul_1", "a = 1", "b = 2"),
    source("add_2", "a = 1", "b = 3"),
    source("tanh_3", "a = 1", "b = 2", "c = 3"),
)


def program(*kernels: StoredKernel, **changed: Any) -> dict[str, Any]:
    return {
        "function": "step",
        "defined": ["/home/me/train.py", 5],
        "signature": [["x", "128(B) float32"], ["rate", "0.1"]],
        "target": "cpu",
        "inputs": ["128(B) float32"],
        "outputs": ["scalar float32"],
        "ops": [
            {"name": "mul", "params": {}, "where": ["/home/me/train.py", 6]},
            {"name": "sum", "params": {"axis": "0"}, "where": None},
        ],
        "kernels": [{"name": each.symbol, "entry": each.key.name} for each in kernels],
        "rows": [
            {"kernel": 0, "arguments": [1], "operations": "mul", "where": [["/home/me/train.py", 6]]},
            {"kernel": 0, "arguments": [2], "operations": "sum", "where": []},
        ],
        "row_count": 2,
        "arena_bytes": 2048,
        "constant_bytes": 0,
        **changed,
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keep(root: Path, *entries: dict[str, Any] | StoredKernel) -> list[str]:
    """Write programs and kernels down, the last one used last; return their keys."""
    names = []
    for at, each in enumerate(entries):
        if isinstance(each, StoredKernel):
            KernelStore(str(root), 1 << 20).save(each)
            names.append(each.key.name)
            continue
        # Times of files are those of now.
        Programs(str(root)).keep(each, {"at": 4e9 + at})
        names += [
            kept.name for kept in Programs(str(root)).all() if kept.program == {"schema": SCHEMA} | each
        ]
    return names


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["cache", "why", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


WHERE = "step (/home/me/train.py:5)"


def test_two_programs(capsys, root) -> None:
    first = program(entry(MUL), signature=[["x", "64(B) float32"], ["rate", "0.1"]])
    one, other = keep(root, first, program(entry(MUL)))
    assert run(capsys, one[:8], other[:8]) == (
        0,
        f"here   {one[:12]}  {WHERE}\nthere  {other[:12]}  {WHERE}\n"
        "argument x: 64(B) float32 here, 128(B) float32 there\n",
        "",
    )
    code, out, err = run(capsys, one, other, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "schema": 1, "command": "cache why",
        "result": {
            "key": one, "name": WHERE, "other": other, "other_name": WHERE,
            "differences": [
                {
                    "what": "argument x", "here": "64(B) float32", "there": "128(B) float32",
                    "text": "argument x: 64(B) float32 here, 128(B) float32 there",
                }
            ],
            "process": None,
        },
    }  # fmt: skip


def test_a_program_and_the_nearest_one_of_its_function(capsys, root) -> None:
    signature = [["x", "64(B) float32"], ["rate", "0.1"]]
    far = program(entry(MUL), signature=[["x", "7(B) float32"], ["rate", "0.2"]])
    near = program(entry(MUL), signature=[["x", "64(B) float32"], ["rate", "0.2"]])
    other = program(entry(MUL), function="evaluate", signature=signature)
    _, key, _, mine, _ = keep(root, far, near, other, program(entry(MUL), signature=signature), entry(MUL))
    expected = (
        f"here   {mine[:12]}  {WHERE}\nthere  {key[:12]}  {WHERE}\nargument rate: 0.1 here, 0.2 there\n\n"
        "this process finds every kernel\n"
    )
    assert run(capsys, "step") == run(capsys, mine) == (0, expected, "")


def test_a_program_without_a_similar_one(capsys, root) -> None:
    other = entry(ADD, numba="0.1", cpu_features="+odd")
    (key, *_) = keep(root, program(entry(MUL), other, entry(TANH)), entry(MUL), other)
    assert run(capsys, "step") == (
        0,
        f"here   {key[:12]}  {WHERE}\nthere  nothing: no other entry is like it\n\n"
        "kernel: tanh_3 is not on disk\nNumba: 0.1 on disk only\nCPU features: odd on disk only\n",
        "",
    )
    process = json.loads(run(capsys, "step", "--json")[1])["result"]["process"]
    assert [each["what"] for each in process] == ["kernel", "Numba", "CPU features"]


def test_an_entry_and_itself(capsys, root) -> None:
    (key,) = keep(root, program(entry(MUL)))
    expected = f"here   {key[:12]}  {WHERE}\nthere  {key[:12]}  {WHERE}\nnothing differs\n"
    assert run(capsys, key, key) == (0, expected, "")


def test_two_kernels(capsys, root) -> None:
    one, other = keep(root, entry(MUL), entry(ADD, numba="0.1"))
    numba = dict(entry(MUL).key.parts)["numba"]
    assert run(capsys, one, other) == (
        0,
        f"here   {one[:12]}  mul_1\nthere  {other[:12]}  add_2\nkernel: mul_1 here, add_2 there\n"
        f"Numba: {numba} here, 0.1 there\n",
        "",
    )


def test_a_kernel_and_the_nearest_one_of_its_source(capsys, root) -> None:
    mine = entry(MUL, numba="0.1", cpu="old")
    keys = keep(
        root, mine, entry(MUL), entry(MUL, numba="0.1", cpu="older"), entry(ADD, numba="0.1", cpu="old")
    )
    parts = dict(entry(MUL).key.parts)
    assert run(capsys, keys[0]) == (
        0,
        f"here   {keys[0][:12]}  mul_1\nthere  {keys[2][:12]}  mul_1\nCPU: old here, older there\n\n"
        f"Numba: 0.1 on disk, {parts['numba']} in this process\n"
        f"CPU: old on disk, {parts['cpu']} in this process\n",
        "",
    )


def test_a_kernel_alone(capsys, root) -> None:
    (key,) = keep(root, entry(MUL))
    assert run(capsys, key[:9]) == (
        0,
        f"here   {key[:12]}  mul_1\nthere  nothing: no other entry is like it\n\nthis process finds every kernel\n",
        "",
    )


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("tracejit cache why: ")
    code, out, _ = run(capsys, *arguments, "--json")
    found = json.loads(out)["error"]
    assert (code, found["kind"], found["message"]) == (1, "CacheError", err[20:-1])
    return str(found["message"])


def test_keys_that_name_nothing(capsys, root) -> None:
    keep(root, program(entry(MUL)), entry(MUL))
    text = "no program or kernel has the key or the name 'none'; `tracejit cache list` shows all programs"
    assert error(capsys, "none") == error(capsys, "step", "none") == text
    assert error(capsys, "").startswith("no program or kernel has the key or the name ''")


def test_keys_that_name_several(capsys, root) -> None:
    keys = keep(root, program(entry(MUL)), program(entry(MUL), function="evaluate"))
    both = ", ".join(key[:12] for key in reversed(keys))
    assert error(capsys, "*") == f"2 programs match '*': {both}; name one by its key"
    by_digits: dict[str, list[StoredKernel]] = {}
    alike: list[StoredKernel] = []
    for i in itertools.count():
        kernel = entry(source(f"k_{i}"))
        alike = by_digits.setdefault(kernel.key.name[:4], [])
        alike.append(kernel)
        if len(alike) > 1:
            break
    digits = alike[0].key.name[:4]
    kernels = ", ".join(sorted(key[:12] for key in keep(root, *alike)))
    assert error(capsys, digits) == f"2 kernels match {digits!r}: {kernels}; name one by its key"


def test_a_program_and_a_kernel(capsys, root) -> None:
    _, key = keep(root, program(entry(MUL)), entry(MUL))
    for pair in (("step", key), (key, "step")):
        assert error(capsys, *pair) == (
            f"{pair[0]!r} and {pair[1]!r} are a program and a kernel, which have nothing in common; "
            "name two of one kind"
        )


def test_entries_that_are_damaged(capsys, root) -> None:
    key, kernel = keep(root, program(entry(MUL)), entry(MUL))
    (root / "kernels" / f"{kernel}{SUFFIX}").write_text("damaged")
    assert (
        error(capsys, kernel) == f"the kernel {kernel[:12]} cannot be read: it is not an entry of the cache"
    )
    path = root / "programs" / f"{key}.program"
    path.write_bytes(path.read_bytes()[:-1])
    assert error(capsys, "step") == f"the description of the program {key[:12]} cannot be read"


def test_a_folder_that_is_not_to_be_used(capsys, root) -> None:
    keep(root, program(entry(MUL)))
    root.chmod(0o777)
    assert error(capsys, "step") == (
        f"the cache in {root} cannot be used: other users may write to the folder {root} (mode 777); "
        "set TRACEJIT_CACHE_DIR to a folder of your own"
    )


def differences(root: Path, here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Return the differences between two programs in words."""
    return [each.text for each in cache.why(*keep(root, here), *keep(root, there)).differences]


HERE = program(entry(MUL))
OPS = HERE["ops"]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"function": "train"}, "function: step here, train there"),
        ({"defined": ["b.py", 1]}, "defined: /home/me/train.py:5 here, b.py:1 there"),
        ({"defined": None}, "defined: /home/me/train.py:5 here, no line there"),
        ({"signature": [["x", "128(B) float32"], ["y", "1"]]}, "argument rate: 0.1 here only"),
        ({"outputs": ["scalar float32", "3 float32"]}, "output 2: 3 float32 there only"),
        ({"target": "x86-64-v4"}, "target: cpu here, x86-64-v4 there"),
        ({"ops": OPS[:1]}, "operation: sum(axis=0) at no line here only"),
        (
            {"ops": [OPS[0], OPS[1] | {"params": {"axis": "1"}}]},
            "operation: sum(axis=0) at no line here, sum(axis=1) at no line there",
        ),
        ({"row_count": 3}, "launches: 2 here, 3 there"),
        ({"constant_bytes": 8}, "constants: 0 bytes here, 8 bytes there"),
        ({"arena_bytes": 4096}, "arena: 2048 bytes here, 4096 bytes there"),
    ],
)
def test_programs_that_differ_in_one_part(root, changed, text) -> None:
    assert differences(root, HERE, HERE | changed)[0] == text


def test_programs_without_arguments_of_their_own_are_told_apart_by_inputs(root) -> None:
    here = program(signature=[])
    there = here | {"inputs": ["64(B) float32", "3 float32"]}
    assert differences(root, here, there) == [
        "argument 1: 128(B) float32 here, 64(B) float32 there",
        "argument 2: 3 float32 there only",
    ]


def test_launches_are_compared_only_if_everything_around_them_is_equal(root) -> None:
    assert differences(root, HERE, HERE | {"row_count": 3, "target": "cuda"}) == [
        "target: cpu here, cuda there"
    ]


def test_programs_with_other_numbers_in_their_launches(capsys, root) -> None:
    first, second = HERE["rows"]
    keys = keep(root, HERE) + keep(root, HERE | {"rows": [first, second | {"arguments": [3]}]})
    assert run(capsys, *keys)[1].endswith("\nonly numbers in the launches differ\n")


def test_kernels_of_programs(root) -> None:
    mul, add = entry(MUL), entry(ADD)
    old = entry(MUL, numba="0.1")
    numba = dict(mul.key.parts)["numba"]
    keep(root, mul, add)
    assert differences(root, program(mul), program(add)) == ["kernel: mul_1 here, add_2 there"]
    assert differences(root, program(mul, add), program(mul)) == ["kernel: add_2 here only"]
    assert "Numba: 0.1 there only" not in differences(root, program(mul), program(old))
    keep(root, old)
    assert differences(root, program(mul), program(old)) == [f"Numba: {numba} here, 0.1 there"]


def test_of_many_kernels_the_first_are_named(root) -> None:
    here = program(*(entry(source(f"k_{i}")) for i in range(12)))
    there = program(*(entry(source(f"l_{i}")) for i in range(3)))
    names = ", ".join(f"k_{i}" for i in range(8))
    assert differences(root, here, there) == [f"kernel: {names}, 4 more here, l_0, l_1, l_2 there"]


def test_every_part_of_a_key_has_words() -> None:
    here = KernelKey(tuple(PARTS.items()))
    for name, other, text in (
        ("kind", "function", "kind: kernel here, function there"),
        ("source", "x", None),
        ("format", "2", "format of entries: 1 here, 2 there"),
        ("tracejit", "b" * 64, "tracejit's own kernels: aaaaaaaaaaaa here, bbbbbbbbbbbb there"),
        ("numba", "0.62.0", "Numba: 0.61.0 here, 0.62.0 there"),
        ("llvmlite", "0.45", "llvmlite: 0.44 here, 0.45 there"),
        ("numpy", "2.2", "NumPy: 2.1 here, 2.2 there"),
        ("python", "cpython-313", "Python: cpython-311 here, cpython-313 there"),
        ("system", "mac", "system: linux here, mac there"),
        ("cpu", "znver4", "CPU: znver3 here, znver4 there"),
        ("cpu features", "+avx,+sse,+avx512f", "CPU features: avx512f there only"),
        ("cpu features", "+avx512f", "CPU features: avx, sse here, avx512f there"),
        ("cpu features", "+sse,+avx,-sse4a", None),
        ("phase of the moon", "full", "phase of the moon: full there only"),
    ):
        there = KernelKey(tuple((PARTS | {name: other}).items()))
        words = [each.text for each in differing(key_parts(here), key_parts(there))]
        assert words == ([text] if text else []), name


def test_the_words_know_every_part() -> None:
    assert list(dict(entry(MUL).key.parts)) == list(PARTS)


def test_the_dependencies_of_this_process_are_unknown(capsys, root, monkeypatch) -> None:
    keep(root, entry(MUL))
    monkeypatch.setattr("tracejit.compile.key.key_of", lambda kind, text: None)
    process = cache.why(entry(MUL).key.name).process
    assert process is not None
    assert {each.text[-len("on disk only") :] for each in process} == {"on disk only"}
    assert len(process) == len(PARTS) - 1


def test_why_imports_no_compiler(root) -> None:
    key, _ = keep(root, program(entry(MUL)), entry(MUL))
    code = (
        f"import sys; from tracejit import cli, config; config.settings.cache_dir = {str(root)!r}; "
        f"code = cli.main(['cache', 'why', {key!r}]); "
        "print([m for m in ('numba', 'scipy') if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "this process finds every kernel" in done.stdout
