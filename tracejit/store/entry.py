# SPDX-License-Identifier: BSD-3-Clause
"""A stored kernel as bytes: its key, source and object code, and a hash of all of it.

Note [entries]
An entry is one file. Its first line is ``tracejit entry 1 <sha256 of the rest>``; its second line is a JSON object with
the lengths of what follows: the source as UTF-8, and the object code. Nothing in it is executed or trusted before the
hash matches. The name of the file is the hash of the key parts. The JSON object repeats them, so an entry under a wrong
name is refused.
"""

import hashlib
import json

from tracejit.errors import CacheError
from tracejit.util.named_tuples import NamedTuple

FORMAT = 1
_MAGIC = b"tracejit entry %d " % FORMAT
_HASH_CHARACTERS = 64


class KernelKey(NamedTuple):
    """The key of a kernel: all that its object code depends on, as pairs of a name and a value."""

    parts: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The hash of the parts, in hexadecimal digits."""
        return hashlib.sha256(_json([list(part) for part in self.parts])).hexdigest()


class StoredKernel(NamedTuple):
    """A compiled kernel or int64 function.

    symbol      the name of the function in the object code
    needs       the names that the object code takes from the process
    compile_ns  the time that compiling took
    """

    key: KernelKey
    symbol: str
    needs: tuple[str, ...]
    compile_ns: int
    source: str
    code: bytes


def encode(kernel: StoredKernel) -> bytes:
    """Return a kernel as the content of a file."""
    source = kernel.source.encode()
    header = {
        "key": [list(part) for part in kernel.key.parts],
        "symbol": kernel.symbol,
        "needs": list(kernel.needs),
        "compile_ns": kernel.compile_ns,
        "source_bytes": len(source),
        "code_bytes": len(kernel.code),
    }
    body = b"".join([_json(header), b"\n", source, kernel.code])
    return b"".join([_MAGIC, hashlib.sha256(body).hexdigest().encode(), b"\n", body])


def decode(data: bytes, name: str) -> StoredKernel:
    """Return the kernel in the content of the file `name`.

    Raises:
        CacheError: if the content is not a result of encode() for this name.
    """
    if not data.startswith(b"tracejit entry "):
        raise CacheError("it is not an entry of the cache")
    if not data.startswith(_MAGIC):
        raise CacheError("it was written by a different version of tracejit")
    start = len(_MAGIC) + _HASH_CHARACTERS + 1
    body = data[start:]
    if data[len(_MAGIC) : start] != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise CacheError("its content does not agree with its hash")
    try:
        line, _, rest = body.partition(b"\n")
        header = json.loads(line)
        key = KernelKey(tuple((_text(part), _text(value)) for part, value in header["key"]))
        source_bytes, code_bytes = _count(header["source_bytes"]), _count(header["code_bytes"])
        if len(rest) != source_bytes + code_bytes:
            raise ValueError("lengths")
        kernel = StoredKernel(
            key,
            _text(header["symbol"]),
            tuple(map(_text, header["needs"])),
            _count(header["compile_ns"]),
            rest[:source_bytes].decode(),
            rest[source_bytes:],
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CacheError("its header does not fit its content") from error
    if key.name != name:
        raise CacheError("it belongs to a different key")
    return kernel


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(value)
    return value
