# SPDX-License-Identifier: BSD-3-Clause
"""Compiles kernels for NVIDIA GPUs: a kernel's source goes in, PTX comes out.

Numba types and lowers the source as it does for the CPU (compile/numba_target.py), and LLVM, which Numba brings, writes
PTX. Neither a GPU nor a driver nor CUDA has to be there: a driver translates PTX for its GPU. The functions that
kernels call, such as exp, are those of the CPU (kernels/intrinsics), so a GPU rounds as a CPU does, and nothing comes
from NVIDIA's libraries.

Note [arguments of a GPU's kernel]
A kernel for the CPU takes the address of its arguments. That for a GPU takes the arguments themselves, as an array
of 64-bit words that is passed by value: they are in the GPU's constant memory when the kernel starts.
"""

import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import types

from tracejit.compile import numba_target
from tracejit.compile.capability import PTX_VERSIONS, Capability
from tracejit.compile.device_arithmetic import arithmetic_functions, with_own_arithmetic
from tracejit.compile.llvm import LlvmFunction
from tracejit.errors import CodegenError
from tracejit.kernels.device import circular, libm
from tracejit.kernels.intrinsics import device, device_tiles
from tracejit.program import Kernel

_FUNCTIONS = {**device.FUNCTIONS, **device_tiles.FUNCTIONS}
_FOR_VECTORS = re.compile(r'^@"?llvm\.compiler\.used"? = .*\n', re.MULTILINE)
"""The list of functions that are kept for loops that become vectors, which a device has none of."""
_TRIPLE = "nvptx64-nvidia-cuda"
_LIMIT = re.compile(r'"nvvm\.maxnreg"="(\d+)"')
"""The most registers of a thread, as kernels/intrinsics/device.py writes it."""
_ENTRY = re.compile(r"\.entry \w+\([^)]*\)\n")
_ADDRESS = re.compile(r'^(\s*)(%"?[\w.$-]+"?) = inttoptr i64 (\S+) to (?:ptr|[\w.<> ]+\*)$', re.MULTILINE)


def lowered(kernel: Kernel) -> LlvmFunction:
    """Return a kernel as LLVM IR.

    Raises:
        CodegenError: if Python or Numba refuses the source.
    """
    function = numba_target.lower(kernel, _FUNCTIONS)
    for name in sorted(function.declares & _LIBM.keys()):
        _libm(name)  # now, as Numba runs in one thread at a time
    return function


_LIBM = {
    f"{name}{suffix}": (function, arguments, dtype)
    for name, function, arguments in (
        ("fmod", libm.fmod, 2),
        ("sin", circular.sin, 1),
        ("cos", circular.cos, 1),
        ("tan", circular.tan, 1),
    )
    for suffix, dtype in (("", types.float64), ("f", types.float32))
}
"""The functions of the C library that kernels call, the number of their arguments, and their dtypes."""


@cache
def _libm(name: str) -> tuple[str, ...]:
    """Return the LLVM IR of a function of the C library."""
    function, arguments, dtype = _LIBM[name]
    source = numba_target.FunctionSource.of(function)
    return numba_target.lower_function(source, (dtype,) * arguments, dtype, name).texts


@cache
def _machine(capability: Capability) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(_TRIPLE)
    features = f"+ptx{PTX_VERSIONS[capability]}"
    return target.create_target_machine(
        cpu=f"sm_{capability.major}{capability.minor}", features=features, opt=3
    )


def ptx_of_lowered(lowered: LlvmFunction, kernel: Kernel, capability: Capability) -> str:
    """Return the PTX of a kernel that Numba has lowered; may be called in several threads at once.

    Raises:
        CodegenError: if it calls a function of the C library that has no form for a device.
    """
    words = kernel.words
    machine = _machine(capability.known)
    context = llvm.create_context()
    texts = [_in_global_memory(_FOR_VECTORS.sub("", text)) for text in lowered.texts]
    for name in sorted(lowered.declares & _LIBM.keys()):
        texts += _libm(name)
    module, *others = modules = [llvm.parse_assembly(with_own_arithmetic(text), context) for text in texts]
    for function in (function for each in modules for function in each.functions):
        if not function.is_declaration and function.name != lowered.symbol:
            function.linkage = llvm.Linkage.weak_odr  # functions of Numba's are in several texts
    for other in others:
        module.link_in(other)
    module.link_in(llvm.parse_assembly(arithmetic_functions(), context))
    name = lowered.symbol
    limit = _LIMIT.search("".join(texts))
    module.get_function(name).name = body = f"{name}_body"
    module.link_in(
        llvm.parse_assembly(
            f"""
            declare void @{body}(ptr)
            define ptx_kernel void @{name}(ptr byval([{max(1, words)} x i64]) align 8 %args) {{
              call void @{body}(ptr %args)
              ret void
            }}
            """,
            context,
        )
    )
    module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.add_function_attribute("alwaysinline")
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != name and not value.name.startswith("llvm."):
            value.linkage = llvm.Linkage.internal
    missing = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if missing:
        raise CodegenError(f"{name}: a device has no function {', '.join(missing)}.")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    ptx = str(machine.emit_assembly(module))
    # LLVM 20 does not write this itself, and blocks of many threads do not start without it.
    return ptx if limit is None else _ENTRY.sub(rf"\g<0>.maxnreg {limit[1]}\n", ptx, count=1)


def _in_global_memory(text: str) -> str:
    """Return LLVM IR in which the addresses that a kernel takes are those of a GPU's global memory.

    Without that each access would look up at run time which memory an address belongs to.
    """

    def two_steps(match: re.Match[str]) -> str:
        indent, name, address = match.groups()
        there = f'{name[:-1]}.global"' if name.endswith('"') else f"{name}.global"
        return (
            f"{indent}{there} = inttoptr i64 {address} to ptr addrspace(1)\n"
            f"{indent}{name} = addrspacecast ptr addrspace(1) {there} to ptr"
        )

    return _ADDRESS.sub(two_steps, text)
