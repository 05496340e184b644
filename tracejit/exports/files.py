# SPDX-License-Identifier: BSD-3-Clause
"""The files of an exported folder: written whole or not at all, and used only if every byte is as it was written.

Note [exported folders]

    step.tj/
      manifest.json             the function, its traces and targets; size and hash of each file below
      manifest.sha256           hash of the manifest, as sha256sum writes it
      programs/vectors-64/      for vectors of 64 bytes, for each trace:
        trace-0.json            the program: kernels, rows, memory
        trace-0.py              its emitted source, as source() shows it
      constants/<hash>.npy      arrays
      code/<cpu>/<name>.o       object code of each kernel and of the executor

For GPUs the programs are in programs/cuda, and the code of each kernel in code/cuda-<capability>/<name>.cubin, or .ptx.

A file is used only if its size and hash are those in the manifest, and the manifest's hash is that in manifest.sha256.
That finds damage. It does not tell who made the folder, and the folder runs as code. So the folder, each file and each
folder in it must belong to this user or the administrator, be writable by nobody else, and be no link (Note
[folders]). Each file is read once, and the bytes that were hashed are the bytes that are used.
"""

import io
import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from tracejit.aval import FLOAT16, SUPPORTED_DTYPES
from tracejit.errors import CacheError, ExportError
from tracejit.store.folder import Folder, RefusedError
from tracejit.util.files import WRITE_NEW, hash_of, rename
from tracejit.util.named_tuples import NamedTuple

FORMAT = 1
MANIFEST, HASH = "manifest.json", "manifest.sha256"
_KIND = "tracejit export"
_MOST_MANIFEST_BYTES = 1 << 26
_MOST_FILE_BYTES = 1 << 36
_NAME = re.compile(
    r"programs/(?:vectors-(?:16|32|64)|cuda)/trace-[0-9]{1,6}\.(?:json|py)"
    r"|constants/[0-9a-f]{64}\.npy"
    r"|code/(?:host|x86-64(?:-v[234])?)/[A-Za-z0-9_]{1,200}\.o"
    r"|code/cuda-[0-9]{1,2}\.[0-9]/[A-Za-z0-9_]{1,200}\.(?:cubin|ptx)"
)
_DIGITS = re.compile(r"[0-9a-f]{64}")
_ATTEMPTS = 20  # while other processes replace the folder
_AGAIN = "Export the function again."


class Content(NamedTuple):
    """The content of a folder: the manifest, its hash, and the other files by name."""

    manifest: dict[str, Any]
    sha256: str
    files: dict[str, bytes]


