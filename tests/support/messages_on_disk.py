# SPDX-License-Identifier: BSD-3-Clause
"""The second part of the table of messages: errors about files, and how to provoke them in a folder of one's own."""

import errno
import os
import re
import sys
import types
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import damaged_exports
import numpy as np
from damaged_caches import (
    ARCHIVES,
    COMMANDS,
    GOOD,
    NAME,
    file_instead,
    filled,
    kernel,
    link,
    one,
    open_to_all,
    run,
    unpack,
)
from damaged_exports import after, load_damaged
from messages import Outcome, statements
from messages_accelerate import counting
from messages_host import Square
from messages_shared import V

import tracejit as tj
from tracejit import config
from tracejit.cache import contents
from tracejit.commands.arguments import UsageError
from tracejit.commands.output import CommandError
from tracejit.compile.objects import host
from tracejit.errors import (
    ArgumentError,
    CacheError,
    CacheWarning,
    ExportError,
    RetraceError,
    TraceError,
    TraceJitWarning,
    WriteError,
)
from tracejit.exports.machine import system
from tracejit.store.kernels import KernelStore


class FolderRow(NamedTuple):
    """A message: a call that meets it in a folder, the type of the error, and its text with names for what varies."""

    provoke: Callable[[Path], object]
    error: type[Exception]
    text: str


@cache
def outcome(row: FolderRow, folder: Path) -> Outcome:
    """Return what the call of a row raises in a folder, with names for what differs between machines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceJitWarning)
            row.provoke(folder)
    except Exception as error:
        text = str(error).replace(str(folder), "<folder>").replace(config.settings.cache_dir or "", "<cache>")
        for pattern, name in NAMES.items():
            text = re.sub(pattern, name, text)
        return Outcome(type(error), text, frozenset(statements(error)))
    return Outcome(None, "", frozenset())


NAMES = {  # pattern: the name in the table
    r"\b[0-9a-f]{64}\b": "<hash>",
    r"\b[0-9a-f]{12}\b": "<key>",
    r"\b\w+_[0-9a-f]{12}\b": "<kernel>",
    r"[^ ]*\bmessages[a-z_]*\.py:\d+": "<place>",
    re.escape(f"{system()}, {host()[1]}"): "<machine>",
    re.escape(f"({host()[1]})"): "(<cpu>)",
}


@tj.dlaccelerate
def double(x: Any) -> Any:
    return x * 2


def draws(generator: tj.Generator) -> tj.AcceleratedFunction:
    """Return a function that draws from a generator."""
    return tj.dlaccelerate(lambda x: x + tj.rand(3, generator=generator))


def draws_of_numpy(generator: np.random.Generator) -> tj.AcceleratedFunction:
    """Return a function that draws from a generator of NumPy's."""
    return tj.dlaccelerate(lambda x: x + generator.normal(size=3))


def plus(array: np.ndarray) -> tj.AcceleratedFunction:
    """Return a function that captures an array."""
    return tj.dlaccelerate(lambda x: x + array)


def add_to(array: Any, x: Any) -> None:
    array += x


def assigning() -> tj.AcceleratedFunction:
    """Return a function that assigns to an attribute, confirmed."""
    kept = types.SimpleNamespace(u=tj.dlarray(V))

    @tj.dlaccelerate
    def step(x: Any) -> Any:
        kept.u = kept.u + x
        return kept.u * 1

    for _ in range(3):
        step(V)
    return step


def filling() -> tj.AcceleratedFunction:
    """Return a function that puts an array into a dict among its arguments, confirmed."""

    @tj.dlaccelerate
    def step(p: Any, x: Any) -> Any:
        p["w"] = x * 2
        return x + 1

    for _ in range(3):
        step({}, V)
    return step


def adds_to(data: Any) -> tj.AcceleratedFunction:
    """Return a function that writes into an array that it captures."""
    array = tj.dlarray(np.array(data))

    def function(x: Any) -> None:
        array[...] = array + x

    return tj.dlaccelerate(function)


def exported(folder: Path) -> tj.LoadedFunction:
    """Return a function after it was exported into a folder and loaded again."""
    tj.export(double, folder / "double.tj", args=(V,))
    return tj.load(folder / "double.tj")


