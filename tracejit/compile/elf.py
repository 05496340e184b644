# SPDX-License-Identifier: BSD-3-Clause
"""The symbols of an object file. LLVM ends the process if a symbol that the file needs is missing."""

import platform
import struct
from typing import NamedTuple

from tracejit.errors import CodegenError

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, the lowest byte first
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS, _FUNCTION, _GLOBAL = 2, 2, 1
_MACHINES = {"x86_64": 62, "aarch64": 183}


class SymbolTable(NamedTuple):
    """The functions that a file exports, and the symbols that it takes from the process."""

    functions: frozenset[str]
    missing: frozenset[str]


def symbols(code: bytes) -> SymbolTable:
    """Return the symbols of an object file of this kind of machine.

    Raises:
        CodegenError: if the bytes are not one.
    """
    try:
        if not code.startswith(_IDENTITY):
            raise ValueError("it is not an ELF file of 64 bits")
        _, _, machine, _, _, _, at, _, _, _, _, size, count, _ = _HEADER.unpack_from(code)
        if machine != _MACHINES.get(platform.machine(), machine):
            raise ValueError("it is for a different kind of CPU")
        if size != _SECTION.size:
            raise ValueError("its sections have an unknown size")
        sections = [_SECTION.unpack_from(code, at + i * size) for i in range(count)]
        functions, missing = set(), set()
        for _, kind, _, _, start, length, link, _, _, _ in sections:
            if kind != _SYMBOLS:
                continue
            _, _, _, _, first, extent, *_ = sections[link]
            text = code[first : first + extent]
            for name, info, _, section, _, _ in _SYMBOL.iter_unpack(code[start : start + length]):
                if info >> 4 and name:  # not local
                    symbol = text[name : text.index(b"\0", name)].decode()
                    if section == 0:
                        missing.add(symbol)
                    elif info & 15 == _FUNCTION and info >> 4 == _GLOBAL:
                        functions.add(symbol)
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise CodegenError(f"not an object file that can be loaded here ({error})") from None
    return SymbolTable(frozenset(functions), frozenset(missing))
