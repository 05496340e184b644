# SPDX-License-Identifier: BSD-3-Clause
"""Functions, structures and numbers of NVIDIA's driver are those of its header, as a C compiler reads it.

The header comes with the package nvidia-cuda-runtime-cu12, which needs no GPU.
"""

import ctypes
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracejit.describe import device_profile
from tracejit.runtime.cuda import calls
from tracejit.runtime.cuda import driver as drivers
from tracejit.runtime.cuda.library import PROTOTYPES, KernelNode, declared

STATUSES = {
    calls.OUT_OF_MEMORY: "OUT_OF_MEMORY", calls.PTX_TOO_NEW: "UNSUPPORTED_PTX_VERSION",
    100: "NO_DEVICE", 101: "INVALID_DEVICE",
    34: "STUB_LIBRARY", 803: "SYSTEM_DRIVER_MISMATCH",
    46: "DEVICE_UNAVAILABLE", 214: "ECC_UNCORRECTABLE", 220: "NVLINK_UNCORRECTABLE", 226: "CONTAINED",
    700: "ILLEGAL_ADDRESS", 702: "LAUNCH_TIMEOUT", 714: "HARDWARE_STACK_ERROR", 715: "ILLEGAL_INSTRUCTION",
    716: "MISALIGNED_ADDRESS", 717: "INVALID_ADDRESS_SPACE", 718: "INVALID_PC", 719: "LAUNCH_FAILED",
    999: "UNKNOWN",
}  # fmt: skip
NUMBERS = {
    **{f"CUDA_ERROR_{name}": number for number, name in STATUSES.items()},
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": drivers._MAJOR,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": drivers._MINOR,
    "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED": drivers._POOLS,
    "CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS": drivers._PAGEABLE,
    "CU_DEVICE_ATTRIBUTE_CLOCK_RATE": device_profile._CLOCK_KHZ,
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": device_profile._MULTIPROCESSORS,
    "CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": device_profile._SINGLE_TO_DOUBLE,
    "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": drivers._ORDINAL,
    "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD": drivers._KEEP_BYTES,
    "CU_EVENT_DISABLE_TIMING": drivers._WITHOUT_TIME,
    "sizeof(CUdeviceptr)": ctypes.sizeof(ctypes.c_uint64),
    "sizeof(cuuint64_t)": ctypes.sizeof(ctypes.c_uint64),
}
"""What the header calls a number, and the number here."""

FIELDS = ("func", "gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes",
          "kernelParams", "extra", "kern", "ctx")  # fmt: skip
"""The fields of CUDA_KERNEL_NODE_PARAMS in the order of KernelNode."""


@pytest.fixture(scope="module")
def compiler() -> tuple[str, ...]:
    package = importlib.util.find_spec("nvidia.cuda_runtime") if importlib.util.find_spec("nvidia") else None
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None or package is None or package.submodule_search_locations is None:
        pytest.skip("no compiler, or nvidia-cuda-runtime-cu12 is not installed")
    return (gcc, "-I", str(Path(package.submodule_search_locations[0], "include")))


@pytest.fixture(scope="module")
def declarations(compiler: tuple[str, ...]) -> dict[str, list[str]]:
    """The types of the arguments of each function, as the header exports it."""
    text = subprocess.run(
        [*compiler, "-E", "-P", "-include", "cuda.h", "-xc", "/dev/null"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = re.findall(r"CUresult\s+(cu\w+)\s*\(([^;()]*)\)\s*;", text)
    return {
        name: [re.sub(r"\w+\s*$", "", part).strip() for part in rest.split(",") if part.strip() != "void"]
        for name, rest in found
    }


@pytest.fixture(scope="module")
def recording(
    compiler: tuple[str, ...], declarations: dict[str, list[str]], tmp_path_factory: Any
) -> Iterator[Any]:
    """A library with the functions of the header, which write down the bytes of their arguments."""
    folder = tmp_path_factory.mktemp("driver")
    lines = ['#include "cuda.h"', "#include <string.h>", "unsigned char log_bytes[256]; int log_size;"]
    lines += ["static void put(const void *p, int n) { memcpy(log_bytes + log_size, p, n); log_size += n; }"]
    for name in PROTOTYPES:
        types = declarations[name]
        parameters = ", ".join(f"{text} a{i}" for i, text in enumerate(types)) or "void"
        body = " ".join(f"put(&a{i}, sizeof a{i});" for i in range(len(types)))
        lines.append(f"CUresult CUDAAPI {name}({parameters}) {{ log_size = 0; {body} return {len(name)}; }}")
    (folder / "driver.c").write_text("\n".join(lines))
    path = folder / "driver.so"
    # The definitions conflict with the header's declarations unless the types are the same.
    subprocess.run(
        [*compiler, "-Werror", "-shared", "-fPIC", "-o", str(path), str(folder / "driver.c")], check=True
    )
    yield ctypes.CDLL(str(path))


@pytest.mark.parametrize("name", PROTOTYPES)
@pytest.mark.whole("each function of the driver")
def test_a_function_gets_the_arguments_that_were_passed(recording: Any, name: str) -> None:
    library = declared(recording)
    arguments, expected = [], b""
    for number, kind in enumerate(PROTOTYPES[name]):
        if hasattr(kind, "_type_") and not isinstance(kind._type_, str):
            argument: Any = kind._type_()
            value = ctypes.c_uint64(ctypes.addressof(argument))
            argument = ctypes.byref(argument)
        elif kind is ctypes.c_char_p:
            argument = ctypes.create_string_buffer(b"name")
            value = ctypes.c_uint64(ctypes.addressof(argument))
        else:
            bits = 8 * ctypes.sizeof(kind) - (kind is ctypes.c_int)
            argument = 0x8102_0408_1122_3344 % (1 << bits) - number
            value = kind(argument)
        arguments.append(argument)
        expected += bytes(value)
    assert getattr(library, name)(*arguments) == len(name)
    size = ctypes.c_int.in_dll(recording, "log_size").value
    assert bytes((ctypes.c_ubyte * 256).in_dll(recording, "log_bytes"))[:size] == expected


def test_numbers_and_fields(compiler: tuple[str, ...], tmp_path: Path) -> None:
    wanted = {
        **NUMBERS,
        "sizeof(CUDA_KERNEL_NODE_PARAMS)": ctypes.sizeof(KernelNode),
        **{
            f"offsetof(CUDA_KERNEL_NODE_PARAMS, {name})": getattr(KernelNode, ours).offset
            for name, (ours, *_) in zip(FIELDS, KernelNode._fields_, strict=True)
        },
    }
    prints = "".join(f'printf("%lld\\n", (long long)({text}));' for text in wanted)
    (tmp_path / "numbers.c").write_text(
        f'#include "cuda.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{ {prints} }}\n'
    )
    subprocess.run([*compiler, "-o", str(tmp_path / "numbers"), str(tmp_path / "numbers.c")], check=True)
    output = subprocess.run([tmp_path / "numbers"], capture_output=True, text=True, check=True).stdout
    assert dict(zip(wanted, map(int, output.split()), strict=True)) == wanted


def test_each_status_with_a_message_of_its_own_has_a_name() -> None:
    told = {
        calls.OUT_OF_MEMORY,
        calls.PTX_TOO_NEW,
        *calls.NO_DEVICE,
        *calls.TOO_OLD,
        *calls.LOST,
    }
    assert told == {*STATUSES}
