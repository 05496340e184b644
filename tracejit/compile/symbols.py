# SPDX-License-Identifier: BSD-3-Clause
"""The symbols of an object file, which are checked because LLVM ends the process if one that the file needs is missing.

LLVM writes the format of the system: ELF on Linux, Mach-O on macOS, COFF on Windows. Names are those of C; Mach-O adds
an underscore.
"""

import platform
import struct
import sys
from collections.abc import Callable, Iterator

from tracejit.errors import CodegenError
from tracejit.util.named_tuples import NamedTuple


class SymbolTable(NamedTuple):
    """The functions that a file exports, and the symbols that it takes from the process."""

    functions: frozenset[str]
    missing: frozenset[str]


class _Symbol(NamedTuple):
    """A symbol that is not local to its file; whether the file defines it, and as a function."""

    name: bytes
    is_defined: bool
    is_function: bool = False


def symbols(code: bytes, system: str = sys.platform, cpu: str | None = None) -> SymbolTable:
    """Return the symbols of an object file.

    Args:
        code: the content of the file.
        system: what the file is for: a name as in sys.platform.
        cpu: what the file is for: a name as in platform.machine(), by default the CPU of this machine.

    Raises:
        CodegenError: if the bytes are no object file for that system and CPU.
    """
    read = _READERS.get(system, _elf)
    try:
        entries = list(read(code, (cpu or platform.machine()).lower()))
        functions = {symbol.name.decode() for symbol in entries if symbol.is_function}
        missing = {symbol.name.decode() for symbol in entries if not symbol.is_defined}
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise CodegenError(f"not an object file that can be loaded here ({error})") from None
    if read is _mach_o:
        functions, missing = ({name.removeprefix("_") for name in names} for names in (functions, missing))
    return SymbolTable(frozenset(functions), frozenset(missing - _MARKS))


_MARKS = {
    "_fltused"
}  # asks the linker of Windows for nothing but its support of floats; no code refers to it


def _check_cpu(number: int, numbers: dict[str, int], cpu: str) -> None:
    if number != numbers.get(cpu, number):
        raise ValueError("it is for a different kind of CPU")


_ELF = b"\x7fELF\x02\x01\x01"  # 64 bits, the lowest byte first
_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_ELF_SECTION = struct.Struct("<IIQQQQIIQQ")
_ELF_SYMBOL = struct.Struct("<IBBHQQ")
_ELF_SYMBOLS, _ELF_FUNCTION, _ELF_GLOBAL = 2, 2, 1
_ELF_CPUS = {"x86_64": 62, "aarch64": 183}


