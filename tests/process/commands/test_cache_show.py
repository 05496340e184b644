# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache show`: whole outputs for a program that another process compiled, sections, and compiled code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracejit
from tracejit import cli, config
from tracejit.store.kernels import SUFFIX
from tracejit.store.programs import Programs

TRAIN = """\
import numpy as np
from tracejit import dlaccelerate, dlarray, dlgradient, tanh


@dlaccelerate
def step(w, x):
    y = tanh(x @ w)
    loss = (y**2).sum()
    return loss, dlgradient(loss, w)


@dlaccelerate
def long(w, x):
    for _ in range(300):
        x = tanh(x @ w)
    return x.sum()


for _ in range(3):
    step(dlarray(np.ones((3, 2), np.float32)), dlarray(np.ones((5, 3), np.float32)))
    long(dlarray(np.ones((2, 2), np.float32)), dlarray(np.ones((2, 2), np.float32)))
"""

HEAD = """\
KEY
function  step
defined   ROOT/train.py:5
call      w: 3x2 float32, x: 5x3 float32
input     3x2 float32
input     5x3 float32
output    scalar float32
output    3x2 float32
file      train.py  ROOT/train.py
arena     128 bytes
constants 0 bytes
"""
OPERATIONS = """\
operations
  value  operation                             result          where       launches
  v0     matmul(in1, in0)                      5x2 float32     train.py:7  0
  v1     tanh(v0)                              5x2 float32     train.py:7  1
  v2     square(v1)                            5x2 float32     train.py:8  1
  v3     sum(v2, axes=(0, 1), keepdims=False)  scalar float32  train.py:8  1
  v4     mul(v1, 2.0)                          5x2 float32     train.py:8  1
  v5     sub(1.0, v2)                          5x2 float32     train.py:7  1
  v6     mul(v4, v5)                           5x2 float32     train.py:7  1
  v7     transpose(in1, axes=(1, 0))           3x5 float32     train.py:7  none: a view
  v8     matmul(v7, v6)                        3x2 float32     train.py:7  2
"""
LAUNCHES = """\
launches
     0  product_HASH  matmul v0  (train.py:7)
     1  tanh_square_sub_HASH  tanh v1, square v2, sum v3, mul v4, sub v5, mul v6  (train.py:7, train.py:8)
        apart from v0 of 0: matmul is a matrix product, which has a kernel of its own
     2  product_HASH  matmul v8  (train.py:7)
        apart from v6 of 1: matmul is a matrix product, which has a kernel of its own
"""
MEMORY = """\
memory
  place     offset  bytes  value  written by         launches
  input 1        0     60  in1                       0-2
  input 0        0     24  in0                       0
  arena          0     40  v0     matmul train.py:7  0-1
  arena         64     40  v6     mul train.py:7     1-2
  output 0       0      4  v3     sum train.py:8     1
  output 1       0     24  v8     matmul train.py:7  2
"""
SOURCE = """\
# tanh_square_sub_HASH: SIZE, compiled in TIME, launched as 1
def tanh_square_sub_HASH(args):
    n0 = args[0]
    p0 = read_f32(args[1])
    o0 = write_f32(args[2], 0)
    o1 = write_f32(args[3], 1)
    c0 = number_f32(args[4])
    v0 = f32(0)                    # train.py:8 sum
    for i0 in range(n0):
        v1 = p0[i0]
        v2 = tanh_f32(v1)          # train.py:7 tanh
        v3 = v2 * c0               # train.py:8 mul
        v4 = v2 * v2               # train.py:8 square
        v5 = f32(1.0) - v4         # train.py:7 sub
        v6 = v3 * v5               # train.py:7 mul
        o0[i0] = v6                # train.py:7 mul
        v0 = fold_sum_f32(v0, v4)  # train.py:8 sum
    o1[0] = v0                     # train.py:8 sum
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of a process that ran TRAIN."""
    folder = tmp_path_factory.mktemp("show")
    (folder / "train.py").write_text(TRAIN)
    environment = os.environ | {"TRACEJIT_CACHE_DIR": str(folder / "cache"), "TRACEJIT_BACKEND": "cpu"}
    subprocess.run([sys.executable, str(folder / "train.py")], check=True, env=environment)
    return folder / "cache"


