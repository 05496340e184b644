# SPDX-License-Identifier: BSD-3-Clause
"""Lowers kernels to LLVM IR by Numba. Importing this module imports Numba.

Note [a target of our own]
Numba's target for the CPU supports much of Python and NumPy, and makes functions that Python can call. To load that
support takes 0.2 s, and the wrappers for Python would be optimised and compiled in vain: a kernel uses integers,
floats, loops and the functions of tracejit.kernels, and is called by the executor. So kernels have a target of our
own: Numba's rules for numbers, the passes that such functions need, LLVM's optimisations once, and object code that
exports a single C function, named by the hash of its source.

Functions are lowered in one walk (compile/structured.py). Numba's own compiler takes those in other forms.

Note [integers that wrap around]
Numba tells LLVM that sums, differences and products of int64 never leave the 64 bits (nsw), so that it computes places
in arrays as it likes. Then LLVM takes abs(a * a) for a * a, and a + 7 < a for false. NumPy's int64 wrap around. So
LLVM is not told that where a kernel has elements that are integers, smaller ones too, which are computed in 64 bits.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any

from llvmlite import ir
from numba.core import codegen, compiler, cpu, dispatcher, errors, funcdesc, imputils, lowering, types, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.descriptors import TargetDescriptor
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.target_extension import (
    CPU,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)
from numba.core.typed_passes import (
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.typing import signature, templates
from numba.core.untyped_passes import (
    FixupArgs,
    ReconstructSSA,
    TranslateByteCode,
)

from tracejit.codegen.names import DTYPES
from tracejit.codegen.target import vector_bytes
from tracejit.compile.llvm import OF_TILES, LlvmFunction
from tracejit.compile.objects import data_layout, host, host_machine
from tracejit.compile.operations import UnsupportedError
from tracejit.compile.structured import write_function
from tracejit.compile.variables import parted
from tracejit.errors import CodegenError
from tracejit.kernels.intrinsics import (
    blas,
    lanes,
    pairs,
    pointers,
    scalar,
    searches,
    tiles,
    transforms,
    ufunc_loops,
)
from tracejit.kernels.loops import functions as loop_functions
from tracejit.program import Kernel
from tracejit.util.definitions import defines
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.parsing import parsed
from tracejit.util.uninterrupted import is_of_handler

_KERNEL_ARGUMENTS = (types.CPointer(types.intp),)  # type: ignore[attr-defined]
_TARGET = "tracejit"
_TRANSFORMS = "= winograd_"
"""Words that only kernels of Winograd's method have, whose loops transform tiles (Note [hidden counters])."""
_ONLY_TILES = (_TRANSFORMS, "column_of = ")
"""Words that only kernels of tiles have (Note [few passes])."""
_INTEGERS = re.compile(r"\b(read|write|number)_[iu](8|16|32|64)\(")
"""Words that only kernels of integers have (Note [integers that wrap around])."""
_MANY_VALUES = "kept0 = position < positions"
"""Words that only convolutions of a device by threads have.

From their LLVM IR by one walk, LLVM makes kernels whose threads need more registers than they may take: 168 and 24
bytes of memory instead of 148, for capability 9.0. Other kernels for devices take about as many either way.
"""


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerToLlvm(LoweringPass):
    """Lowers Numba IR to LLVM IR."""

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
    TranslateByteCode, FixupArgs, ReconstructSSA,
    NopythonTypeInference, PreLowerStripPhis, _LowerToLlvm,
)  # fmt: skip


class _Target(CPU):
    """A target of Numba: the CPU without Python."""


