# SPDX-License-Identifier: BSD-3-Clause
"""The files of an exported folder: written whole or not at all, and read only where every byte is what was written.

Note [exported folders]

    step.tj/
      manifest.json             what the function takes and gives, what it was made of; size and hash of each file below
      manifest.sha256           hash of the manifest, as sha256sum writes it
      programs/vectors-64/      for each trace, for vectors of so many bytes:
        trace-0.json            the program: kernels, rows, memory
        trace-0.py              the same to be read, as source() shows it
      constants/<hash>.npy      arrays
      code/<cpu>/<name>.o       object code of each kernel and of the executor

Nothing in it is used before its size and hash are found to be those of the manifest, and the manifest's that of
manifest.sha256. That finds damage. It does not tell who made the folder: what is in it runs as code. So the folder,
each file and each folder on the way to it must belong to this user or the administrator, be writable by nobody else,
and be no link (Note [folders]). All is read once, and what was read is what is hashed and used.
"""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tracejit.aval import SUPPORTED_DTYPES
from tracejit.errors import CacheError, ExportError
from tracejit.store.folder import Folder, RefusedError

FORMAT = 1
MANIFEST, HASH = "manifest.json", "manifest.sha256"
_KIND = "tracejit export"
_MOST_MANIFEST_BYTES = 1 << 26
_MOST_FILE_BYTES = 1 << 36
_NAME = re.compile(
    r"programs/vectors-(?:16|32|64)/trace-[0-9]{1,6}\.(?:json|py)"
    r"|constants/[0-9a-f]{64}\.npy"
    r"|code/(?:host|x86-64(?:-v[234])?)/[A-Za-z0-9_]{1,200}\.o"
)
_DIGITS = re.compile(r"[0-9a-f]{64}")
_ATTEMPTS = 20  # while other processes replace the folder
_AGAIN = "Export the function again."


class Content(NamedTuple):
    """What a folder holds: the manifest, its hash, and the other files by name."""

    manifest: dict[str, Any]
    sha256: str
    files: dict[str, bytes]


