# SPDX-License-Identifier: BSD-3-Clause
"""Exported folders with one thing changed, and the messages of load() about them: a line for each change."""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from tracejit.codegen.names import NAME, named

TABLE = np.arange(6.0).reshape(2, 3)


class Damage(NamedTuple):
    """A change of an exported folder, and the text of the error of load()."""

    change: Callable[[dict[str, bytes]], None]
    text: str


def layer(x: Any, w: Any) -> Any:
    y = tj.tanh(x @ w) + TABLE
    return {"y": y, "total": y.sum()}


@cache
def content() -> dict[str, bytes]:
    """Return the files of an exported folder by name."""
    with tempfile.TemporaryDirectory() as folder:
        args = (np.ones((2, 4)), np.ones((4, 3)))
        tj.export(tj.dlaccelerate(layer), f"{folder}/f", args=args, captured="constants")
        paths = [path for path in Path(folder, "f").rglob("*") if path.is_file()]
        return {str(path.relative_to(f"{folder}/f")): path.read_bytes() for path in paths}


def written(folder: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Return the path of an exported folder, written after a change of its files."""
    changed = dict(content())
    change(changed)
    for name, data in changed.items():
        path = folder / "f" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "f"


def load_damaged(folder: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Load an exported folder that was written after a change of its files."""
    tj.load(written(folder, change))


def sealed(found: dict[str, bytes], manifest: Any) -> None:
    """Put a manifest in place, under a hash that agrees with it."""
    data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    found["manifest.json"] = data
    found["manifest.sha256"] = f"{hashlib.sha256(data).hexdigest()}  manifest.json\n".encode()


def edit(value: Any, at: list[Any], to: Any) -> Any:
    """Return a JSON value after the part at a path was replaced, or changed by a function."""
    if not at:
        return to(value) if callable(to) else to
    value[at[0]] = edit(value[at[0]], at[1:], to) if at[1:] or callable(to) else to
    return value


def manifest(*at: Any, to: Any) -> Callable[[dict[str, bytes]], None]:
    """Return a change of the manifest: the value at a path becomes `to`."""
    return lambda found: sealed(found, edit(json.loads(found["manifest.json"]), list(at), to))


def file(pattern: str, to: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], None]:
    """Return a change of a file; the manifest gets its new hash."""

    def change(found: dict[str, bytes]) -> None:
        name = next(name for name in sorted(found) if Path(name).match(pattern))
        found[name] = to(found[name])
        record = [len(found[name]), hashlib.sha256(found[name]).hexdigest()]
        manifest("files", name, to=record)(found)

    return change


def program(*at: Any, to: Any) -> Callable[[dict[str, bytes]], None]:
    """Return a change of the program: the value at a path becomes `to`."""
    return file("trace-0.json", lambda data: json.dumps(edit(json.loads(data), list(at), to)).encode())


def argument(kind: str, index: int, to: Any) -> Callable[[dict[str, bytes]], None]:
    """Return a change of the first pointer into inputs, outputs, constants or the arena."""

    def rows(value: Any) -> Any:
        pointers = [a for row in value for a in row["arguments"] if isinstance(a, list) and a[0] == kind]
        pointers[0][index] = to
        return value

    return program("rows", to=rows)


def more(value: Any) -> Callable[[Any], Any]:
    """Return a function that appends a value to a list."""
    return lambda items: [*items, value]


def less(items: Any) -> Any:
    """Return a list less its last item."""
    return items[:-1]