class _Typing(typing.BaseContext):
    def init(self) -> None:
        self._resolved: dict[Any, Any] = {}
        for suffix, dtype in DTYPES.items():
            if suffix in pointers.DTYPES and dtype.kind != "b":
                self.insert_global(dtype.type, types.NumberClass(pointers.DTYPES[suffix]))

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        # Numba asks several times for each call of each function; the answers do not change.
        key = func, args, tuple(kws.items()) if kws else ()  # the implementation of min and max gives a tuple
        resolved = self._resolved.get(key)
        if resolved is None:
            resolved = self._resolved[key] = super().resolve_function_type(func, args, kws)
        return resolved

    def resolve_value_type(self, val: Any) -> Any:
        # For a class that is no number type, such as range, Numba would import its own containers first.
        registered = self._lookup_global(val) if isinstance(val, type) else None
        return super().resolve_value_type(val) if registered is None else registered


class _Library(codegen.CodeLibrary):
    """The LLVM IR of one function and of those that it calls; LLVM itself is not called here."""

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(owner, name)
        self.modules: dict[Any, None] = {}  # an ordered set; the function's own module is the last

    def add_ir_module(self, ir_module: Any) -> None:
        self.modules[ir_module] = None

    def add_linking_library(self, library: Any) -> None:
        self.modules.update(library.modules)

    def finalize(self) -> None:
        """Do nothing: object_code() optimises."""

    def get_function(self, name: str) -> Any:
        raise NotImplementedError

    get_llvm_str = get_asm_str = get_function


class _Codegen(codegen.CPUCodegen):
    _library_class = _Library

    def _init(self, llvm_module: Any) -> None:
        self._target_data = host_machine().target_data
        self._data_layout = data_layout()

    _customize_tm_features = _customize_tm_options = _add_module = None

    def _create_empty_module(self, name: str) -> Any:
        module = ir.Module(name)
        module.triple = host()[0]
        module.data_layout = self._data_layout or ""
        return module


