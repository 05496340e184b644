# SPDX-License-Identifier: BSD-3-Clause
"""Kernels to object code, by Numba and LLVM. Importing this imports Numba.

Note [a target of our own]
Numba's target for the CPU knows all of Python and NumPy that it can compile, and makes functions that Python can
call. To load the first takes 0.2 s, and the second is optimised and compiled for nothing: a kernel uses integers,
floating-point numbers, loops, the functions of tracejit.kernels, and is called by the executor. So kernels are
compiled for a target of our own: Numba's rules for numbers, the passes that such functions need, LLVM's
optimisations once, and object code in which one C function, named by the hash of its source, is all that can be seen.
"""

import linecache
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import codegen, compiler, cpu, dispatcher, funcdesc, imputils, lowering, types, typing
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.descriptors import TargetDescriptor
from numba.core.target_extension import (
    CPU,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)
from numba.core.typed_passes import (
    IRLegalization,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.typing import signature, templates
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from tracejit.backend import handwritten
from tracejit.codegen.names import DTYPES
from tracejit.errors import CodegenError
from tracejit.kernels import blas, executor, lanes, pointers, scalar, threads, vectors
from tracejit.program import Kernel

_KERNEL_ARGUMENTS = (executor.SIGNATURE.args[0],)
_TARGET = "tracejit"


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(LoweringPass):
    """Numba's representation of a function to LLVM's."""

    _name = "tracejit_lowering"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library = context.codegen().create_library(state.func_id.func_qualname)
        described = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes, mangler=context.mangler,
            inline=False, noalias=False, abi_tags=[],
        )  # fmt: skip
        with context.push_code_library(library):
            lowering.Lower(context, library, described, state.func_ir).lower()
        context.insert_user_function(described, described, [library])
        state.library = library
        state.cr = compiler.compile_result(
            typing_context=state.typingctx, target_context=context, entry_point=described, library=library,
            signature=signature(state.return_type, *state.args), fndesc=described, objectmode=False,
        )  # fmt: skip
        return True


_PASSES = (
    TranslateByteCode, FixupArgs, IRProcessing, RewriteSemanticConstants, DeadBranchPrune, ReconstructSSA,
    NopythonTypeInference, PreLowerStripPhis, IRLegalization, _Lowering,
)  # fmt: skip


class _Target(CPU):
    """What Numba calls a target: here, the CPU without Python around it."""


class _Typing(typing.BaseContext):
    def init(self) -> None:
        for suffix, dtype in DTYPES.items():
            if suffix in pointers.DTYPES and dtype.kind != "b":
                self.insert_global(dtype.type, types.NumberClass(pointers.DTYPES[suffix]))


class _Library(codegen.CodeLibrary):
    """The LLVM source of one function and of those that it calls; LLVM itself is not called here."""

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(owner, name)
        self.texts: dict[str, None] = {}  # in order, each once

    def add_ir_module(self, ir_module: Any) -> None:
        self.texts[str(ir_module)] = None

    def add_linking_library(self, library: Any) -> None:
        self.texts.update(library.texts)

    def finalize(self) -> None:
        """Nothing: optimising is left to object_code()."""

    def get_function(self, name: str) -> Any:
        raise NotImplementedError

    get_llvm_str = get_asm_str = get_function


class _Codegen(codegen.JITCPUCodegen):
    _library_class = _Library

    def _init(self, llvm_module: Any) -> None:
        self._tm_features = self._customize_tm_features()
        options = {"opt": 3}
        self._customize_tm_options(options)
        self.machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)
        self._target_data = self.machine.target_data
        self._data_layout = str(self._target_data)

    def module_passes(self) -> tuple[Any, Any]:
        """Return LLVM's optimisations, and what runs them."""
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(self.machine, options)
        return builder.getModulePassManager(), builder


class _Context(cpu.CPUContext):
    _known = 0

    def init(self) -> None:
        self.is32bit = False
        self._internal_codegen = _Codegen("tracejit")

    def load_additional_registries(self) -> None:
        from numba.cpython import builtins, mathimpl, numbers, rangeobj, tupleobj  # noqa: F401 (they register)

        # Intrinsics register with this one if it is there, and else with whichever is first.
        self.install_registry(imputils.builtin_registry)
        self.install_registry(mathimpl.registry)  # abs

    def refresh(self) -> None:
        # Numba refreshes for each call of an intrinsic; looking through its registries takes a millisecond.
        known = sum(map(len, vars(imputils.builtin_registry).values()))
        known += sum(map(len, vars(templates.builtin_registry).values()))
        if known != self._known:
            super().refresh()
            self._known = known

    def post_lowering(self, module: Any, library: Any) -> None:
        """Nothing: Numba's run-time is not linked to."""


class _Descriptor(TargetDescriptor):
    options = cpu.CPUTargetOptions

    def __init__(self) -> None:
        super().__init__(_TARGET)
        self._typing = _Typing()
        self._context = _Context(self._typing, _TARGET)

    @property
    def typing_context(self) -> Any:
        return self._typing

    @property
    def target_context(self) -> Any:
        return self._context


