# SPDX-License-Identifier: BSD-3-Clause
"""What is known of cuBLASLt is what its header says, and the library takes our descriptors; neither needs a GPU.

Skipped where NVIDIA's package (nvidia-cublas-cu12 or nvidia-cublas) is not installed.
"""

import ctypes
import importlib.metadata
import shutil
import subprocess
from ctypes import byref, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from pathlib import Path
from typing import Any

import pytest
from fake_driver import fake_device

from tracejit.config import settings
from tracejit.errors import DeviceError
from tracejit.program import BlasProduct, ProductOperand
from tracejit.runtime.cuda import cublas, cublas_products
from tracejit.runtime.cuda import launches as graphs
from tracejit.runtime.cuda.driver import driver

NUMBERS = {
    "CUBLAS_COMPUTE_32F": cublas_products._TYPES["float32"][1],
    "CUBLAS_COMPUTE_64F": cublas_products._TYPES["float64"][1],
    "CUDA_R_32F": cublas_products._TYPES["float32"][0],
    "CUDA_R_64F": cublas_products._TYPES["float64"][0],
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_STATUS_NOT_INITIALIZED": cublas.NOT_INITIALIZED,
    "CUBLAS_STATUS_ALLOC_FAILED": cublas.ALLOC_FAILED,
    "CUBLAS_STATUS_ARCH_MISMATCH": cublas.ARCH_MISMATCH,
    "CUBLAS_STATUS_NOT_SUPPORTED": cublas.NOT_SUPPORTED,
    "CUBLASLT_MATMUL_DESC_TRANSA": cublas_products._TRANSPOSED_A,
    "CUBLASLT_MATMUL_DESC_TRANSB": cublas_products._TRANSPOSED_B,
    "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT": cublas_products._BATCH,
    "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET": cublas_products._BATCH_OFFSET,
    "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": cublas_products._WORKSPACE,
    **{
        f"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{name}_BYTES": cublas_products._ALIGNMENT_A + number
        for number, name in enumerate("ABCD")
    },
    "CU_STREAM_NON_BLOCKING": graphs._NON_BLOCKING,
    "CU_STREAM_CAPTURE_MODE_RELAXED": graphs._RELAXED,
    "sizeof(cublasLtMatmulAlgo_t)": ctypes.sizeof(cublas.Algorithm),
    "sizeof(cublasLtMatmulHeuristicResult_t)": ctypes.sizeof(cublas.Suggestion),
    "offsetof(cublasLtMatmulHeuristicResult_t, algo)": cublas.Suggestion.algorithm.offset,
    "offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize)": cublas.Suggestion.workspace_bytes.offset,
    "offsetof(cublasLtMatmulHeuristicResult_t, state)": cublas.Suggestion.state.offset,
}
"""What the headers call a number, and the number here."""

DECLARED = {
    "cublasLtCreate": "cublasLtHandle_t*",
    "cublasLtMatmulDescCreate": "cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType_t",
    "cublasLtMatmulDescSetAttribute": "cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, size_t",
    "cublasLtMatmulDescDestroy": "cublasLtMatmulDesc_t",
    "cublasLtMatrixLayoutCreate": "cublasLtMatrixLayout_t*, cudaDataType, uint64_t, uint64_t, int64_t",
    "cublasLtMatrixLayoutSetAttribute":
        "cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*, size_t",
    "cublasLtMatrixLayoutDestroy": "cublasLtMatrixLayout_t",
    "cublasLtMatmulPreferenceCreate": "cublasLtMatmulPreference_t*",
    "cublasLtMatmulPreferenceSetAttribute":
        "cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, size_t",
    "cublasLtMatmulPreferenceDestroy": "cublasLtMatmulPreference_t",
    "cublasLtMatmulAlgoGetHeuristic":
        "cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, "
        "cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int, "
        "cublasLtMatmulHeuristicResult_t*, int*",
    "cublasLtMatmul":
        "cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t, const void*, "
        "cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t, "
        "const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t",
    "cublasLtGetVersion": "void",
    "cublasLtGetStatusName": "cublasStatus_t",
}  # fmt: skip
"""The arguments of the functions in the header's words; a C compiler says whether they are."""
_CRT = """
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __forceinline__ inline
#define __inline__ inline
"""  # a header of another package, which the headers of CUDA include: words that mean nothing to a C compiler
WIDTHS = {"int": 4, "size_t": 8, "uint64_t": 8, "int64_t": 8}
ENUMS = ("cublasComputeType_t", "cudaDataType", "cublasStatus_t")


def headers() -> list[str]:
    """Return the folders of the headers of cuBLAS and of the CUDA runtime."""
    folders = []
    for package, name in (("nvidia-cublas-cu12", "cublasLt.h"), ("nvidia-cuda-runtime-cu12", "cuda.h")):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
        folders += [str(Path(str(path.locate())).parent) for path in files if path.name == name]
    return folders


