# SPDX-License-Identifier: BSD-3-Clause
"""LLVM IR to object code, for kernels and int64 functions alike.

Note [few passes]
LLVM's pipeline looks several times for loops to vectorise, to unroll and to split. The kernels of Winograd's method are
written in vectors. With a few passes their code is as fast, and LLVM takes a quarter of the time, 0.14 s instead of
0.57 s. Convolutions whose windows are laid out take 0.11 s instead of 0.4 s; their code is as fast too, except that
with channels last it is a tenth slower. Other kernels would lose: products of matrices with few columns a fifth,
pooling much more.

Note [several kernels at a time]
llvmlite calls LLVM under a lock, so that LLVM works on one kernel at a time. It could work on several, each in a
context and with a target machine of its own. So the two calls that take long, to run the passes and to write object
code, are made without that lock, under one of a few locks of our own. A fork waits for those too.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager

from tracejit.compile import objects
from tracejit.compile.objects import Cpu
from tracejit.util.locks import new_compiler_lock
from tracejit.util.named_tuples import NamedTuple

MOST_AT_A_TIME = 8
_locks = [new_compiler_lock() for _ in range(MOST_AT_A_TIME)]
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
        machine = objects.target_machine(cpu)
        module = self._optimised(machine)
        functions = module.functions if self.declares else ()
        needs = [f.name for f in functions if f.is_declaration and f.name in self.declares]
        return _object_file(machine, module), tuple(needs)

    def assembly(self, cpu: Cpu | None = None) -> str:
        """Return the assembly of the object file, for inspection."""
        machine = objects.target_machine(cpu)
        return str(machine.emit_assembly(self._optimised(machine)))

    def optimised(self) -> str:
        """Return the optimised LLVM IR, for inspection."""
        return str(self._optimised(objects.target_machine()))

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
        _run("LLVMPY_RunNewModulePassManager", passes, module, builder)
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


def _object_file(machine: Any, module: Any) -> bytes:
    with ffi.OutputString() as problem:
        buffer = _run("LLVMPY_TargetMachineEmitToMemory", machine, module, 1, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _run(name: str, *arguments: Any) -> Any:
    """Call a function of llvmlite's library beside others (Note [several kernels at a time])."""
    function = getattr(ffi.lib, name)
    lock = next((lock for lock in _locks if lock.acquire(blocking=False)), None)
    if lock is None:
        lock = _locks[0]
        lock.acquire()
    try:
        return getattr(function, "_cfn", function)(*arguments)
    finally:
        lock.release()
