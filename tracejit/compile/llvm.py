# SPDX-License-Identifier: BSD-3-Clause
"""LLVM's source to object code: what Numba and the functions of words have in common."""

from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tracejit.compile import objects
from tracejit.compile.objects import Cpu


class LlvmFunction(NamedTuple):
    """A kernel or a function as LLVM's source: `symbol` and all that it calls.

    LLVM is called seldom from here on: each call waits for its turn with Python.

    symbol      the C function that is made of it
    texts       modules of LLVM, its own as the last one
    declares    what they take from elsewhere
    is_kernel   whether LLVM should try hard: what only looks at a few words is compiled in a fifth of the time
    """

    symbol: str
    texts: tuple[str, ...]
    declares: frozenset[str]
    is_kernel: bool = True

    def object_code(self, cpu: Cpu | None = None) -> tuple[bytes, tuple[str, ...]]:
        """Return an object file that shows nothing but `symbol`, and what it takes from the process.

        It is for the CPU of this process, or for another `cpu`.
        """
        machine = _machine(cpu)
        module = self._optimised(machine)
        functions = module.functions if self.declares else ()
        needs = [each.name for each in functions if each.is_declaration and each.name in self.declares]
        return bytes(machine.emit_object(module)), tuple(needs)

    def assembly(self, cpu: Cpu | None = None) -> str:
        """Return what is in the object file, for the reader."""
        machine = _machine(cpu)
        return str(machine.emit_assembly(self._optimised(machine)))

    def optimised(self) -> str:
        """Return LLVM's source after its optimisations, for the reader."""
        return str(self._optimised(objects.host_machine()))

    def _optimised(self, machine: Any) -> Any:
        module, *others = [llvm.parse_assembly(text) for text in self.texts]
        for other in others:
            module.link_in(other)
        if others:  # with one module this was said in its text
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
        passes = builder.getModulePassManager() if self.is_kernel else _few_passes()
        passes.run(module, builder)
        return module


def _few_passes() -> Any:
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    return passes


def _machine(cpu: Cpu | None) -> Any:
    return objects.host_machine() if cpu is None else objects.target_machine(cpu)
