# SPDX-License-Identifier: BSD-3-Clause
"""LLVM IR to object code, for kernels and int64 functions alike.

Note [few passes]
LLVM's pipeline looks for loops to turn into vectors, to unroll and to take apart, several times. The kernels of
Winograd's method are written in vectors. With a few passes their code is as fast, and LLVM takes a quarter of the
time, 0.14 s instead of 0.57 s. Other kernels would lose: products of matrices with few columns a fifth, convolutions
whose windows are laid out a quarter.
"""

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager

from tracejit.compile import objects
from tracejit.compile.objects import Cpu
from tracejit.util.named_tuples import NamedTuple

ALL: Sequence[str] = ()
OF_WORDS = ("sroa", "simplify_cfg", "instruction_combine")
OF_TILES = (
    *OF_WORDS, "loop_simplify", "loop_rotate", "new_gvn", "instruction_combine", "simplify_cfg", "aggressive_dce",
)  # fmt: skip


class LlvmFunction(NamedTuple):
    """A kernel or an int64 function as LLVM IR, with all that it calls.

    The methods call LLVM seldom: each call has to wait for Python's lock.

    symbol      the name of the C function
    texts       LLVM modules, its own as the last one
    declares    the names that the modules declare and do not define
    passes      what LLVM does to it: ALL, or a few of its passes where more would not make the code faster: those
                for kernels of tiles (OF_TILES), or those for int64 functions (OF_WORDS)
    """

    symbol: str
    texts: tuple[str, ...]
    declares: frozenset[str]
    passes: Sequence[str] = ALL

    def object_code(self, cpu: Cpu | None = None) -> tuple[bytes, tuple[str, ...]]:
        """Return an object file that exports only `symbol`, and the names that it takes from the process.

        Args:
            cpu: the CPU to compile for; by default that of this process.
        """
        machine = _machine(cpu)
        module = self._optimised(machine)
        functions = module.functions if self.declares else ()
        needs = [f.name for f in functions if f.is_declaration and f.name in self.declares]
        return bytes(machine.emit_object(module)), tuple(needs)

    def assembly(self, cpu: Cpu | None = None) -> str:
        """Return the assembly of the object file, for inspection."""
        machine = _machine(cpu)
        return str(machine.emit_assembly(self._optimised(machine)))

    def optimised(self) -> str:
        """Return the optimised LLVM IR, for inspection."""
        return str(self._optimised(objects.host_machine()))

    def _optimised(self, machine: Any) -> Any:
        # A context of its own is freed with the module; LLVM's global one keeps each type and constant for ever.
        context = llvm.create_context()
        module, *others = [llvm.parse_assembly(text, context) for text in self.texts]
        for other in others:
            module.link_in(other)
        if others:  # the text of a single module says so already
            for value in (*module.functions, *module.global_variables):
                if (
                    not value.is_declaration
                    and value.name != self.symbol
                    and not value.name.startswith("llvm.")
                ):
                    value.linkage = llvm.Linkage.internal
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        passes = _few(self.passes) if self.passes else builder.getModulePassManager()
        passes.run(module, builder)
        _free(passes)
        return module


def _few(names: Sequence[str]) -> Any:
    passes = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    return passes


def _free(passes: Any) -> None:
    """Free a pass manager: what it learnt of a kernel takes ten times the memory of the kernel's code.

    Its class inherits from ObjectRef first, whose _dispose() does nothing.
    """
    if type(passes)._dispose is ObjectRef._dispose:
        NewPassManager._dispose(passes)
    passes.close()


def _machine(cpu: Cpu | None) -> Any:
    return objects.host_machine() if cpu is None else objects.target_machine(cpu)