def compiled(text: str, folder: Path) -> str:
    """Return what a C program prints."""
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        pytest.skip("no compiler")
    includes = [part for path in (str(folder), *headers()) for part in ("-I", path)]
    for name in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"):  # types of numbers that no argument has
        (folder / name).write_text("")
    (folder / "crt").mkdir()
    (folder / "crt" / "host_defines.h").write_text(_CRT)
    source, program = folder / "program.c", folder / "program"
    source.write_text(
        "#include <cuda.h>\n#include <cublasLt.h>\n#include <stddef.h>\n#include <stdio.h>\n" + text
    )
    subprocess.run([gcc, "-Werror", *includes, "-c", "-o", str(program) + ".o", str(source)], check=True)
    if "main" not in text:
        return ""
    subprocess.run([gcc, "-o", str(program), str(program) + ".o"], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_numbers_and_structures(tmp_path: Path) -> None:
    prints = "".join(f'printf("%lld\\n", (long long)({text}));' for text in NUMBERS)
    output = compiled(f"int main(void) {{ {prints} }}\n", tmp_path)
    assert dict(zip(NUMBERS, map(int, output.split()), strict=True)) == NUMBERS


def test_arguments_of_functions(tmp_path: Path) -> None:
    """A declaration that is not the header's is an error; and each argument has the size that ctypes hands over."""
    assert DECLARED.keys() == cublas.PROTOTYPES.keys() | cublas.OTHERS.keys()
    others = {"cublasLtGetVersion": "size_t", "cublasLtGetStatusName": "const char*"}
    lines = [f"{others.get(name, 'cublasStatus_t')} {name}({types});" for name, types in DECLARED.items()]
    compiled("\n".join(lines) + "\n", tmp_path)
    for name, types in cublas.PROTOTYPES.items():
        parts = DECLARED[name].split(", ")
        sizes = [
            WIDTHS.get(part, 4 if part in ENUMS or "Attribute" in part or part == "cudaDataType_t" else 8)
            for part in parts
        ]
        assert sizes == [ctypes.sizeof(kind) for kind in types], name


class _OnTheHost:
    """The library, but for what needs a GPU; the question for an algorithm reads the descriptors back."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def cublasLtCreate(self, out: Any) -> int:  # noqa: N802
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:  # noqa: N802
        _, description, a, b, _, d, preference, _, _, count = arguments
        self.read["transposes"] = tuple(
            [bool(self._get("MatmulDesc", description, n, c_int32)) for n in (3, 4)]
        )
        kinds = (c_uint64, 2), (c_uint64, 3), (c_int64, 4), (c_int32, 5), (c_int64, 6)
        self.read["layouts"] = tuple(
            [tuple([self._get("MatrixLayout", layout, n, kind) for kind, n in kinds]) for layout in (a, b, d)]
        )
        self.read["dtypes"] = {self._get("MatrixLayout", layout, 0, c_uint32) for layout in (a, b, d)}
        self.read["compute"] = self._get("MatmulDesc", description, 0, c_int32)
        self.read["scale"] = self._get("MatmulDesc", description, 1, c_int32)
        self.read["workspace"] = self._get("MatmulPreference", preference, 1, c_uint64)
        of_four = [self._get("MatmulPreference", preference, n, c_uint32) for n in (5, 6, 7, 8)]
        self.read["alignments"] = tuple(of_four)
        count._obj.value = 1
        return 0

    def _get(self, kind: str, handle: Any, attribute: int, of: Any) -> int:
        value, written = of(), c_size_t()
        function = getattr(self._library, f"cublasLt{kind}GetAttribute")
        status = function(handle, attribute, byref(value), c_size_t(ctypes.sizeof(value)), byref(written))
        assert (status, written.value) == (0, ctypes.sizeof(value))
        return int(value.value)


@pytest.fixture(name="library", scope="module", params=[12, 13])
def fixture_library(request: pytest.FixtureRequest) -> Any:
    try:
        return cublas.load(request.param)
    except DeviceError as error:
        pytest.skip(str(error))


def product(dtype: str = "float32", batch: int = 1, **more: Any) -> BlasProduct:
    x, y = ProductOperand(0, False, 9, 63), ProductOperand(1, True, 11, 0)
    whole = BlasProduct(dtype, batch, 7, 5, 8, x, y, ProductOperand(2, False, 6, 42), False)
    return whole._replace(**more)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("turned", [(False, True), (True, False), (True, True), (False, False)])
@pytest.mark.sampled
def test_descriptors_are_what_was_asked_for(
    dtype: str, batch: int, turned: tuple[bool, bool], library: Any
) -> None:
    asked = product(dtype, batch)
    asked = asked._replace(x=asked.x._replace(transposed=turned[0]), y=asked.y._replace(transposed=turned[1]))
    call = cublas_products.call_of(asked, (16, 32, 64))
    on_host = _OnTheHost(library)
    with fake_device():
        cublas_products.BlasRoutine(cublas.Cublas(driver(), on_host), asked, (16, 32, 64))
    number, compute, _ = cublas_products._TYPES[dtype]
    want = [layout if batch > 1 else layout._replace(batch=1, apart=0) for layout in call.layouts]
    assert on_host.read == {
        "transposes": call.transposes, "layouts": tuple([tuple(layout) for layout in want]),
        "dtypes": {number}, "compute": compute, "scale": number, "workspace": 1 << 25,
        "alignments": (32, 16, 64, 64),
    }  # fmt: skip


def test_the_version_and_the_names_of_statuses(library: Any) -> None:
    assert library.cublasLtGetVersion() >= cublas.LEAST_VERSION
    assert library.cublasLtGetStatusName(cublas.NOT_SUPPORTED) == b"CUBLAS_STATUS_NOT_SUPPORTED"
    assert settings.cublas_from is None