@pytest.fixture
def root(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config.settings, "cache_dir", str(cache))
    return cache


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["cache", "show", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def stable(text: str, root: Path) -> str:
    """Return a text without what differs between machines and runs."""
    text = re.sub(r"^[0-9a-f]{64}$", "KEY", text.replace(str(root.parent), "ROOT"), flags=re.MULTILINE)
    text = re.sub(r"_[0-9a-f]{12}\b", "_HASH", re.sub(r"\b[0-9a-f]{64}\b", "KEY", text))
    return re.sub(r": [\d.]+ \w+, compiled in [\d.]+ ms", ": SIZE, compiled in TIME", text)


def shown(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    return stable(out, root)


def test_show(capsys, root) -> None:
    out = shown(capsys, root, "step")
    before, _, product = out.partition("\n# product_HASH")
    assert before == "\n".join([HEAD, OPERATIONS, LAUNCHES, MEMORY])
    # The source of a product depends on the vectors of the machine.
    assert product.startswith(
        ": SIZE, compiled in TIME, launched as 0, 2\n# train.py:7 matmul\ndef product_HASH(args):\n"
    )
    assert out.endswith(f"\n\n{SOURCE}")
    (key,) = [each.name for each in Programs(str(root)).all() if each.program["function"] == "step"]
    assert shown(capsys, root, key[:10]) == out


@pytest.mark.parametrize(
    ("arguments", "sections"),
    [
        (["--ops"], [HEAD, OPERATIONS]),
        (["--kernels"], [HEAD, LAUNCHES]),
        (["--memory", "--ops"], [HEAD, OPERATIONS, MEMORY]),
        (["--kernel", "tanh"], [SOURCE]),
        (["--kernel", "tanh", "--source"], [SOURCE]),
        (["--kernel", "tanh", "--memory"], [MEMORY]),
    ],
)
def test_sections(capsys, root, arguments, sections) -> None:
    assert shown(capsys, root, "step", *arguments) == "\n".join(sections)


def test_compiled_code(capsys, root) -> None:
    both = shown(capsys, root, "step", "--kernel", "tanh", "--asm", "--llvm")
    asm, _, llvm = both.partition("\n\n# tanh_square_sub_HASH: llvm\n")
    assert asm.startswith("# tanh_square_sub_HASH: asm\n\t")
    assert "\ntanh_square_sub_HASH:\n" in asm
    assert "\ndefine void @tanh_square_sub_HASH(ptr" in llvm
    assert shown(capsys, root, "step", "--kernel", "tanh", "--asm") == f"{asm}\n"
    of_all = shown(capsys, root, "step", "--asm")
    assert of_all.startswith(HEAD)
    assert re.findall("# (.*): asm", of_all) == ["product_HASH", "tanh_square_sub_HASH"]


def test_all_that_is_known_as_json(capsys, root, request) -> None:
    code, out, err = run(capsys, "step", "--json")
    found = json.loads(stable(out, root))
    assert (code, err, found["schema"], found["command"]) == (0, "", 1, "cache show")
    text = json.dumps(found["result"]["program"], indent=1) + "\n"
    path = Path(__file__).parents[2] / "support" / "golden" / "show_of_a_program.json"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), "review the difference after pytest --update-golden"


def test_as_json(capsys, root) -> None:
    code, out, err = run(capsys, "step", "--json", "--kernel", "tanh", "--asm")
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found) == {"schema", "command", "result"}
    assert set(found["result"]) == {"key", "program", "kernels"}
    assert found["result"]["key"] == each.name
    assert found["result"]["program"] == each.program
    product, nest = (kernel["name"] for kernel in each.program["kernels"])
    kernels = found["result"]["kernels"]
    assert set(kernels) == {product, nest}
    assert set(kernels[product]) == {"key", "source", "code_bytes", "compile_ns"}
    assert set(kernels[nest]) == {"key", "source", "code_bytes", "compile_ns", "asm"}
    assert kernels[nest]["source"] == re.sub(" +# .*", "", kernels[nest]["source"])  # as it is compiled


def test_a_long_program_says_what_is_left_out(capsys, root) -> None:
    out = shown(capsys, root, "long")
    assert "  and 400 more operations, not written down\n" not in out
    left = re.findall(r"  and (\d+) more (\w+), not written down", out)
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "long"]
    kept = {name: len(each.program[name]) for name in ("ops", "rows", "memory")}
    assert [(int(number), what) for number, what in left] == [
        (601 - kept["ops"], "operations"), (600 - kept["rows"], "launches"), (602 - kept["memory"], "buffers")
    ]  # fmt: skip
    assert "# Lines are those of launch 1.\n" in out
    assert "\n   599  " in out  # the first one of its kernel