class _Context(cpu.CPUContext):
    _registered = 0

    def init(self) -> None:
        super().init()
        self.is32bit = False
        self._internal_codegen = _Codegen("tracejit")
        self._found: dict[Any, Any] = {}

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        # Numba reads the signature of each implementation again whenever it is called.
        key = fn, sig
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = super().get_function(fn, sig, _firstcall)
        return found

    def insert_user_function(self, *arguments: Any) -> None:
        self._found.clear()
        super().insert_user_function(*arguments)

    def remove_user_function(self, func: Any) -> None:
        self._found.clear()
        super().remove_user_function(func)

    def load_additional_registries(self) -> None:
        from numba.cpython import builtins, mathimpl, numbers, rangeobj, tupleobj  # noqa: F401 (they register)

        # Intrinsics register with this registry if it is installed, otherwise with whichever is first.
        self.install_registry(imputils.builtin_registry)
        self.install_registry(mathimpl.registry)  # abs

    def refresh(self) -> None:
        # Numba refreshes for each call of an intrinsic; looking through its registries takes a millisecond.
        registered = sum(map(len, vars(imputils.builtin_registry).values()))
        registered += sum(map(len, vars(templates.builtin_registry).values()))
        if registered != self._registered:
            super().refresh()
            self._registered = registered

    def get_abi_sizeof(self, ty: Any) -> int:
        # Of a variable, for debuggers, which have nothing to read here: no intrinsic may ask for it. Numba would ask
        # LLVM, and so wait until it has compiled the kernel before.
        return 0

    def post_lowering(self, module: Any, library: Any) -> None:
        """Do nothing: kernels do not use Numba's run time."""


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
    passes: tuple[Any, ...] = _PASSES

    def define_pipelines(self) -> list[Any]:
        manager = PassManager(_TARGET)
        for step in self.passes:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class _CalleeCompiler(_FunctionCompiler):
    """Compiles functions that kernels call, for given types."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        return _compiled(FunctionSource.of(self.py_func), args, return_type)


def _register() -> Any:
    target_registry[_TARGET] = _Target
    descriptor = _Descriptor()

    class Dispatcher(dispatcher.Dispatcher):
        targetdescr = descriptor

        def __init__(self, function: Any, *arguments: Any, **options: Any) -> None:
            super().__init__(function, *arguments, **options)
            self._compiler = _CalleeCompiler(function, descriptor, self.targetoptions, self.locals, _Pipeline)

        def add_overload(self, result: Any) -> None:
            self.overloads[tuple(result.signature.args)] = result

    dispatcher_registry[_Target] = Dispatcher
    # Numba implements some functions in Python, such as min.
    jit_registry[_Target] = lambda **options: _callable
    return descriptor


def _callable(function: Any) -> Any:
    """Return a Python function as one that kernels may call."""
    return dispatcher_registry[_Target](
        function, targetoptions={"error_model": "numpy"}, pipeline_class=_Pipeline
    )


_descriptor = _register()


@cache
def namespace() -> dict[str, Any]:
    """Return the names that emitted source may use, as functions and types that Numba compiles, but those of loops."""
    names: dict[str, Any] = {}
    for suffix, dtype in DTYPES.items():
        names[suffix] = bool if dtype.kind == "b" else dtype.type
    names.update(pointers.FUNCTIONS)
    names.update(scalar.FUNCTIONS)
    names.update(tiles.FUNCTIONS)
    names.update(lanes.FUNCTIONS)
    names.update(searches.FUNCTIONS)
    names.update(pairs.FUNCTIONS)
    names.update(transforms.FUNCTIONS)
    names.update(ufunc_loops.FUNCTIONS)
    return names


@cache
def _loops() -> dict[str, Any]:
    """Return the functions of kernels/ that emitted source may call, as Python has them."""
    return {**loop_functions(), **blas.FUNCTIONS}


@cache
def _loop(name: str) -> Any:
    """Return one of these functions as one that Numba compiles: that takes a millisecond, and a kernel calls few."""
    return _callable(_loops()[name])


def lower(kernel: Kernel, further: Mapping[str, Any] = MappingProxyType({})) -> LlvmFunction:
    """Return a kernel as LLVM IR.

    Args:
        kernel: the kernel.
        further: functions of a device that its source may call besides those of the CPU, by name.

    Raises:
        CodegenError: if Python or Numba refuses the source.
    """
    try:
        tree = parsed(kernel.text)
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names = {**namespace(), **{name: _loop(name) for name in mentioned & _loops().keys()}, **further}
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        whole = parted(definition)
        is_of_tiles = any(words in kernel.text for words in _ONLY_TILES)
        source = FunctionSource(
            None if further and _MANY_VALUES in kernel.text else whole,
            names,
            lambda: _defined(tree, kernel.name, names),
            _hidden_loops(kernel, whole),
        )
        lowered = lower_function(source, _KERNEL_ARGUMENTS, types.none, kernel.name)
        if _INTEGERS.search(kernel.text):
            lowered = lowered._replace(texts=tuple([text.replace(" nsw ", " ") for text in lowered.texts]))
        return lowered._replace(passes=OF_TILES) if is_of_tiles else lowered
    except Exception as error:
        if is_of_handler(error):
            raise
        raise CodegenError(
            f"the emitted kernel {kernel.name} could not be compiled. This is a defect of tracejit; please report it "
            f"with this source:\n{kernel.text}"
        ) from error


def _hidden_loops(kernel: Kernel, definition: ast.FunctionDef) -> frozenset[ast.AST]:
    """Return the loops of a kernel whose counters LLVM is not to see (Note [hidden counters])."""
    if _TRANSFORMS not in kernel.text or f"add_outer_f32x{vector_bytes() // 4}(" in kernel.text:
        return frozenset()
    return frozenset(node for node in ast.walk(definition) if isinstance(node, ast.For))


def _defined(tree: ast.Module, name: str, names: dict[str, Any]) -> Any:
    """Return the function that a module defines."""
    exec(compile(tree, f"<tracejit kernel {name}>", "exec"), names)
    return names[name]


class FunctionSource(NamedTuple):
    """A function of Python.

    definition      its definition; None if there is none
    names           what the names mean that it does not assign
    function        returns the function
    hidden          the loops whose counters LLVM is not to see
    """

    definition: ast.FunctionDef | None
    names: Mapping[str, Any]
    function: Callable[[], Any]
    hidden: frozenset[ast.AST] = frozenset()

    @classmethod
    def of(cls, function: Any) -> "FunctionSource":
        """Return the source of a function in a file."""
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        names = {**function.__globals__, **dict(zip(function.__code__.co_freevars, cells, strict=True))}
        definition = None
        with suppress(OSError, SyntaxError):
            definition = next(iter(parsed(textwrap.dedent(inspect.getsource(function))).body), None)
        if not isinstance(definition, ast.FunctionDef) or not defines(definition, function):
            return cls(None, names, lambda: function)
        return cls(parted(definition), names, lambda: function)


def _compiled(source: FunctionSource, arguments: tuple[Any, ...], result: Any) -> Any:
    """Return a function for given types, as Numba does.

    Args:
        source: the function.
        arguments: the types of its arguments.
        result: the type of its result; None if it follows from what it returns.
    """
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    typing_context, context = _descriptor.typing_context, _descriptor.target_context
    typing_context.refresh()
    context.refresh()
    with suppress(UnsupportedError, errors.NumbaError):
        context = compiler._make_subtarget(context, flags)
        library, described = write_function(
            context, source.definition, source.names, arguments, result, source.hidden
        )
        context.insert_user_function(described, described, [library])
        return compiler.compile_result(
            typing_context=typing_context, target_context=context, entry_point=described, library=library,
            signature=signature(described.restype, *arguments), fndesc=described, objectmode=False,
        )  # fmt: skip
    return compiler.compile_extra(
        typing_context, context, source.function(), arguments, result, flags, {}, pipeline_class=_Pipeline
    )


def lower_function(
    source: FunctionSource, arguments: tuple[Any, ...], result: Any, symbol: str
) -> LlvmFunction:
    """Return a Python function of numbers as LLVM IR that defines the C function `symbol`."""
    with global_compiler_lock, target_override(_TARGET):
        compiled = _compiled(source, arguments, result)
    # No other kernel calls it; Numba would keep its IR, 1 MB, for those that might.
    _descriptor.target_context.remove_user_function(compiled.fndesc)
    modules = [*compiled.library.modules]
    _add_entry(modules[-1], compiled.fndesc, symbol)
    values = [value for module in modules for value in module.global_values]
    if len(modules) == 1:
        for value in values:
            # LLVM's own lists (llvm.compiler.used) need a linkage of their own.
            if value.name != symbol and not value.name.startswith("llvm.") and not _is_declared(value):
                value.linkage = "internal"
    declares = {value.name for value in values if _is_declared(value) and not value.name.startswith("llvm.")}
    return LlvmFunction(symbol, tuple(map(str, modules)), frozenset(declares))


def _is_declared(value: Any) -> bool:
    """Return whether a module declares a function or variable without defining it."""
    return value.is_declaration if isinstance(value, ir.Function) else value.initializer is None


def _add_entry(module: Any, described: Any, symbol: str) -> None:
    """Add the C function `symbol`: it calls the compiled function and ignores the status, as kernels do not raise."""
    context = _descriptor.target_context
    convention = context.call_conv
    result, arguments = described.restype, described.argtypes
    returned = ir.VoidType() if result == types.none else context.get_value_type(result)
    kind = ir.FunctionType(returned, [context.get_value_type(argument) for argument in arguments])
    entry = ir.Function(module, kind, symbol)
    callee = module.get_global(described.llvm_func_name)
    width = pointers.NARROW if pointers.NARROW in callee.attributes else pointers.WIDEST
    set.add(entry.attributes, width)  # the code is inlined, the attributes of its function are not
    builder = ir.IRBuilder(entry.append_basic_block())
    _, value = convention.call_function(builder, callee, result, arguments, entry.args)
    if result == types.none:
        builder.ret_void()
    else:
        builder.ret(value)
