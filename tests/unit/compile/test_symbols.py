# SPDX-License-Identifier: BSD-3-Clause
"""The symbols of object files of Linux, macOS and Windows, on any machine."""

import contextlib
import random
from collections.abc import Callable, Sequence

import pytest
from object_files import Named, coff, elf, mach_o

from tracejit.compile.symbols import symbols
from tracejit.errors import CodegenError

Write = Callable[[Sequence[Named]], bytes]
FORMATS = [
    pytest.param(elf, "linux", "x86_64", id="ELF"),
    pytest.param(lambda names: elf(names, 183), "linux", "aarch64", id="ELF-ARM"),
    pytest.param(elf, "freebsd14", "amd64", id="ELF-BSD"),
    pytest.param(mach_o, "darwin", "x86_64", id="Mach-O"),
    pytest.param(lambda names: mach_o(names, 0x0100000C), "darwin", "arm64", id="Mach-O-ARM"),
    pytest.param(coff, "win32", "AMD64", id="COFF"),
    pytest.param(lambda names: coff(names, 0xAA64), "win32", "ARM64", id="COFF-ARM"),
]
NAMES = [
    Named("a_function_with_a_long_name"), Named("f"), Named("12345678"), Named("_hidden", is_local=True),
    Named("constant", "data"), Named("a_constant_with_a_long_name", "data"), Named("rows", "data", is_local=True),
    Named("fmodf", "elsewhere"), Named("a_routine_with_a_long_name", "elsewhere"), Named("__sincos", "elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "system", "cpu"), FORMATS)
def test_functions_and_what_is_missing(write: Write, system: str, cpu: str) -> None:
    found = symbols(write(NAMES), system, cpu)
    assert found.functions == {"a_function_with_a_long_name", "f", "12345678"}
    assert found.missing == {"fmodf", "a_routine_with_a_long_name", "__sincos"}


@pytest.mark.parametrize(("write", "system", "cpu"), FORMATS)
def test_an_empty_table(write: Write, system: str, cpu: str) -> None:
    assert symbols(write([]), system, cpu) == (frozenset(), frozenset())


def test_the_mark_of_floats_asks_for_nothing() -> None:
    found = symbols(coff([Named("_fltused", "elsewhere"), Named("cosf", "elsewhere")]), "win32", "AMD64")
    assert found.missing == {"cosf"}


@pytest.mark.parametrize(
    ("code", "system", "cpu", "text"),
    [
        (elf(NAMES, 183), "linux", "x86_64", "it is for a different kind of CPU"),
        (mach_o(NAMES), "darwin", "arm64", "it is for a different kind of CPU"),
        (coff(NAMES), "win32", "ARM64", "it is for a different kind of CPU"),
        (mach_o(NAMES), "linux", "x86_64", "it is not an ELF file of 64 bits"),
        (coff(NAMES), "darwin", "x86_64", "it is not a Mach-O file of 64 bits"),
        (elf(NAMES), "win32", "AMD64", "it is not a COFF file of 64 bits"),
        (coff(NAMES, 0x14C), "win32", "AMD64", "it is not a COFF file of 64 bits"),
        (b"", "win32", "AMD64", "unpack_from requires a buffer"),
    ],
)
def test_files_of_another_system_or_cpu(code: bytes, system: str, cpu: str, text: str) -> None:
    with pytest.raises(CodegenError, match=rf"^not an object file that can be loaded here \({text}"):
        symbols(code, system, cpu)


@pytest.mark.parametrize(("write", "system", "cpu"), FORMATS)
def test_damaged_files(write: Write, system: str, cpu: str) -> None:
    code, rng = write(NAMES), random.Random(5)
    for size in range(len(code)):
        with contextlib.suppress(CodegenError):
            symbols(code[:size], system, cpu)
    for _ in range(500):
        data = bytearray(code)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(CodegenError):
            symbols(bytes(data), system, cpu)