def encode_array(array: np.ndarray) -> bytes:
    """Return an array as the content of a .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(
        stream, np.ascontiguousarray(array).reshape(array.shape), (1, 0), allow_pickle=False
    )
    return stream.getvalue()


def decode_array(content: bytes) -> np.ndarray:
    """Return the array of a .npy file, of numbers and without pickles.

    Raises:
        ValueError: for any other content.
    """
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an unsupported version of the .npy format")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if by_columns or (dtype not in SUPPORTED_DTYPES and dtype != FLOAT16 and dtype.kind != "c"):
        raise ValueError(f"an array of {dtype}")
    rest = content[stream.tell() :]
    if any(size < 0 for size in shape) or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(rest):
        raise ValueError("an array whose size is not that in its header")
    return np.frombuffer(rest, dtype).reshape(shape).copy()


def write(path: str, manifest: Mapping[str, Any], files: Mapping[str, bytes], replace: bool) -> str:
    """Write a folder aside and put it in place; return the hash of the manifest.

    Args:
        path: of the folder.
        manifest: without the list of the files.
        files: the other files by name.
        replace: whether an existing exported folder is replaced.

    Raises:
        ExportError: if the path exists and may not be replaced, or cannot be written.
    """
    path = os.path.abspath(path)
    complete = {"kind": _KIND, "format": FORMAT, **manifest}
    complete["files"] = {name: [len(content), hash_of(content)] for name, content in sorted(files.items())}
    content = json.dumps(complete, indent=1, allow_nan=False).encode()
    sha256 = hash_of(content)
    whole = {**files, MANIFEST: content, HASH: f"{sha256}  {MANIFEST}\n".encode()}
    aside = f"{path}.new-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        _check_place(path, replace)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            for name, data in whole.items():
                _write(aside, name, data)
            _put(aside, path, replace)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise ExportError(f"export: {path} cannot be written ({error.strerror or error}).") from error
    return sha256


def _check_place(path: str, replace: bool) -> None:
    if not os.path.lexists(path):
        return
    if not replace:
        raise ExportError(f"export: {path} exists already; give a different path, or replace=True.")
    is_exported = os.path.isfile(os.path.join(path, HASH)) and not os.path.islink(path)
    # A process that replaces the folder may have moved it aside since.
    if not is_exported and os.path.lexists(path):
        raise ExportError(
            f"export: {path} exists and is not an exported folder, so it is not replaced; give a different path."
        )


def _write(folder: str, name: str, content: bytes) -> None:
    # Everybody may read it if the umask allows that. Nobody else may write to it: load() would refuse such a folder.
    *steps, file = name.split("/")
    for i in range(len(steps) + 1):
        with suppress(FileExistsError):
            os.mkdir(os.path.join(folder, *steps[:i]), 0o755)
    path = os.path.join(folder, *steps, file)
    with os.fdopen(os.open(path, WRITE_NEW, 0o644), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _put(aside: str, path: str, replace: bool) -> None:
    old = f"{aside}-old"
    attempts = _ATTEMPTS if replace else 1
    try:
        while True:
            if replace:
                with suppress(FileNotFoundError):
                    rename(path, old)
            try:
                rename(aside, path)
                break
            except OSError:
                attempts -= 1
                if not attempts or not os.path.lexists(path):
                    raise
                shutil.rmtree(old, ignore_errors=True)  # a different process has replaced the folder
    except BaseException:  # restores the old folder after an interrupt too
        with suppress(OSError):
            rename(old, path)
        raise
    finally:
        if os.path.lexists(path):
            shutil.rmtree(old, ignore_errors=True)


def read(path: str, shared: bool, sha256: str | None = None) -> Content:
    """Return the content of an exported folder, all of it from one export, also while the folder is being replaced.

    Args:
        path: of the folder.
        shared: skips the check of owners and modes.
        sha256: the expected hash of the manifest, or None.

    Raises:
        ExportError: if it is not as it was written, or is not to be trusted.
    """
    path = os.path.abspath(path)
    attempts = _ATTEMPTS
    while True:
        before = _identity(path)
        try:
            return _read_all(path, shared, sha256)
        except ExportError:
            attempts -= 1
            if not attempts or (_identity(path) == before and not _is_away(path)):
                raise


def _is_away(path: str) -> bool:
    """Return whether a folder was moved aside for the one that is about to replace it."""
    name = re.escape(os.path.basename(path))
    with suppress(OSError, ValueError):
        if not os.path.lexists(path):
            return any(map(re.compile(rf"{name}\.new-.*-old").fullmatch, os.listdir(os.path.dirname(path))))
    return False


def _identity(path: str) -> tuple[int, ...] | None:
    """Return what distinguishes a folder from one that replaces it, None if there is no folder."""
    with suppress(OSError, ValueError):
        status = os.lstat(path)
        return (status.st_dev, status.st_ino, status.st_mtime_ns)
    return None


def _read_all(path: str, shared: bool, sha256: str | None) -> Content:
    digits = _read(path, HASH, shared, 1 << 10)
    content = _read(path, MANIFEST, shared, _MOST_MANIFEST_BYTES)
    digest = hash_of(content)
    if digits != f"{digest}  {MANIFEST}\n".encode():
        raise ExportError(f"load: {path}: {MANIFEST} does not agree with {HASH}. {_AGAIN}")
    if sha256 is not None and sha256 != digest:
        raise ExportError(f"load: {path}: the hash of {MANIFEST} is {digest}, expected {sha256}.")
    manifest = _manifest(path, content)
    files: dict[str, bytes] = {}
    for name, record in manifest["files"].items():
        size, expected = _size_and_hash(path, name, record)
        files[name] = _read(path, name, shared, size)
        if len(files[name]) != size or hash_of(files[name]) != expected:
            raise ExportError(f"load: {path}: {name} does not agree with its hash in {MANIFEST}. {_AGAIN}")
    return Content(manifest, digest, files)


def _manifest(path: str, content: bytes) -> dict[str, Any]:
    manifest = parse(path, MANIFEST, content)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ExportError(f"load: {path} is not an exported folder: export() did not write its {MANIFEST}.")
    if manifest.get("format") != FORMAT:
        raise ExportError(
            f"load: {path} has format {manifest.get('format')!r:.40}, this version of tracejit reads {FORMAT}. {_AGAIN}"
        )
    if not isinstance(manifest.get("files"), dict):
        raise ExportError(f"load: {path}: {MANIFEST} has no list of files. {_AGAIN}")
    return manifest


def parse(path: str, name: str, content: bytes) -> Any:
    """Return the value in a JSON file.

    Raises:
        ExportError: if it cannot be read.
    """

    def refuse(text: str) -> Any:
        raise ValueError(text)

    try:
        return json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"load: {path}: {name} cannot be read ({str(error)[:80]}). {_AGAIN}") from None


def _size_and_hash(path: str, name: str, record: Any) -> tuple[int, str]:
    if not _NAME.fullmatch(name):
        raise ExportError(
            f"load: {path}: {MANIFEST} names {name!r:.100}, which no exported folder has. {_AGAIN}"
        )
    fits = (
        isinstance(record, list)
        and len(record) == 2
        and type(record[0]) is int
        and isinstance(record[1], str)
    )
    if not fits or not 0 <= record[0] <= _MOST_FILE_BYTES or not _DIGITS.fullmatch(record[1]):
        raise ExportError(f"load: {path}: {MANIFEST} has no size and hash of {name}. {_AGAIN}")
    return record[0], record[1]


def _read(path: str, name: str, shared: bool, most: int) -> bytes:
    folder, _, file = name.rpartition("/")
    try:
        content = Folder(path, folder, shared, of_root=True).read(file, use=False, most=most)
    except RefusedError as refused:
        raise ExportError(f"load: {path} is not loaded, because {refused}. {_TRUST}") from None
    except CacheError as error:
        if "too large" in str(error):
            limit = f"{most} bytes" if name in (MANIFEST, HASH) else f"{MANIFEST} says"
            raise ExportError(f"load: {path}: {name} is larger than {limit}. {_AGAIN}") from None
        raise ExportError(f"load: {path} is not loaded, because {error}. {_TRUST}") from None
    except OSError as error:
        raise ExportError(f"load: {path}: {name} cannot be read ({error.strerror or error}).") from error
    if content is None:
        if not os.path.lexists(path):
            raise ExportError(f"load: {path} does not exist. Give the path of a folder that export() wrote.")
        if name in (MANIFEST, HASH):
            raise ExportError(
                f"load: {path} is not an exported folder: it has no {name}. Give the path of a folder that export() "
                "wrote."
            )
        raise ExportError(f"load: {path}: {name} is missing. {_AGAIN}")
    return content


_TRUST = (
    "The folder runs as code. Own it, and let nobody else write to it; or, if you trust everybody who may write to it, "
    "use load(path, shared=True). Instead of a link, give the path of its target."
)