def changed(function: tj.LoadedFunction, pattern: str, content: bytes) -> str:
    """Return the exported folder of a function, with another content of its files of a name."""
    for path in Path(function.path).glob(pattern):
        path.write_bytes(content)
    return function.path


def without(function: tj.LoadedFunction, name: str) -> str:
    """Return the exported folder of a function, less a file."""
    (Path(function.path) / name).unlink()
    return function.path


def packed(folder: Path, changed: bool = False) -> str:
    """Return the file that a cache was packed into, a byte of it changed or not."""
    path = folder / "cache.tar"
    tj.cache.pack(str(path))
    if changed:
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    return str(path)


def written(path: Path, content: bytes) -> str:
    """Return the name of a file with a content."""
    path.write_bytes(content)
    return str(path)


def kernels_that_cannot_be_kept(folder: Path) -> None:
    """Compile kernels while a file stands where the folder of the cache should be."""
    kept, config.settings.cache_dir = config.settings.cache_dir, written(folder / "cache", b"")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", CacheWarning)
            for _ in range(3):
                tripled(V)
    finally:
        config.settings.cache_dir = kept


@tj.dlaccelerate
def tripled(x: Any) -> Any:
    return x * 3 + 5


def with_setting(name: str, value: Any, call: Callable[[], object]) -> object:
    """Return what a call gives under a value of a setting."""
    kept = getattr(config.settings, name)
    setattr(config.settings, name, value)
    try:
        return call()
    finally:
        setattr(config.settings, name, kept)


def without_module(name: str, call: Callable[[], object]) -> object:
    """Return what a call gives while a module cannot be imported."""
    kept = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        return call()
    finally:
        del sys.modules[name]
        if kept is not None:
            sys.modules[name] = kept


def pipe(path: Path) -> str:
    """Return the name of a pipe."""
    os.mkfifo(path)
    return str(path)


def keep_kernel(prepare: Callable[[Path], object]) -> None:
    """Store a kernel and look it up in a cache after its folder was prepared, with warnings as errors."""
    root = filled()
    prepare(root)
    store = KernelStore(str(root), 1 << 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        store.save(kernel(3))


def look_up_kernel(prepare: Callable[[Path], object]) -> None:
    """Look up a kernel in a cache after its folder was prepared, with warnings as errors."""
    root = filled()
    prepare(root)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        KernelStore(str(root), 1 << 30).load(kernel(1).key)


def in_read_only_folder(call: Callable[[], object]) -> None:
    """Call something where no file of a cache can be removed."""
    filled()
    refused = OSError(errno.EROFS, os.strerror(errno.EROFS))
    with mock.patch.object(os, "unlink", side_effect=refused):
        call()


def show_compiled(
    function: Callable[[Any], Any], arguments: str, source: str | None = None, command: str = "cache show"
) -> None:
    """Run a command on a program that was compiled here, its kernels with a different source if one is given."""
    compiled = tj.dlaccelerate(function)
    for _ in range(3):
        compiled(V)
    (program,) = tj.cache.list()
    if source is not None:
        root = config.settings.cache_dir or ""
        for record in tj.cache.show(program.key).program["kernels"]:
            stored = contents.entry(record["entry"])
            KernelStore(root, 1 << 30).save(stored._replace(source=source.format(stored.symbol)))
    run(f"{command} {program.key} {arguments}")


def run_prepared(prepare: Callable[[Path], object], arguments: str) -> None:
    """Run a command on a cache after its folder was prepared."""
    prepare(filled())
    run(arguments)


def branching() -> tj.AcceleratedFunction:
    """Return a function with a branch."""
    return tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x * 3)


def local_class() -> type:
    """Return a named tuple that no other process finds by name."""

    class Pair(NamedTuple):
        x: Any

    return Pair


PAIR = local_class()


def once(function: tj.AcceleratedFunction, x: Any = V) -> tj.AcceleratedFunction:
    """Return a function after a call."""
    function(x)
    return function


def changed_closure() -> tj.AcceleratedFunction:
    """Return a function after the number that it reads has changed."""
    rate = 0.5
    scaled = tj.dlaccelerate(lambda x: x * rate)
    for _ in range(2):
        scaled(V)
    rate = 2.0
    return scaled


