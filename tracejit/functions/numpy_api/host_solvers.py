# SPDX-License-Identifier: BSD-3-Clause
"""Functions of SciPy's sparse matrices and linear operators that programs call, and their adjoints.

Note [adjoints of solvers]
The solution x of A x = b is linear in b, so its adjoint solves with the transposed matrix; that of a product multiplies
by it. A cotangent c is that of Re(c dx) (Note [adjoints of complex matrices] in host_matrix_rules.py), so matrices are
transposed and not conjugate. An iterative solver gets the options that the user's call has, and starts from zero.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from tracejit.errors import GradientError, TraceJitWarning
from tracejit.functions.numpy_api.host_matrix_rules import Rule, conj, like, node_of
from tracejit.tree import unflatten

_SYMMETRIC = frozenset({"cg", "minres"})
_ITERATIVE = frozenset(
    {"bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "qmr", "tfqmr", *_SYMMETRIC}
)  # which return whether they have found the solution
LINEAR = frozenset({"expm_multiply", "lsmr", "lsqr", "spsolve", "spsolve_triangular", *_ITERATIVE})
"""Functions of scipy.sparse.linalg that are linear in their second argument."""

_PRECONDITIONERS = frozenset({"M", "M1", "M2"})
_NOT_IN_ADJOINT = frozenset({"x0", "overwrite_A", "overwrite_b"})
# Options with which the result is more than a linear function of one array, or does not come from one matrix.
_WITHOUT_ADJOINT = frozenset({"callback", "num", "start", "stop", "endpoint", "CU", "outer_v"})


class System:
    """A matrix or linear operator, and a function of SciPy's that is linear in another argument.

    Args:
        name, function: of scipy.sparse.linalg.
        matrix: the first argument.
        fixed: options that are no arrays of the program, such as preconditioners.
    """

    __slots__ = ("fixed", "function", "matrix", "name")

    def __init__(self, name: str, function: Callable[..., Any], matrix: Any, fixed: dict[str, Any]) -> None:
        self.name, self.function, self.matrix, self.fixed = name, function, matrix, fixed

    def size(self, transposed: bool) -> int:
        """Return how many rows a solution has."""
        return int(self.matrix.shape[0 if transposed else 1])

    def transposed(self) -> Any:
        """Return the transposed matrix, in a format that the function reads without a warning."""
        matrix = self.matrix
        if self.name in _SYMMETRIC and np.dtype(matrix.dtype).kind != "c":
            return matrix
        if self.name.startswith("spsolve"):
            return matrix.T.tocsc() if self.name == "spsolve" else matrix.T.tocsr()
        return matrix.T

    def transposed_options(self) -> dict[str, Any]:
        """Return the fixed options that go with the transposed matrix."""
        if self.name in _SYMMETRIC:
            return self.fixed
        wrapped = sys.modules["scipy.sparse.linalg"].aslinearoperator
        return {
            name: wrapped(given).T if name in _PRECONDITIONERS and given is not None else given
            for name, given in self.fixed.items()
        }


def solved(system: System, b: Any, **options: Any) -> Any:
    """Return what SciPy's function returns."""
    return system.function(system.matrix, b, **options, **system.fixed)


def solved_for_adjoint(system: System, ct: Any, *, transposed: bool, **options: Any) -> Any:
    """Return the solution for a cotangent, with the transposed matrix or with that of the user's call.

    Raises:
        GradientError: if a linear operator cannot be transposed.
    """
    matrix, fixed = (
        (system.transposed(), system.transposed_options()) if transposed else (system.matrix, system.fixed)
    )
    if system.name == "spsolve_triangular" and transposed:
        options["lower"] = not options.get("lower", True)
    try:
        found = system.function(matrix, ct, **options, **fixed)
    except NotImplementedError:
        try:  # a preconditioner is only a help
            given = {name: part for name, part in fixed.items() if name not in _PRECONDITIONERS}
            found = system.function(matrix, ct, **options, **given)
        except NotImplementedError:
            raise _without_transpose(system.name) from None
    if isinstance(found, tuple):
        if system.name in _ITERATIVE and found[1]:
            warnings.warn(
                f"scipy.sparse.linalg.{system.name}: the system of the derivative was not solved (info={found[1]}), "
                "so that gradients are not exact; allow more iterations (maxiter=) or a larger error (rtol=).",
                TraceJitWarning,
                stacklevel=2,
            )
        found = found[0]
    shape = (system.size(transposed), *np.shape(ct)[1:])
    return np.asarray(found, dtype=ct.dtype).reshape(shape)