def array(dtype: Any = float, allow_pickle: bool = False) -> bytes:
    """Return the content of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, np.ones(6, dtype), allow_pickle=allow_pickle)
    return stream.getvalue()


def forged(line: str) -> dict[str, str]:
    """Return a kernel of one line, whose name has the hash of its text."""
    return named(f"def {NAME}(args):\n    {line}\n", "forged")._asdict()


def wrong(what: str) -> str:
    """Return the text for a folder whose hashes agree and whose content does not fit."""
    return f"load: <folder>/f is not what export() writes ({what}). Export the function again."


def wrong_program(what: str) -> str:
    """Return the text for a folder whose hashes agree and whose program does not fit."""
    return wrong(f"CodegenError: a program is not what was written: {what}")


KEY, RESULTS = ("traces", 0, "key"), ("traces", 0, "results")
ROW, HASH = ("rows", 0), "0" * 64
ARGUMENT = (*KEY, "structure", 1, 0, 1, 0)  # the structure of the only argument

DAMAGES: tuple[Damage, ...] = (
    # the manifest
    Damage(
        manifest(to=[1]),
        "load: <folder>/f is not an exported folder: export() did not write its manifest.json.",
    ),
    Damage(
        manifest("kind", to="cake"),
        "load: <folder>/f is not an exported folder: export() did not write its manifest.json.",
    ),
    Damage(
        manifest("format", to=2),
        "load: <folder>/f has format 2, this version of tracejit reads 1. Export the function again.",
    ),
    Damage(
        manifest("files", to=3),
        "load: <folder>/f: manifest.json has no list of files. Export the function again.",
    ),
    Damage(
        lambda found: sealed(found, b"{"),
        "load: <folder>/f: manifest.json cannot be read (Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1)). Export the function again.",
    ),
    Damage(
        lambda found: sealed(found, b'{"kind": NaN}'),
        "load: <folder>/f: manifest.json cannot be read (NaN). Export the function again.",
    ),
    Damage(
        manifest("files", "../../x", to=[0, HASH]),
        "load: <folder>/f: manifest.json names '../../x', which no exported folder has. Export the "
        "function again.",
    ),
    Damage(
        manifest("files", "code/host/run.o", to=[-1, HASH]),
        "load: <folder>/f: manifest.json has no size and hash of code/host/run.o. Export the function again.",
    ),
    Damage(
        manifest("files", "code/host/run.o", 0, to=1),
        "load: <folder>/f: code/host/run.o is larger than manifest.json says. Export the function again.",
    ),
    Damage(
        manifest("executor", to=HASH),
        "load: <folder>/f was exported by a version of tracejit with a different executor. Export the "
        "function again with this version, or load it with that one.",
    ),
    Damage(
        manifest("system", to="riscv64 linux"),
        "load: <folder>/f has no object code for this machine (<machine>); it has code for riscv64 "
        "linux: host (<cpu>). Export the function on this machine, or with cpus= that include it.",
    ),
    Damage(manifest("traces", to=[]), wrong("ValueError: there are no traces")),
    Damage(manifest("cpus", to=[{"name": 3}]), wrong("TypeError: 3 is not a string")),
    # code
    Damage(
        manifest("cpus", 0, "code", to={}),
        "load: the folder has no object code of <kernel>. Export the function on the machine that is to "
        "run it.",
    ),
    Damage(
        manifest("cpus", 0, "code", "run", "symbol", to="run"),
        "load: object code of run cannot be loaded: there is no function of that name in it. Export the "
        "function on the machine that is to run it.",
    ),
    Damage(
        manifest("cpus", 0, "code", "run", "needs", to=["nowhere"]),
        "load: object code of tracejit_run cannot be loaded: there is no nowhere. Export the function on"
        " the machine that is to run it.",
    ),
    Damage(
        file("run.o", lambda data: b""),
        "load: object code of tracejit_run cannot be loaded: there is no function of that name in it. "
        "Export the function on the machine that is to run it.",
    ),
    # arrays
    Damage(
        file("*.npy", lambda data: data[:6] + b"\2" + data[7:]),
        wrong("ValueError: an unsupported version of the .npy format"),
    ),
    Damage(
        file("*.npy", lambda data: array(object, allow_pickle=True)), wrong("ValueError: an array of object")
    ),
    Damage(file("*.npy", less), wrong("ValueError: an array whose size is not that in its header")),
    # keys and results
    Damage(manifest(*KEY, "parts", 0, to=["cake"]), wrong("ValueError: the kind of an argument is 'cake'")),
    Damage(manifest(*KEY, "parts", 0, 4, to=[1]), wrong("ValueError: 1 strides of an array, expected 2")),
    Damage(
        manifest(*KEY, "parts", 0, to=["value", ["cake", "1"]]),
        wrong("ValueError: the kind of a value is 'cake'"),
    ),
    Damage(manifest(*KEY, "parts", 0, to=["value", ["bool", 1]]), wrong("ValueError: a bool that is 1")),
    Damage(manifest(*KEY, "parts", 0, to=["value", ["int", 1]]), wrong("TypeError: 1 is not a string")),
    Damage(manifest(*KEY, "parts", to=less), wrong("ValueError: 1 descriptions of arguments, expected 2")),
    Damage(manifest(*KEY, "orders", to=[]), wrong("ValueError: 0 orders of the keys of dicts, expected 1")),
    Damage(
        manifest(*RESULTS, "orders", 0, to=[["str", "other"]]),
        wrong("ValueError: the order of the keys of a dict does not have its keys"),
    ),
    Damage(
        manifest(*KEY, "structure", to=["list", ["leaf"]]),
        wrong("ValueError: 1 orders of the keys of dicts, expected 0"),
    ),
    Damage(
        manifest(*KEY, to=lambda key: key | {"structure": ["list", ["leaf", "leaf"]], "orders": []}),
        wrong("ValueError: a key whose structure is not that of arguments"),
    ),
    Damage(
        manifest(*ARGUMENT, to=["class", "nowhere:Pair", ["first"], ["leaf"]]),
        "load: the arguments or results have instances of Pair of the module nowhere, which cannot be "
        'imported. Make it importable, or give the class: load(path, classes={"Pair": ...}).',
    ),
    Damage(
        manifest(*ARGUMENT, to=["class", "builtins:int", ["first"], ["leaf"]]),
        "load: int had the fields first when it was exported, and now is not a named tuple or dataclass."
        " Export the function again.",
    ),
    Damage(
        manifest(*ARGUMENT, to=["class", "nowhere:Pair", ["first", "second"], ["leaf"]]),
        wrong("ValueError: 1 values of the fields of a class, expected 2"),
    ),
    Damage(
        manifest(*ARGUMENT, to=["dict", [["int", "1"], ["int", "1"]], ["leaf", "leaf"]]),
        wrong("ValueError: 1 different keys of a dict, expected 2"),
    ),
    Damage(
        manifest(*RESULTS, "leaves", to=more(["array", None])),
        wrong("ValueError: 3 descriptions of results, expected 2"),
    ),
    Damage(manifest(*RESULTS, "leaves", 0, to=["cake"]), wrong("ValueError: the kind of a result is 'cake'")),
    Damage(
        manifest(*RESULTS, "leaves", 0, to=["array", "CB"]),
        wrong("ValueError: the labels of a result are not those of its array"),
    ),
    Damage(
        manifest(*RESULTS, "leaves", 1, to=["number", "float", None]),
        wrong("ValueError: a number of the result is an array"),
    ),
    Damage(
        manifest(*RESULTS, "leaves", 1, to=["number", "bool", None]),
        wrong("ValueError: the kind of a number is 'bool'"),
    ),
    Damage(
        manifest(*RESULTS, "leaves", 0, to=["constant", ["int", "1"]]),
        wrong("ValueError: the outputs of a program are not the arrays of its result"),
    ),
    # programs
    Damage(
        program("inputs", 0, 0, to=[7]),
        wrong("ValueError: the inputs of a program are not the arrays of its arguments"),
    ),
    Damage(
        program("inputs", 0, 0, to=[1 << 50]),
        wrong_program("a size of input 0 is 1125899906842624"),
    ),
    Damage(
        program("inputs", 0, 2, to="object"),
        wrong_program("the dtype of input 0 is 'object'"),
    ),
    Damage(
        program("rows", to=3),
        wrong(
            "CodegenError: a program is not what was written (TypeError: object of type 'int' has no len())"
        ),
    ),
    Damage(
        program("guard", to=17),
        wrong_program("the number of the guard is 17"),
    ),
    Damage(
        program("written", to=[17]),
        wrong_program("the number of a written input is 17"),
    ),
    Damage(
        program("commits", to=1000),
        wrong_program("the number of commits is 1000"),
    ),
    Damage(
        program("checked", to=[3]),
        wrong_program("a checked operation is 3"),
    ),
    Damage(
        program("kernels", 0, "text", to="def f(args): pass"),
        wrong_program("the text of kernel <kernel> does not have the hash in its name"),
    ),
    Damage(
        program(*ROW, "part", to=[1, 2, 1]),
        wrong_program("row 0 is part 1 of 2"),
    ),
    Damage(
        program(*ROW, "arguments", to=more(1 << 63)),
        wrong_program("a number of row 0 is 9223372036854775808"),
    ),
    Damage(
        program(*ROW, "arguments", to=more(1.5)),
        wrong_program("a number of row 0 is 1.5"),
    ),
    Damage(
        program(*ROW, "arguments", to=more(["symbol", "system"])),
        wrong_program("row 0 calls 'system'"),
    ),
    Damage(
        program(*ROW, "arguments", to=more(["number", "float64", "00"])),
        wrong_program("a number of row 0 has 1 bytes"),
    ),
    Damage(
        program(*ROW, "arguments", to=more(0)),
        wrong_program("row 0 has 16 arguments, expected 15"),
    ),
    Damage(
        program(*ROW, "arguments", 0, to=["number", "float64", "00" * 8]),
        wrong_program("row 0 has argument 0 that is a number of float64, expected an integer"),
    ),
    Damage(
        program(*ROW, "arguments", -1, to=["symbol", "sgemm"]),
        wrong_program(
            "row 0 has argument 14 that is the routine sgemm, expected an address of float64 to write"
        ),
    ),
    Damage(
        program(*ROW, "arguments", -1, to=["input", 0, 0, 0, "float64"]),
        wrong_program(
            "row 0 has argument 14 that is an address of float64 in input 0, expected an address of float64 to write"
        ),
    ),
    Damage(
        program("kernels", 0, to=forged("n0 = args[1]")),
        wrong("CodegenError: kernel <kernel> does not use each of its arguments once"),
    ),
    Damage(
        program("kernels", 0, to=forged("p0 = read_c64(args[0])")),
        wrong("CodegenError: kernel <kernel> has an argument of the unknown type c64"),
    ),
    Damage(
        argument("input", 0, "stack"),
        wrong_program("a place of row 0 is 'stack'"),
    ),
    Damage(
        argument("input", 1, 2),
        wrong_program("the input of row 0 is 2"),
    ),
    Damage(
        argument("input", 2, 64),
        wrong_program("a place of row 0 is float64 at byte 64 of input 0, expected float64 at byte 0"),
    ),
    Damage(
        argument("input", 3, 65),
        wrong_program("a place of row 0 is byte 65 of 0 to 64 (input)"),
    ),
    Damage(
        argument("input", 4, "object"),
        wrong_program("the dtype of a place of row 0 is 'object'"),
    ),
    Damage(
        argument("arena", 2, 8),
        wrong_program("a place of row 0 begins at 8 of the arena"),
    ),
)


def after(folder: Path, name: str, how: Callable[[Path], None]) -> Path:
    """Return the path of an exported folder after something was done to a file or folder in it."""
    path = written(folder, lambda found: None)
    how(path / name)
    return path


def link(path: Path) -> None:
    """Put a link in the place of a file or folder."""
    os.symlink(path.rename(path.with_name("aside")), path)


def pipe(path: Path) -> None:
    """Put a pipe in the place of a file."""
    path.unlink()
    os.mkfifo(path)