def hash_of(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


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
        ValueError: if the content is something else.
    """
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("another version of the format of .npy files")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if by_columns or (dtype not in SUPPORTED_DTYPES and dtype.kind != "c"):
        raise ValueError(f"an array of {dtype}")
    rest = content[stream.tell() :]
    if any(size < 0 for size in shape) or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(rest):
        raise ValueError("an array of another size than its header says")
    return np.frombuffer(rest, dtype).reshape(shape).copy()


def write(path: str, manifest: Mapping[str, Any], files: Mapping[str, bytes], replace: bool) -> str:
    """Write a folder aside and put it in place; return the hash of the manifest.

    Args:
        path: of the folder.
        manifest: what is said of it, without the list of the files.
        files: the other files by name.
        replace: an exported folder that is there already goes.

    Raises:
        ExportError: if there is something else, or it cannot be written.
    """
    path = os.path.abspath(path)
    told = {"kind": _KIND, "format": FORMAT, **manifest}
    told["files"] = {name: [len(content), hash_of(content)] for name, content in sorted(files.items())}
    content = json.dumps(told, indent=1, allow_nan=False).encode()
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
        raise ExportError(f"export: {path} is there already; give another path, or replace=True.")
    is_one = os.path.isfile(os.path.join(path, HASH)) and not os.path.islink(path)
    if not is_one and os.path.lexists(path):  # another process, which replaces it, may have it out of the way
        raise ExportError(f"export: {path} is no exported folder, and is not replaced; give another path.")


def _write(folder: str, name: str, content: bytes) -> None:
    # For everybody to read, if the umask lets them, but for nobody else to write: such a folder would not be loaded.
    *steps, file = name.split("/")
    for i in range(len(steps) + 1):
        with suppress(FileExistsError):
            os.mkdir(os.path.join(folder, *steps[:i]), 0o755)
    path = os.path.join(folder, *steps, file)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o644), "wb") as stream:
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
                    os.rename(path, old)
            try:
                os.rename(aside, path)
                break
            except OSError:
                attempts -= 1
                if not attempts or not os.path.lexists(path):
                    raise
                shutil.rmtree(old, ignore_errors=True)  # another process has replaced it already
    except BaseException:  # an interrupt too leaves a folder where there was one
        with suppress(OSError):
            os.rename(old, path)
        raise
    finally:
        if os.path.lexists(path):
            shutil.rmtree(old, ignore_errors=True)


def read(path: str, shared: bool, sha256: str | None = None) -> Content:
    """Return what is in an exported folder, all of it of one export: while it is replaced, of the new one.

    Args:
        path: of the folder.
        shared: who owns it and who may write to it is not asked.
        sha256: what the hash of the manifest must be.

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
    """Return whether a folder is out of the way of one that is about to take its place."""
    name = re.escape(os.path.basename(path))
    with suppress(OSError, ValueError):
        if not os.path.lexists(path):
            return any(map(re.compile(rf"{name}\.new-.*-old").fullmatch, os.listdir(os.path.dirname(path))))
    return False


def _identity(path: str) -> tuple[int, ...] | None:
    """Return what tells a folder from another one that takes its place, None if there is none."""
    with suppress(OSError, ValueError):
        status = os.lstat(path)
        return (status.st_dev, status.st_ino, status.st_mtime_ns)
    return None


def _read_all(path: str, shared: bool, sha256: str | None) -> Content:
    digits = _read(path, HASH, shared, 1 << 10)
    content = _read(path, MANIFEST, shared, _MOST_MANIFEST_BYTES)
    found = hash_of(content)
    if digits != f"{found}  {MANIFEST}\n".encode():
        raise ExportError(f"load: {path}: {MANIFEST} does not agree with {HASH}. {_AGAIN}")
    if sha256 is not None and sha256 != found:
        raise ExportError(f"load: {path}: the hash of {MANIFEST} is {found}, expected {sha256}.")
    manifest = _manifest(path, content)
    files: dict[str, bytes] = {}
    for name, told in manifest["files"].items():
        size, digest = _told(path, name, told)
        files[name] = _read(path, name, shared, size)
        if len(files[name]) != size or hash_of(files[name]) != digest:
            raise ExportError(f"load: {path}: {name} does not agree with its hash in {MANIFEST}. {_AGAIN}")
    return Content(manifest, found, files)


def _manifest(path: str, content: bytes) -> dict[str, Any]:
    manifest = parse(path, MANIFEST, content)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ExportError(f"load: {path} is no exported folder: {MANIFEST} is of something else.")
    if manifest.get("format") != FORMAT:
        raise ExportError(
            f"load: {path} has format {manifest.get('format')!r:.40}, this version of tracejit reads {FORMAT}. {_AGAIN}"
        )
    if not isinstance(manifest.get("files"), dict):
        raise ExportError(f"load: {path}: {MANIFEST} lists no files. {_AGAIN}")
    return manifest


def parse(path: str, name: str, content: bytes) -> Any:
    """Return what is in a JSON file.

    Raises:
        ExportError: if it is none.
    """

    def refuse(text: str) -> Any:
        raise ValueError(text)

    try:
        return json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"load: {path}: {name} cannot be read ({str(error)[:80]}). {_AGAIN}") from None


def _told(path: str, name: str, told: Any) -> tuple[int, str]:
    if not _NAME.fullmatch(name):
        raise ExportError(
            f"load: {path}: {MANIFEST} names {name!r:.100}, which no exported folder has. {_AGAIN}"
        )
    fits = isinstance(told, list) and len(told) == 2 and type(told[0]) is int and isinstance(told[1], str)
    if not fits or not 0 <= told[0] <= _MOST_FILE_BYTES or not _DIGITS.fullmatch(told[1]):
        raise ExportError(f"load: {path}: {MANIFEST} has no size and hash of {name}. {_AGAIN}")
    return told[0], told[1]


def _read(path: str, name: str, shared: bool, most: int) -> bytes:
    folder, _, file = name.rpartition("/")
    try:
        content = Folder(path, folder, shared, of_root=True).read(file, use=False, most=most)
    except RefusedError as refused:
        raise ExportError(f"load: {path} is not loaded, because {refused}. {_TRUST}") from None
    except CacheError as error:
        if "too large" in str(error):
            raise ExportError(f"load: {path}: {name} is larger than {MANIFEST} says. {_AGAIN}") from None
        raise ExportError(f"load: {path} is not loaded, because {error}. {_TRUST}") from None
    except OSError as error:
        raise ExportError(f"load: {path}: {name} cannot be read ({error.strerror or error}).") from error
    if content is None:
        if name in (MANIFEST, HASH):
            raise ExportError(f"load: {path} is no exported folder: there is no {name}.")
        raise ExportError(f"load: {path}: {name} is missing. {_AGAIN}")
    return content


_TRUST = (
    "What is in it runs as code. Make it yours and not writable by others, or, if you trust all who may write to it, "
    "load(path, shared=True); give the path that a link leads to."
)
