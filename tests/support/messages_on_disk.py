# SPDX-License-Identifier: BSD-3-Clause
"""The second part of the table of messages: errors about files, and how to provoke them in a folder of one's own."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from messages import V, counting

import tracejit as tj
from tracejit import config
from tracejit.errors import ArgumentError, CacheError, CacheWarning, ExportError, TraceError, TraceJitWarning


class FolderRow(NamedTuple):
    """A message: a call that meets it in a folder, the type of the error, and its text with names for what varies."""

    provoke: Callable[[Path], object]
    error: type[Exception]
    text: str


def met(row: FolderRow, folder: Path) -> tuple[type[Exception] | None, str]:
    """Return the type and the text of the error that the call of a row raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceJitWarning)
            row.provoke(folder)
    except Exception as error:
        text = re.sub(r"\b[0-9a-f]{64}\b", "<hash>", str(error).replace(str(folder), "<folder>"))
        return type(error), re.sub(r"[^ ]*\bmessages[a-z_]*\.py:\d+", "<place>", text)
    return None, ""


@tj.dlaccelerate
def double(x: Any) -> Any:
    return x * 2


def draws(generator: tj.Generator) -> tj.AcceleratedFunction:
    """Return a function that draws from a generator."""
    return tj.dlaccelerate(lambda x: x + tj.rand(3, generator=generator))


def plus(array: np.ndarray) -> tj.AcceleratedFunction:
    """Return a function that captures an array."""
    return tj.dlaccelerate(lambda x: x + array)


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


def without_cache(call: Callable[[], object]) -> object:
    """Return what a call gives with TRACEJIT_CACHE=off."""
    kept, config.settings.cache = config.settings.cache, "off"
    try:
        return call()
    finally:
        config.settings.cache = kept


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


ROWS: tuple[FolderRow, ...] = (
    # cache/archive
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
        lambda folder: without_cache(lambda: tj.cache.unpack(packed(folder))),
        CacheError,
        "there is no cache to unpack into: TRACEJIT_CACHE=off",
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
        "there is no column 'colour' to sort by; there are key, function, where, target, kernels, size, "
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
        "export: expected an accelerated function, not builtin_function_or_method.",
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
        "export: cpus: expected 'host', 'x86-64-v4', 'x86-64-v3', 'x86-64-v2', 'x86-64', not 'i386'.",
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
        lambda folder: tj.export(draws(tj.Generator(1)), folder / "f", args=(V,)),
        ExportError,
        "export: draws.<locals>.<lambda>, for x: 3 float64: it draws random numbers from <Generator with "
        "seed 1>, which a loaded function does not have. Draw from the default generator, which rng() "
        "seeds, or pass random numbers as an argument.",
    ),
    FolderRow(
        lambda folder: tj.export(plus(np.ones(3)), folder / "f", args=(V,)),
        ExportError,
        "export: plus.<locals>.<lambda>, for x: 3 float64: it captures arrays: closure array. Pass them "
        'as arguments, or export their current contents as constants: export(..., captured="constants").',
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x, y: x), folder / "f", args=(V, abs)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64, y: <built-in function abs>: y is a "
        "builtins.builtin_function_or_method, which is known by its identity only. Arguments and results "
        "of an exported function are arrays, numbers, strings, None, dtypes and containers of these. Bind "
        "other objects inside the function, or in a lambda around it.",
    ),
    FolderRow(
        lambda folder: tj.export(tj.dlaccelerate(lambda x: (x, abs)), folder / "f", args=(V,)),
        ExportError,
        "export: <lambda>.<locals>.<lambda>, for x: 3 float64: the result[1] is a "
        "builtins.builtin_function_or_method, which is known by its identity only. Arguments and results "
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
        "export: <folder> exists and is no exported folder, so it is not replaced; give a different path.",
    ),
    FolderRow(
        lambda folder: tj.export(double, Path(written(folder / "text", b"")) / "f", args=(V,)),
        ExportError,
        "export: <folder>/text/f cannot be written (File exists).",
    ),
    FolderRow(
        lambda folder: tj.load(folder / "none"),
        ExportError,
        "load: <folder>/none is no exported folder: there is no manifest.sha256.",
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
)