class _Pipeline(compiler.CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = PassManager(_TARGET)
        for step in _PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


def _register() -> Any:
    target_registry[_TARGET] = _Target
    descriptor = _Descriptor()

    class Dispatcher(dispatcher.Dispatcher):
        targetdescr = descriptor

        def add_overload(self, result: Any) -> None:
            self.overloads[tuple(result.signature.args)] = result

    dispatcher_registry[_Target] = Dispatcher
    jit_registry[_Target] = _jit
    return descriptor


def _jit(function: Any = None, **options: Any) -> Any:
    """Return a function that kernels may call."""
    options |= {"error_model": "numpy", "_target": _TARGET, "pipeline_class": _Pipeline}
    return numba.jit(function, **options)


_descriptor = _register()


@cache
def namespace() -> dict[str, Any]:
    """Return the names that emitted source may use, as Numba compiles them."""
    names: dict[str, Any] = {}
    for suffix, dtype in DTYPES.items():
        names[suffix] = bool if dtype.kind == "b" else dtype.type
    names.update(pointers.FUNCTIONS)
    names.update(scalar.FUNCTIONS)
    names.update(vectors.FUNCTIONS)
    names.update(lanes.FUNCTIONS)
    for name, function in {**handwritten.functions(), **blas.FUNCTIONS}.items():
        names[name] = _jit(function)
    return names


class Lowered(NamedTuple):
    """A kernel as LLVM's source: the function `symbol` and all that it calls."""

    symbol: str
    texts: tuple[str, ...]

    def object_code(self) -> bytes:
        """Return the kernel as an object file that shows nothing but `symbol`."""
        return bytes(_codegen().machine.emit_object(self._optimised()))

    def assembly(self) -> str:
        """Return what is in the object file, for the reader."""
        return str(_codegen().machine.emit_assembly(self._optimised()))

    def _optimised(self) -> Any:
        """Return the kernel as a module of LLVM; Numba is not called for that."""
        module, *others = [llvm.parse_assembly(text) for text in self.texts]
        for other in others:
            module.link_in(other)
        for value in (*module.functions, *module.global_variables):
            # LLVM's own lists (llvm.compiler.used) have a linkage of their own, without which they mean nothing.
            if not value.is_declaration and value.name != self.symbol and not value.name.startswith("llvm."):
                value.linkage = llvm.Linkage.internal
        passes, builder = _codegen().module_passes()
        passes.run(module, builder)
        module.verify()
        return module


def lower(kernel: Kernel) -> Lowered:
    """Return a kernel as LLVM's source.

    Raises:
        CodegenError: if Numba refuses the source.
    """
    names = dict(namespace())
    file = f"<tracejit kernel {kernel.name}>"
    linecache.cache[file] = (len(kernel.text), None, kernel.text.splitlines(True), file)
    exec(compile(kernel.text, file, "exec"), names)
    try:
        return _lowered(names[kernel.name], _KERNEL_ARGUMENTS, types.none, kernel.name)
    except Exception as error:
        raise CodegenError(
            f"the emitted kernel {kernel.name} could not be compiled; this is a defect of tracejit. "
            f"Please report it with this source:\n{kernel.text}"
        ) from error


_FUNCTIONS = {
    "run": (executor.run, executor.SIGNATURE),
    "run_parts": (threads.run_parts, threads.RUN_PARTS_SIGNATURE),
    "work": (threads.work, threads.WORK_SIGNATURE),
}


def lower_function(name: str) -> Lowered:
    """Return the executor ("run") or a function of its threads as LLVM's source."""
    function, typed = _FUNCTIONS[name]
    return _lowered(function, typed.args, typed.return_type, f"tracejit_{name}")


def _codegen() -> _Codegen:
    return _descriptor.target_context.codegen()  # type: ignore[no-any-return]


def _lowered(function: Any, arguments: tuple[Any, ...], result: Any, symbol: str) -> Lowered:
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    with target_override(_TARGET):
        compiled = compiler.compile_extra(
            _descriptor.typing_context, _descriptor.target_context, function, arguments, result, flags, {},
            pipeline_class=_Pipeline,
        )  # fmt: skip
    compiled.library.add_ir_module(_entry(compiled.fndesc, symbol))
    return Lowered(symbol, tuple(compiled.library.texts))


def _entry(described: Any, symbol: str) -> Any:
    """Return the C function `symbol`, which calls the compiled one and drops its status: kernels raise nothing."""
    context = _descriptor.target_context
    convention = context.call_conv
    result, arguments = described.restype, described.argtypes
    module = context.create_module(symbol)
    kind = convention.get_function_type(result, arguments)
    callee = ir.Function(module, kind, described.llvm_func_name)
    returned = ir.VoidType() if result == types.none else context.get_value_type(result)
    kind = ir.FunctionType(returned, [context.get_value_type(argument) for argument in arguments])
    entry = ir.Function(module, kind, symbol)
    set.add(entry.attributes, pointers.WIDEST)  # the code is inlined, the attributes of its function are not
    builder = ir.IRBuilder(entry.append_basic_block())
    _, value = convention.call_function(builder, callee, result, arguments, entry.args)
    if result == types.none:
        builder.ret_void()
    else:
        builder.ret(value)
    return module
