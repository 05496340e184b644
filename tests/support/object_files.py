# SPDX-License-Identifier: BSD-3-Clause
"""Small object files of the three formats, written by hand after their specifications; and their relocations."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LOCAL, GLOBAL, WEAK = 0, 1, 2  # the bindings of ELF


class Named(NamedTuple):
    """A symbol of a file: in its section of code or of data, or in none, as one that the file takes from elsewhere."""

    name: str
    where: str = "code"  # "code", "data" or "elsewhere"
    is_local: bool = False


def _texts(names: Sequence[str], before: bytes) -> tuple[bytes, list[int]]:
    """Return a table of texts and the place of each name in it."""
    text, places = before, []
    for name in names:
        places.append(len(text))
        text += name.encode() + b"\0"
    return text, places


def elf(symbols: Sequence[Named], machine: int = 62) -> bytes:
    """Return an ELF file of 64 bits; after the empty section come code, data, symbols and their names."""
    text, places = _texts([symbol.name for symbol in symbols], b"\0")
    table = bytes(24)
    for symbol, place in zip(symbols, places, strict=True):
        kind = {"code": 2, "data": 1, "elsewhere": 0}[symbol.where]
        section = {"code": 1, "data": 2, "elsewhere": 0}[symbol.where]
        info = (LOCAL if symbol.is_local else GLOBAL) << 4 | kind
        table += struct.pack("<IBBHQQ", place, info, 0, section, 0, 0)
    start, first = 64, 64 + len(table)
    sections = [
        (0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0),
        (2, start, len(table), 4, 24), (3, first, len(text), 0, 0),
    ]  # fmt: skip
    headers = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, size, link, 0, 1, each)
        for kind, at, size, link, each in sections
    )
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    at = first + len(text)
    head = struct.pack("<16sHHIQQQIHHHHHH", identity, 1, machine, 1, 0, 0, at, 0, 64, 0, 0, 64, 5, 4)
    return head + table + text + headers


def mach_o(symbols: Sequence[Named], cpu: int = 0x01000007) -> bytes:
    """Return a Mach-O file with a segment of code and data, and symbols; an underscore comes before each name."""
    text, places = _texts([f"_{symbol.name}" for symbol in symbols], b"\0")
    code = struct.pack("<16s16sQQ8I", b"__text", b"__TEXT", 0, 0, 0, 0, 0, 0, 0x80000400, 0, 0, 0)
    data = struct.pack("<16s16sQQ8I", b"__const", b"__DATA", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    segment = struct.pack("<II16s4QII2I", 0x19, 72 + 160, b"", 0, 0, 0, 0, 7, 7, 2, 0) + code + data
    other = struct.pack("<IIII", 0x32, 16, 0, 0)  # a command without a meaning here
    start = 32 + len(segment) + len(other) + 24
    table = b""
    for symbol, place in zip(symbols, places, strict=True):
        kind = 0 if symbol.where == "elsewhere" else 0x0E
        section = {"code": 1, "data": 2, "elsewhere": 0}[symbol.where]
        table += struct.pack("<IBBHQ", place, kind | (not symbol.is_local), section, 0, 0)
    command = struct.pack("<6I", 2, 24, start, len(symbols), start + len(table), len(text))
    commands = segment + other + command
    head = struct.pack("<8I", 0xFEEDFACF, cpu, 3, 1, 3, len(commands), 0, 0)
    return head + commands + table + text


def coff(symbols: Sequence[Named], machine: int = 0x8664) -> bytes:
    """Return a COFF file; each local symbol has two auxiliary entries, names of more than 8 bytes lie apart."""
    table, long_names, count = b"", b"", 0
    for symbol in symbols:
        name = symbol.name.encode()
        if len(name) > 8:
            place = 4 + len(long_names)
            long_names += name + b"\0"
            name = struct.pack("<II", 0, place)
        kind = 0x20 if symbol.where == "code" else 0
        section = {"code": 1, "data": 2, "elsewhere": 0}[symbol.where]
        others = 2 if symbol.is_local else 0
        table += struct.pack("<8sIhHBB", name, 0, section, kind, 3 if symbol.is_local else 2, others)
        table += b"auxiliary entry..." * others
        count += 1 + others
    head = struct.pack("<HHIIIHH", machine, 2, 0, 20 + 80, count, 0, 0)
    return head + bytes(80) + table + struct.pack("<I", 4 + len(long_names)) + long_names


def relocations(code: bytes) -> Iterator[int]:
    """Yield the kind of each relocation of an object file, as its format numbers them."""
    if code.startswith(b"\x7fELF"):
        at, size, count = (*struct.unpack_from("<Q", code, 40), *struct.unpack_from("<HH", code, 58))
        for i in range(count):
            _, kind, _, _, start, length, *_ = struct.unpack_from("<IIQQQQIIQQ", code, at + i * size)
            if kind == 4:
                for _, info, _ in struct.iter_unpack("<QQq", code[start : start + length]):
                    yield info & 0xFFFFFFFF
    elif code.startswith(b"\xcf\xfa\xed\xfe"):
        at = 32
        for _ in range(struct.unpack_from("<I", code, 16)[0]):
            command, size = struct.unpack_from("<II", code, at)
            for i in range(struct.unpack_from("<I", code, at + 64)[0] if command == 0x19 else 0):
                start, count = struct.unpack_from("<II", code, at + 72 + 80 * i + 56)
                for _, info in struct.iter_unpack("<iI", code[start : start + 8 * count]):
                    yield info >> 28
            at += size
    else:
        for i in range(struct.unpack_from("<H", code, 2)[0]):
            start, _, count = struct.unpack_from("<IIH", code, 20 + 40 * i + 24)
            for _, _, kind in struct.iter_unpack("<IIH", code[start : start + 10 * count]):
                yield kind
