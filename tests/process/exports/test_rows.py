# SPDX-License-Identifier: BSD-3-Clause
"""Exported folders whose rows have other lists of arguments: a process that loads and calls them goes on."""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from effort import sweep

import tracejit as tj

TRIES = """
import json, sys
import numpy as np
import tracejit as tj

folder, tries = sys.argv[1], json.load(open(sys.argv[2]))
arguments = np.ones((20, 4)), np.ones((4, 5)), np.arange(3)
refused = called = 0
for files in tries:
    for name, text in files.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
    try:
        fun = tj.load(folder)
    except tj.ExportError as error:
        assert "row" in str(error), error
        refused += 1
    else:
        fun(*arguments)
        called += 1
print(refused, called)
"""


def step(x: Any, w: Any, places: Any) -> Any:
    y = tj.tanh(x @ w) + 0.3
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), y[places], np.cumsum(y, axis=0), y.argmax(axis=1)


def sealed(path: Path, name: str, program: Any) -> dict[str, str]:
    """Return the files of a folder that change with a program, by name, with hashes that agree."""
    text = json.dumps(program)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name] = [len(text), hashlib.sha256(text.encode()).hexdigest()]
    whole = json.dumps(manifest)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return {name: text, "manifest.json": whole, "manifest.sha256": f"{digest}  manifest.json\n"}


def test_forged_rows_do_not_end_the_process(tmp_path: Path) -> None:
    """Lists lose, gain and exchange arguments of different kinds, and rows take each other's lists."""
    path = tmp_path / "step.tj"
    args = (np.ones((20, 4)), np.ones((4, 5)), np.arange(3))
    tj.export(tj.dlaccelerate(step), path, args=args)
    (file,) = path.glob("programs/*/trace-0.json")
    name = file.relative_to(path).as_posix()
    rng = random.Random(4)
    tries = [sealed(path, name, json.loads(file.read_text()))]
    for _ in range(sweep(120, 2000)):
        program = json.loads(file.read_text())
        row = rng.choice(program["rows"])
        arguments, kinds = row["arguments"], list(map(type, row["arguments"]))
        way, at = rng.randrange(5), rng.randrange(len(arguments))
        if way == 0:
            del arguments[at:]
        elif way == 1:
            arguments.insert(at, rng.choice(arguments))
        elif way == 2:
            arguments.reverse()
        elif way == 3:
            arguments[at] = rng.choice([["number", "float64", "00" * 8], ["symbol", "dgemm"], 0, 1 << 40])
        else:
            row["arguments"] = rng.choice(program["rows"])["arguments"]
        if len(row["arguments"]) != len(kinds) or list(map(type, row["arguments"])) != kinds:
            tries.append(sealed(path, name, program))
    assert len(tries) > sweep(60, 1000)
    (tmp_path / "tries.json").write_text(json.dumps(tries))
    done = subprocess.run(
        [sys.executable, "-c", TRIES, str(path), str(tmp_path / "tries.json")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(len(tries) - 1), "1"]