def _elf(code: bytes, cpu: str) -> Iterator[_Symbol]:
    if not code.startswith(_ELF):
        raise ValueError("it is not an ELF file of 64 bits")
    _, _, machine, _, _, _, at, _, _, _, _, size, count, _ = _ELF_HEADER.unpack_from(code)
    _check_cpu(machine, _ELF_CPUS, cpu)
    if size != _ELF_SECTION.size:
        raise ValueError("its sections have an unknown size")
    sections = [_ELF_SECTION.unpack_from(code, at + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link, _, _, _ in sections:
        if kind != _ELF_SYMBOLS:
            continue
        _, _, _, _, first, extent, *_ = sections[link]
        text = code[first : first + extent]
        for name, info, _, section, _, _ in _ELF_SYMBOL.iter_unpack(code[start : start + length]):
            if info >> 4 and name:  # not local
                is_function = info & 15 == _ELF_FUNCTION and info >> 4 == _ELF_GLOBAL
                yield _Symbol(_terminated(text, name), section != 0, section != 0 and is_function)


_MACH_O = b"\xcf\xfa\xed\xfe"  # 64 bits, the lowest byte first
_MACH_O_HEADER = struct.Struct("<8I")
_MACH_O_COMMAND = struct.Struct("<II")
_MACH_O_SEGMENT = struct.Struct("<16s4QII2I")  # after the command
_MACH_O_SECTION = struct.Struct("<16s16sQQ8I")
_MACH_O_TABLE = struct.Struct("<4I")  # after the command
_MACH_O_SYMBOL = struct.Struct("<IBBHQ")
_MACH_O_SEGMENTS, _MACH_O_SYMBOLS = 0x19, 0x2
_MACH_O_DEBUGS, _MACH_O_KIND, _MACH_O_HIDDEN, _MACH_O_GLOBAL = 0xE0, 0x0E, 0x10, 0x01
_MACH_O_INSTRUCTIONS = 0x80000000
_MACH_O_CPUS = {"x86_64": 0x01000007, "arm64": 0x0100000C}


def _mach_o(code: bytes, cpu: str) -> Iterator[_Symbol]:
    if not code.startswith(_MACH_O):
        raise ValueError("it is not a Mach-O file of 64 bits")
    _, machine, _, _, count, _, _, _ = _MACH_O_HEADER.unpack_from(code)
    _check_cpu(machine, _MACH_O_CPUS, cpu)
    at = _MACH_O_HEADER.size
    flags: list[int] = []  # of the sections
    entries: list[tuple[bytes, int, int]] = []
    for _ in range(count):
        command, size = _MACH_O_COMMAND.unpack_from(code, at)
        body = at + _MACH_O_COMMAND.size
        if command == _MACH_O_SEGMENTS:
            *_, sections, _ = _MACH_O_SEGMENT.unpack_from(code, body)
            first = body + _MACH_O_SEGMENT.size
            size_of_one = _MACH_O_SECTION.size
            flags += [_MACH_O_SECTION.unpack_from(code, first + i * size_of_one)[8] for i in range(sections)]
        elif command == _MACH_O_SYMBOLS:
            start, symbols, first, extent = _MACH_O_TABLE.unpack_from(code, body)
            text = code[first : first + extent]
            table = code[start : start + symbols * _MACH_O_SYMBOL.size]
            entries += [
                (_terminated(text, name), info, section)
                for name, info, section, _, _ in _MACH_O_SYMBOL.iter_unpack(table)
                if info & _MACH_O_GLOBAL and not info & (_MACH_O_DEBUGS | _MACH_O_HIDDEN)
            ]
        at += max(size, _MACH_O_COMMAND.size)
    for name, info, section in entries:
        is_defined = info & _MACH_O_KIND != 0
        yield _Symbol(name, is_defined, is_defined and flags[section - 1] & _MACH_O_INSTRUCTIONS != 0)


_COFF_HEADER = struct.Struct("<HHIIIHH")
_COFF_SYMBOL = struct.Struct("<8sIhHBB")
_COFF_FUNCTION, _COFF_GLOBAL = 0x20, 2
_COFF_CPUS = {"amd64": 0x8664, "x86_64": 0x8664, "arm64": 0xAA64}


def _coff(code: bytes, cpu: str) -> Iterator[_Symbol]:
    machine, _, _, start, count, more, _ = _COFF_HEADER.unpack_from(code)
    if machine not in _COFF_CPUS.values() or more:
        raise ValueError("it is not a COFF file of 64 bits")
    _check_cpu(machine, _COFF_CPUS, cpu)
    text = code[start + count * _COFF_SYMBOL.size :]
    skipped = 0
    for i in range(count):
        name, _, section, kind, storage, others = _COFF_SYMBOL.unpack_from(
            code, start + i * _COFF_SYMBOL.size
        )
        if skipped:
            skipped -= 1
            continue
        skipped = others
        if storage == _COFF_GLOBAL:
            if not name.startswith(bytes(4)):
                name = name.rstrip(b"\0")
            else:  # a longer one, in the table of texts
                name = _terminated(text, int.from_bytes(name[4:], "little"))
            yield _Symbol(name, section != 0, section > 0 and kind == _COFF_FUNCTION)


_READERS: dict[str, Callable[[bytes, str], Iterator[_Symbol]]] = {"darwin": _mach_o, "win32": _coff}


def _terminated(text: bytes, at: int) -> bytes:
    return text[at : text.index(b"\0", at)]