def test_parts_of_a_launch_are_one_line(capsys, root, monkeypatch, tmp_path) -> None:
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    program = json.loads(json.dumps(each.program))
    first, *others = program["rows"]
    program["rows"] = [first | {"number": n, "part": [n, 3, 0]} for n in range(3)]
    program["rows"] += [row | {"number": row["number"] + 2} for row in others]
    program["pairs"] = []
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "other"))
    Programs(str(tmp_path / "other")).keep(program, {"at": 1.0})
    launches = shown(capsys, root, "step", "--kernels").partition("launches\n")[2].splitlines()
    assert launches[0] == "   0-2  product_HASH  matmul v0  (train.py:7)"
    assert launches[2] == "     4  product_HASH  matmul v8  (train.py:7)"


def test_missing_kernels(capsys, root, monkeypatch, tmp_path) -> None:
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "other"))
    Programs(str(tmp_path / "other")).keep(each.program, {"at": 1.0})
    out = shown(capsys, root, "step", "--source")
    assert (
        out
        == f"{HEAD}\n# product_HASH: not on disk any more\n\n# tanh_square_sub_HASH: not on disk any more\n"
    )
    assert shown(capsys, root, "step", "--asm") == out
    assert shown(capsys, root, "step", "--memory") == f"{HEAD}\n{MEMORY}"


def test_a_kernel_that_the_program_does_not_have(capsys, root) -> None:
    code, out, err = run(capsys, "step", "--kernel", "mul")
    assert (code, out) == (1, "")
    assert stable(err, root) == (
        "tracejit cache show: the program has no kernel 'mul'; it has product_HASH, tanh_square_sub_HASH\n"
    )


NOT_PYTHON = ": its source is not Python; it is not compiled, as that could run it"


@pytest.mark.parametrize(
    ("forged", "text"),
    [
        ("tanh_of_old(", " cannot be compiled: a different version of tracejit emitted it"),
        ("tanh_f32((", NOT_PYTHON),
        ("tanh\\0(", NOT_PYTHON),
    ],
)
def test_a_source_that_cannot_be_compiled(capsys, root, monkeypatch, tmp_path, forged, text) -> None:
    from tracejit.store.entry import decode, encode

    other = tmp_path / "cache"
    for folder in ("kernels", "programs"):
        (other / folder).mkdir(parents=True, mode=0o700)
        for path in (root / folder).iterdir():
            (other / folder / path.name).write_bytes(path.read_bytes())
            (other / folder / path.name).chmod(0o600)
    for path in (other / "kernels").iterdir():
        entry = decode(path.read_bytes(), path.name.removesuffix(SUFFIX))
        source = entry.source.replace("tanh_f32(", forged)
        path.write_bytes(encode(entry._replace(source=source)))
    monkeypatch.setattr(config.settings, "cache_dir", str(other))
    code, out, err = run(capsys, "step", "--llvm", "--kernel", "tanh")
    assert (code, out) == (1, "")
    assert stable(err, root) == f"tracejit cache show: tanh_square_sub_HASH{text}\n"


@pytest.mark.parametrize("change", [{"ops": [{}]}, {"rows": 1}, {"pairs": None}, {"left_out": []}])
def test_damaged_descriptions(capsys, root, monkeypatch, tmp_path, change) -> None:
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "other"))
    Programs(str(tmp_path / "other")).keep(each.program | change, {"at": 1.0})
    (key,) = [each.name for each in Programs(str(tmp_path / "other")).all()]
    text = f"the description of the program {key[:12]} is damaged"
    assert run(capsys, "step") == (1, "", f"tracejit cache show: {text}\n")
    assert repr(tracejit.cache.show("step")) == f"{key}: a damaged description"


def test_names_that_a_terminal_would_obey_are_printed_as_text(capsys, root, monkeypatch, tmp_path) -> None:
    (each,) = [each for each in Programs(str(root)).all() if each.program["function"] == "step"]
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "other"))
    text = json.dumps(each.program).replace("train.py", "train\\u001b[31m.py").replace("tanh", "tanh\\u0007")
    Programs(str(tmp_path / "other")).keep(json.loads(text), {"at": 1.0})
    code, out, _ = run(capsys, "step")
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out


def test_showing_imports_no_compiler(root) -> None:
    code = (
        "import sys; from tracejit import cli; cli.main(['cache', 'show', 'step']); "
        "print([m for m in ('numba', 'scipy', 'llvmlite') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"TRACEJIT_CACHE_DIR": str(root)},
    )  # fmt: skip
    assert done.stderr == "[]\n"