ROWS: tuple[FolderRow, ...] = (
    # cache/archive
    FolderRow(
        lambda folder: tj.cache.list(limit=-1),
        ArgumentError,
        "cache.list: limit must be at least 0, not -1; leave it out for all programs.",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(str(folder / "none.tar")),
        CacheError,
        "<folder>/none.tar cannot be read (No such file or directory)",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(str(folder)),
        CacheError,
        "<folder> cannot be read (Is a directory)",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(written(folder / "text.tar", b"text")),
        CacheError,
        "<folder>/text.tar is not what `tracejit cache pack` writes: it is not a tar file; nothing was "
        "unpacked",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(written(folder / "end.tar", bytes(2048))),
        CacheError,
        "<folder>/end.tar is not what `tracejit cache pack` writes: it is not a tar file; nothing was "
        "unpacked",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(packed(folder), sha256="0" * 64),
        CacheError,
        "the SHA-256 of <folder>/cache.tar is <hash>, expected <hash>; nothing was unpacked",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(packed(folder, changed=True)),
        CacheError,
        "<folder>/cache.tar is not what `tracejit cache pack` writes: it is not a tar file; nothing was "
        "unpacked",
    ),
    FolderRow(
        lambda folder: tj.cache.pack(str(folder)),
        CacheError,
        "<folder> cannot be written (Is a directory)",
    ),
    FolderRow(
        lambda folder: tj.cache.pack(str(folder / "none" / "cache.tar")),
        CacheError,
        "<folder>/none/cache.tar cannot be written (No such file or directory)",
    ),
    FolderRow(
        lambda folder: with_setting("cache", "off", lambda: tj.cache.unpack(packed(folder))),
        CacheError,
        "there is no cache to unpack into, because TRACEJIT_CACHE=off; set it to private or shared",
    ),
    # cache/contents
    FolderRow(
        lambda _: tj.cache.show("nothing"),
        CacheError,
        "no program has the key or the function 'nothing'; `tracejit cache list` shows all",
    ),
    # cache/diff
    FolderRow(
        lambda _: tj.cache.why("nothing"),
        CacheError,
        "no program or kernel has the key or the name 'nothing'; `tracejit cache list` shows all programs",
    ),
    # cache/inspect
    FolderRow(
        lambda _: tj.cache.list(sort="colour"),
        CacheError,
        "there is no column 'colour' to sort by; the columns are key, function, where, target, kernels, size, "
        "hits, build, compile, used",
    ),
    # export/writer
    FolderRow(
        lambda folder: tj.dlfeval(lambda x: tj.export(double, folder / "f"), V),
        ExportError,
        "export: a function cannot be exported while dlfeval or an accelerated function runs; call "
        "export() afterwards.",
    ),
    FolderRow(
        lambda folder: tj.export(abs, folder / "f"),
        ArgumentError,
        "export: expected an accelerated function, not builtin_function_or_method; pass dlaccelerate(function).",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", captured="all"),
        ArgumentError,
        "export: captured: expected one of ('refuse', 'constants'), not 'all'.",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", cpus=()),
        ArgumentError,
        "export: cpus: expected one or more names, each once, not ().",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", cpus="i386"),
        ArgumentError,
        "export: cpus: expected one of 'host', 'x86-64-v4', 'x86-64-v3', 'x86-64-v2', 'x86-64', not 'i386'.",
    ),
    # exports/device
    FolderRow(
        lambda folder: tj.export(double, folder / "f", target="gpu"),
        ArgumentError,
        "export: target: expected one of ('cpu', 'cuda'), not 'gpu'.",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", capabilities="9.0"),
        ArgumentError,
        'export: capabilities are those of GPUs; set target="cuda" with them.',
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", target="cuda", cpus="x86-64"),
        ArgumentError,
        'export: cpus are not used with target="cuda"; leave them out, and give capabilities.',
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", target="cuda", capabilities="6.1"),
        ArgumentError,
        "export: capabilities: expected one of '7.5', '8.0', '8.6', '8.9', '9.0', '10.0', '12.0', not '6.1'.",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder / "f", target="cuda", capabilities=()),
        ArgumentError,
        "export: capabilities: expected one or more, each once, not ().",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x: x), folder / "f"),
        ExportError,
        "export: <lambda>.<locals>.<lambda> has no traces. Call it 2 times with the arguments to export "
        "it for, or give them: export(function, path, args=(...)).",
    ),
    FolderRow(
        lambda folder: tj.export(counting(), folder / "f", args=(V,)),
        ExportError,
        "export: counting.<locals>.scale, for x: 3 float64: it runs uncompiled, because two recordings "
        "differ: a constant of cast was 1, is 2 (1 of 1 elements differ): an array that is created in "
        "each call has different contents each time at <place>. Or export the traces for other arguments "
        "only: export(function, path, args=(...)).",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(Square()), folder / "f", args=(V,)),
        ExportError,
        "export: Square, for argument 1: 3 float64: it calls Square at <place>, Python code that runs between the "
        "kernels and that a loaded function does not have. Write it with functions of tracejit.",
    ),
    FolderRow(
        lambda folder: tj.export(draws(tj.Generator(1)), folder / "f", args=(V,)),
        ExportError,
        "export: draws.<locals>.<lambda>, for x: 3 float64: it draws random numbers from <Generator with "
        "seed 1>, which a loaded function does not have. Draw from the default generator, which rng() "
        "seeds, or pass random numbers as an argument.",
    ),
    FolderRow(
        lambda folder: tj.export(draws_of_numpy(np.random.default_rng(0)), folder / "f", args=(V,)),
        ExportError,
        "export: draws_of_numpy.<locals>.<lambda>, for x: 3 float64: it draws random numbers from normal(size=3), "
        "which a loaded function does not have. Draw from the default generator, which rng() seeds, or pass random "
        "numbers as an argument.",
    ),
    FolderRow(
        lambda folder: tj.export(plus(np.ones(3)), folder / "f", args=(V,)),
        ExportError,
        "export: plus.<locals>.<lambda>, for x: 3 float64: it captures arrays: closure array. Pass them "
        'as arguments, or export their current contents as constants: export(..., captured="constants").',
    ),
    FolderRow(
        lambda folder: tj.export(assigning(), folder / "f", args=(V,), captured="constants"),
        ExportError,
        "export: assigning.<locals>.step, for x: 3 float64: it assigns closure kept.u, which a loaded function does "
        "not have. Return the new value.",
    ),
    FolderRow(
        lambda folder: tj.export(filling(), folder / "f", args=({}, V)),
        ExportError,
        "export: filling.<locals>.step, for x: 3 float64: it assigns p['w'], which a loaded function does not do. "
        "Assign it in a copy, and return that.",
    ),
    FolderRow(
        lambda folder: tj.export(adds_to(V), folder / "f", args=(V,), captured="constants"),
        ExportError,
        "export: adds_to.<locals>.function, for x: 3 float64: it writes closure array, an array that it captures, "
        "which a loaded function does not have. Pass it as an argument.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(add_to), folder / "f", args=(V, V)),
        ExportError,
        "export: add_to, for array: 3 float64, x: 3 float64: it writes array, whose memory is that of another "
        "argument, or overlaps itself. Export it with arguments that share no memory.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x, y: x), folder / "f", args=(V, abs)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64, y: <built-in function abs>: y is a "
        "builtins.builtin_function_or_method, which cannot be written to a file. Arguments and results "
        "of an exported function are arrays, numbers, strings, None, dtypes and containers of these. Bind "
        "other objects inside the function, or in a lambda around it.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x: (x, abs)), folder / "f", args=(V,)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64: result[1] is a "
        "builtins.builtin_function_or_method, which cannot be written to a file. Arguments and results "
        "of an exported function are arrays, numbers, strings, None, dtypes and containers of these. Bind "
        "other objects inside the function, or in a lambda around it.",
    ),
    # export/files
    FolderRow(
        lambda folder: tj.export(double, folder, args=(V,)),
        ExportError,
        "export: <folder> exists already; give a different path, or replace=True.",
    ),
    FolderRow(
        lambda folder: tj.export(double, folder, args=(V,), replace=True),
        ExportError,
        "export: <folder> exists and is not an exported folder, so it is not replaced; give a different path.",
    ),
    FolderRow(
        lambda folder: tj.export(double, Path(written(folder / "text", b"")) / "f", args=(V,)),
        ExportError,
        "export: <folder>/text/f cannot be written (File exists).",
    ),
    FolderRow(
        lambda folder: tj.load(folder / "none"),
        ExportError,
        "load: <folder>/none does not exist. Give the path of a folder that export() wrote.",
    ),
    FolderRow(
        tj.load,
        ExportError,
        "load: <folder> is not an exported folder: it has no manifest.sha256. Give the path of a folder that "
        "export() wrote.",
    ),
    FolderRow(
        lambda folder: tj.load(exported(folder).path, sha256="0" * 64),
        ExportError,
        "load: <folder>/double.tj: the hash of manifest.json is <hash>, expected <hash>.",
    ),
    FolderRow(
        lambda folder: tj.load(changed(exported(folder), "manifest.json", b"{}")),
        ExportError,
        "load: <folder>/double.tj: manifest.json does not agree with manifest.sha256. Export the function "
        "again.",
    ),
    FolderRow(
        lambda folder: tj.load(changed(exported(folder), "manifest.sha256", b"")),
        ExportError,
        "load: <folder>/double.tj: manifest.json does not agree with manifest.sha256. Export the function "
        "again.",
    ),
    FolderRow(
        lambda folder: tj.load(changed(exported(folder), "code/host/work.o", b"")),
        ExportError,
        "load: <folder>/double.tj: code/host/work.o does not agree with its hash in manifest.json. Export "
        "the function again.",
    ),
    FolderRow(
        lambda folder: tj.load(without(exported(folder), "code/host/work.o")),
        ExportError,
        "load: <folder>/double.tj: code/host/work.o is missing. Export the function again.",
    ),
    # export/loader
    FolderRow(
        lambda folder: exported(folder)(np.ones(4)),
        ArgumentError,
        "double: x is 4 float64, expected 3 float64. A loaded function records nothing, and this one has "
        "1 exported trace (.signature). Call the original function with these arguments, and export it "
        "again.",
    ),
    FolderRow(
        lambda folder: exported(folder)(V, V),
        ArgumentError,
        "double: the arguments have a different structure from the exported ones. Not expected: argument "
        "2. A loaded function records nothing, and this one has 1 exported trace (.signature). Call the "
        "original function with these arguments, and export it again.",
    ),
    FolderRow(
        lambda folder: tj.dlaccelerate(exported(folder))(V),
        TraceError,
        "double is a loaded function, which cannot be recorded inside an accelerated function. Call it "
        "outside, and pass its result.",
    ),
    FolderRow(
        lambda folder: tj.dlfeval(exported(folder), V),
        TraceError,
        "double is a loaded function, which has no derivative, and x is traced by dlfeval. Call it "
        "outside dlfeval, or with extractdata(...) of the argument.",
    ),
    # store/kernels
    FolderRow(
        kernels_that_cannot_be_kept,
        CacheWarning,
        "compiled kernels are not kept in <folder>/cache, because it cannot be written (Not a directory). "
        "Each process compiles them again. Set TRACEJIT_CACHE_DIR to a folder of your own, or "
        "TRACEJIT_CACHE=off.",
    ),
    # cache, commands and store
    FolderRow(
        lambda folder: tj.cache.pack(pipe(folder / "pipe")),
        CacheError,
        "<folder>/pipe is not an ordinary file; give the path of one",
    ),
    FolderRow(
        lambda folder: tj.cache.unpack(pipe(folder / "pipe")),
        CacheError,
        "<folder>/pipe is not an ordinary file; give the path of one",
    ),
    FolderRow(
        lambda folder: with_setting("cache_mib", 0, lambda: unpack(folder, one(NAME, GOOD))),
        CacheError,
        "<folder>/cache.tar has 322 bytes of kernels, more than the limit of 0 bytes; raise "
        "TRACEJIT_CACHE_MIB",
    ),
    FolderRow(
        lambda folder: (open_to_all(filled()), unpack(folder, one(NAME, GOOD))),
        CacheError,
        "the cache in <cache> cannot be written: other users may write to the folder <cache> (mode 777)",
    ),
    FolderRow(
        lambda folder: in_read_only_folder(tj.cache.purge),
        CacheError,
        "files of the cache in <cache> cannot be removed: Read-only file system; some may have been",
    ),
    FolderRow(
        lambda folder: in_read_only_folder(lambda: run("cache remove alone")),
        CacheError,
        "files of the cache in <cache> cannot be removed: Read-only file system; some may have been",
    ),
    FolderRow(
        lambda folder: show_compiled(lambda x: (x * 7 + 3) / 5, "--kernel multiply"),
        CacheError,
        "the program has no kernel 'multiply'; it has <kernel>",
    ),
    FolderRow(
        lambda folder: show_compiled(lambda x: tj.exp(x) - x * x, "--llvm", "def {}(args):\n    nothing()\n"),
        CommandError,
        "<kernel> cannot be compiled: a different version of tracejit emitted it",
    ),
    FolderRow(
        lambda folder: show_compiled(lambda x: tj.sin(x) - x / 3, "--asm", "def"),
        CommandError,
        "<kernel>: its source is not Python; it is not compiled, as that could run it",
    ),
    FolderRow(
        lambda folder: show_compiled(lambda x: tj.cos(x) - x / 3, "--asm", "raise SystemExit"),
        CommandError,
        "<kernel>: its source is not the definition of this one function; it is not compiled, as that could run it",
    ),
    FolderRow(
        lambda folder: show_compiled(
            lambda x: tj.tanh(x) - x / 3, "--asm", "@exit\ndef {}(args):\n    pass\n"
        ),
        CommandError,
        "<kernel>: its source has more than names as parameters, or a decorator; it is not compiled, as that could "
        "run it",
    ),
    FolderRow(
        lambda folder: show_compiled(lambda x: tj.log(x) - x / 3, "--asm", "def {}(args):\n    import os\n"),
        CommandError,
        "<kernel>: its source has 'import os', which no kernel has; it is not compiled, as that could run it",
    ),
    FolderRow(
        lambda folder: without_module("shtab", lambda: run("completion bash")),
        CommandError,
        'shtab is not installed; run: pip install "tracejit[cli]"',
    ),
    FolderRow(
        lambda folder: without_module("tqdm", lambda: run("demo")),
        CommandError,
        'tqdm is not installed; run: pip install "tracejit[demo]"',
    ),
    FolderRow(
        lambda folder: run("demo --epochs none"),
        UsageError,
        "argument --epochs: expected a positive integer, not 'none'",
    ),
    FolderRow(
        lambda folder: look_up_kernel(open_to_all),
        CacheWarning,
        "compiled kernels are not kept in <cache>, because other users may write to the folder <cache> "
        "(mode 777). Each process compiles them again. Set TRACEJIT_CACHE_DIR to a folder of your own, "
        "or TRACEJIT_CACHE=off.",
    ),
    FolderRow(
        lambda folder: keep_kernel(link),
        CacheWarning,
        "compiled kernels are not kept in <cache>, because the folder <cache> is a link. Each process "
        "compiles them again. Set TRACEJIT_CACHE_DIR to a folder of your own, or TRACEJIT_CACHE=off.",
    ),
    FolderRow(
        lambda folder: keep_kernel(file_instead),
        CacheWarning,
        "compiled kernels are not kept in <cache>, because it cannot be written (Not a directory). Each "
        "process compiles them again. Set TRACEJIT_CACHE_DIR to a folder of your own, or "
        "TRACEJIT_CACHE=off.",
    ),
    FolderRow(
        lambda folder: show_compiled(tj.exp, f"--out {folder}/none/page.html", command="view"),
        CommandError,
        "cannot write to <folder>/none/page.html: No such file or directory",
    ),
    # export
    FolderRow(
        lambda folder: tj.export(once(tj.dlaccelerate(lambda x: x - 4)), folder / "f"),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64: no second recording has confirmed a "
        "trace. Call the function with the same values again, or set confirm = 0. Or export the traces "
        "for other arguments only: export(function, path, args=(...)).",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x: x, enabled=False), folder / "f", args=(V,)),
        ExportError,
        "export: calls with these arguments are not replayed. Set its option enabled to True.",
    ),
    FolderRow(
        lambda folder: tj.export(changed_closure(), folder / "f"),
        ExportError,
        "export: changed_closure.<locals>.<lambda>, for x: 3 float64: its trace no longer applies, "
        "because closure rate is no longer 0.5. Call the function again. Or export the traces for other "
        "arguments only: export(function, path, args=(...)).",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda p: p.x), folder / "f", args=(PAIR(V),)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for p.x: 3 float64: the arguments hold a "
        "local_class.<locals>.Pair, a class that is defined in a function, so that no other process "
        "finds it by name. Arguments and results of an exported function are arrays, numbers, strings, "
        "None, dtypes and containers of these. Bind other objects inside the function, or in a lambda "
        "around it.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x: (x, PAIR(x))), folder / "f", args=(V,)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64: the result holds a "
        "local_class.<locals>.Pair, a class that is defined in a function, so that no other process "
        "finds it by name. Arguments and results of an exported function are arrays, numbers, strings, "
        "None, dtypes and containers of these. Bind other objects inside the function, or in a lambda "
        "around it.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x, n: x), folder / "f", args=(V, (10**5000,))),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64, n[0]: <int without repr: ValueError>: "
        "n[0] is an int with more digits than Python converts to text. Arguments and results of an "
        "exported function are arrays, numbers, strings, None, dtypes and containers of these. Bind "
        "other objects inside the function, or in a lambda around it.",
    ),
    FolderRow(
        lambda folder: (tj.export(branching(), folder / "f", args=(V,)), tj.load(folder / "f")(-V)),
        RetraceError,
        "branching.<locals>.<lambda>: the values of the arguments lead to a branch that no exported "
        "trace has; the exported traces hold where bool() at <place> is True. A loaded function records "
        "nothing, and this one has 1 exported trace (.signature). Call the original function with these "
        "arguments, and export it again.",
    ),
    FolderRow(
        lambda folder: (
            tj.export(tj.dlaccelerate(add_to), folder / "f", args=(V, 2 * V)),
            tj.load(folder / "f")(V, V),
        ),
        WriteError,
        "add_to: it writes array; one of them is read-only, or shares memory with another argument, which no exported "
        "trace can follow. Pass a copy.",
    ),
    FolderRow(
        lambda folder: tj.load(after(folder, "manifest.json", damaged_exports.link)),
        ExportError,
        "load: <folder>/f: manifest.json cannot be read (Too many levels of symbolic links).",
    ),
    FolderRow(
        lambda folder: tj.load(after(folder, "code", damaged_exports.link)),
        ExportError,
        "load: <folder>/f is not loaded, because the folder <folder>/f/code is a link. The folder runs "
        "as code. Own it, and let nobody else write to it; or, if you trust everybody who may write to "
        "it, use load(path, shared=True). Instead of a link, give the path of its target.",
    ),
    FolderRow(
        lambda folder: tj.load(after(folder, "manifest.json", damaged_exports.pipe)),
        ExportError,
        "load: <folder>/f is not loaded, because the file manifest.json is not an ordinary file. The "
        "folder runs as code. Own it, and let nobody else write to it; or, if you trust everybody who "
        "may write to it, use load(path, shared=True). Instead of a link, give the path of its target.",
    ),
    FolderRow(
        lambda folder: tj.load(after(folder, "manifest.json", open_to_all)),
        ExportError,
        "load: <folder>/f is not loaded, because other users may write to the file manifest.json (mode "
        "777). The folder runs as code. Own it, and let nobody else write to it; or, if you trust "
        "everybody who may write to it, use load(path, shared=True). Instead of a link, give the path of"
        " its target.",
    ),
    FolderRow(
        lambda folder: tj.load(written(folder / "text", b"")),
        ExportError,
        "load: <folder>/text: manifest.sha256 cannot be read (Not a directory).",
    ),
    FolderRow(
        lambda folder: tj.dlfeval(lambda x: tj.export(double, folder / "f", args=(V,)), V),
        ExportError,
        "export: a function cannot be exported while dlfeval or an accelerated function runs; call "
        "export() afterwards.",
    ),
    *(
        FolderRow(lambda folder, change=damage.change: load_damaged(folder, change), ExportError, damage.text)
        for damage in damaged_exports.DAMAGES
    ),
    *(
        FolderRow(lambda folder, content=archive.content: unpack(folder, content), CacheError, archive.text)
        for archive in ARCHIVES
    ),
    *(
        FolderRow(lambda folder, command=command: run_prepared(*command[:2]), command.error, command.text)
        for command in COMMANDS
    ),
)