def _without_transpose(what: str) -> GradientError:
    return GradientError(
        f"scipy.sparse.linalg.{what}: the derivative needs the transposed linear operator, which has no rmatvec; give "
        "LinearOperator(shape, matvec, rmatvec=f) with f(x) = A^H x."
    )


def _of_solution(system: System, b: Any, node: Any, ct: Any) -> Any:
    first, *others = ct if isinstance(ct, (tuple, list)) else (ct,)
    options = _options_of(node)
    if first is None or any(part is not None for part in others) or not _WITHOUT_ADJOINT.isdisjoint(options):
        return None
    kept = {
        name: given for name, given in options.items() if name not in _NOT_IN_ADJOINT and not _is_array(given)
    }
    return (_again(system, b, node, first, True, kept), *[None] * (len(node.inputs) - 1))


def _of_adjoint(system: System, b: Any, node: Any, ct: Any) -> Any:
    options = _options_of(node)
    return (_again(system, b, node, ct, not options.pop("transposed"), options),)


def _again(system: System, b: Any, node: Any, ct: Any, transposed: bool, options: dict[str, Any]) -> Any:
    given = node.inputs[0]
    aval = ct.aval._replace(shape=(system.size(transposed), *ct.shape[1:]))
    method = MethodType(solved_for_adjoint, system)
    found = node_of(b, method, (ct,), [aval], {**options, "transposed": transposed})
    return like(b, b.reshape(found, shape=given.shape), given)


def _options_of(node: Any) -> dict[str, Any]:
    """Return the arguments of a call that go by their names, with a place for each array."""
    arguments = node.params["arguments"]
    _, options = unflatten(arguments.structure, list(arguments.leaves))
    return dict(options)


def _is_array(given: Any) -> bool:
    return hasattr(given, "form")  # the place of one


def factored(factors: Any, b: Any, trans: str = "N") -> Any:
    """Return the solution that the factors of a sparse matrix give (SuperLU.solve)."""
    return vars(type(factors))["solve"](factors, b, trans)


def _of_factored(factors: Any, b: Any, node: Any, ct: Any) -> Any:
    (given,) = node.inputs
    trans = node.params["arguments"].option("trans", "N", 1)
    kept = "T" if trans == "N" else "N"
    turned = conj(b, ct) if trans == "H" else ct
    found = node_of(b, MethodType(factored, factors), (turned,), [ct.aval], {"trans": kept})
    return (like(b, conj(b, found) if trans == "H" else found, given),)


def product(operator: Any, x: Any, transposed: bool) -> Any:
    """Return the product of a linear operator, or of the transposed one, and an array.

    Raises:
        GradientError: if the operator cannot be transposed.
    """
    try:
        return np.asarray((operator.T if transposed else operator) @ x, dtype=x.dtype)
    except NotImplementedError:
        raise _without_transpose("LinearOperator") from None


def of_product(operator: Any, b: Any, node: Any, ct: Any, transposed: bool = False) -> Any:
    """Return the cotangent of what a linear operator, transposed or not, was multiplied by."""
    (given,) = node.inputs
    aval = ct.aval._replace(shape=given.shape)
    found = node_of(b, MethodType(product, operator), (ct,), [aval], {"transposed": not transposed})
    return (like(b, found, given),)


def of_product_from_left(operator: Any, b: Any, node: Any, ct: Any) -> Any:
    """Return the cotangent of what the adjoint of a linear operator, A^H, was multiplied by."""
    (found,) = of_product(operator, b, node, conj(b, ct), transposed=True)
    return (conj(b, found),)


def _of_any_product(operator: Any, b: Any, node: Any, ct: Any) -> Any:
    return of_product(operator, b, node, ct, node.params["arguments"].option("transposed", False, 1))


MethodRule = Callable[[Any, Any, Any, Any], Any]
_RULES: dict[Callable[..., Any], MethodRule] = {
    solved: _of_solution,
    solved_for_adjoint: _of_adjoint,
    factored: _of_factored,
    product: _of_any_product,
}
"""Rules of methods: of their objects, and of (b, node, ct)."""


def add_rule(method: Callable[..., Any], rule: MethodRule) -> None:
    """Give a method of a class of SciPy's its adjoint."""
    _RULES[method] = rule


def rule_of(method: MethodType) -> Rule | None:
    """Return the adjoint of a method of an object, if it has one."""
    rule = _RULES.get(method.__func__)
    return None if rule is None else partial(rule, method.__self__)
