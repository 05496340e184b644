# SPDX-License-Identifier: BSD-3-Clause
"""Steps of Numba's compiler without what kernels do not need. Importing this module imports Numba.

Note [less work for the same code]
Numba looks for an implementation of each operator three times: when it infers types, for operands that are constants
(kernels have none of these implementations), and for operands of the types that were inferred. The first answer is
enough. It reads the signature of each implementation again whenever it is called. And it searches all statements for
`with` and for dictionaries, which kernels do not have. To leave that out takes a quarter of its time away, and object
code stays the same to the byte.
"""

import operator
from typing import Any

from numba.core import cpu, interpreter, lowering
from numba.core.compiler_machinery import FunctionPass, register_pass

_NEEDLESS = {"peep_hole_delete_with_exit", "peep_hole_fuse_dict_add_updates"}


class _Interpreter(interpreter.Interpreter):
    """Translates the bytecode of functions without `with` and dictionaries."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        return super().post_process([step for step in peepholes if step.__name__ not in _NEEDLESS], func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class Translate(FunctionPass):
    """Translates bytecode to Numba IR."""

    _name = "tracejit_translate"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True


class Lower(lowering.Lower):
    """Lowers Numba IR to LLVM IR with the implementations that were chosen when types were inferred."""

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        function = self.context.typing_context.resolve_value_type(op)
        return self._applied(function, (expr.lhs, expr.rhs), self.fndesc.calltypes[expr], resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        function = self.context.typing_context.resolve_value_type(operator.getitem)
        return self._applied(function, (value, index), signature, resty)

    def _applied(self, function: Any, variables: tuple[Any, Any], signature: Any, result: Any) -> Any:
        """Return what a function gives for two variables, as a value of a type."""
        context, builder = self.context, self.builder
        loaded = [self.loadvar(variable.name) for variable in variables]
        values = [
            context.cast(builder, value, self.typeof(variable.name), kind)
            for variable, value, kind in zip(variables, loaded, signature.args, strict=True)
        ]
        resolved = context.typing_context.resolve_function_type(function, signature.args, {})
        found = context.get_function(function, resolved)(builder, values)
        return context.cast(builder, found, signature.return_type, result)


class Context(cpu.CPUContext):
    """Knows the implementations of functions; keeps them until functions are added or removed."""

    def init(self) -> None:
        self._found: dict[Any, Any] = {}

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
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
