# SPDX-License-Identifier: BSD-3-Clause
"""Ops of special functions: one record for each real ufunc of scipy.special, which computes it.

The adjoint of a function is one formula for each operand (special_rules.py). For an operand without a formula,
dlgradient raises an error.
"""

from collections.abc import Callable
from typing import Any

from tracejit.errors import GradientError
from tracejit.ops.expressions import Expression, Functions
from tracejit.ops.op import Op, Sample, Vjp
from tracejit.ops.rules import UNKNOWN, ZERO, Rule
from tracejit.ops.special_rules import ONE, SEVERAL
from tracejit.ops.ufunc_loops import PREFIX, loop_op

_RULES: dict[str, tuple[Rule, ...]] = {**{name: (rule,) for name, rule in ONE.items()}, **SEVERAL}
_RESULTS: dict[str, int] = {
    "airy": 4, "airye": 4, "itairy": 4, "ellipj": 4, "fresnel": 2, "sici": 2, "shichi": 2, "iti0k0": 2, "itj0y0": 2,
    "it2i0k0": 2, "it2j0y0": 2, "pbdv": 2, "pbvv": 2, "pbwa": 2,
}  # fmt: skip
"""The number of results, where there are several."""

_WITHOUT = {
    (1, 1): "_kolmogp",
    (2, 1): "_smirnovp",
    (3, 1): """
        bdtrik bdtrin besselpoly chndtridf chndtrinc chndtrix elliprg nbdtrik nbdtrin
        nctdtr nctdtridf nctdtrinc nctdtrit obl_cv pro_cv voigt_profile""",
    (3, 2): "mathieu_cem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 mathieu_sem",
    (4, 1): "elliprj ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc",
    (4, 2): "obl_ang1 obl_rad1 obl_rad2 pro_ang1 pro_rad1 pro_rad2",
    (5, 2): "obl_ang1_cv obl_rad1_cv obl_rad2_cv pro_ang1_cv pro_rad1_cv pro_rad2_cv",
}
"""Functions without any formula, by the numbers of operands and results."""

_DOMAIN = (0.3, 0.9)
_DOMAINS: dict[str, tuple[float, float]] = {
    "gamma": (0.5, 4.0), "gammaln": (0.5, 8.0), "loggamma": (0.5, 8.0), "rgamma": (-3.8, 3.8), "psi": (0.5, 8.0),
    "erfc": (-2.0, 3.0), "erfcx": (-2.0, 5.0), "erfi": (-2.0, 2.0), "dawsn": (-3.0, 3.0), "ndtr": (-3.0, 3.0),
    "log_ndtr": (-20.0, 4.0), "ndtri": (0.05, 0.95), "ndtri_exp": (-9.0, -0.1), "erfinv": (-0.9, 0.9),
    "erfcinv": (0.1, 1.9), "i0": (-5.0, 5.0), "i1": (-5.0, 5.0), "j0": (-9.0, 9.0), "j1": (-9.0, 9.0),
    "y0": (0.5, 9.0), "y1": (0.5, 9.0), "k0": (0.5, 9.0), "k1": (0.5, 9.0), "expi": (0.5, 4.0), "exp1": (0.2, 4.0),
    "exprel": (-2.0, 3.0), "log_expit": (-9.0, 9.0), "cosm1": (-2.0, 2.0), "sindg": (-200.0, 200.0),
    "cosdg": (-200.0, 200.0), "airy": (-4.0, 2.0), "fresnel": (-2.0, 3.0), "sici": (0.5, 6.0),
    "ellipk": (-2.0, 0.9), "ellipe": (-2.0, 0.9), "spence": (0.2, 3.0), "wrightomega": (-3.0, 3.0),
    "kl_div": (0.3, 2.0), "rel_entr": (0.3, 2.0), "beta": (0.5, 3.0), "betaln": (0.5, 3.0),
    "kolmogorov": (0.4, 1.5), "elliprd": (0.5, 2.0), "poch": (0.5, 3.0), "stdtridf": (0.7, 0.72),
    "fdtridfd": (0.45, 0.6), "huber": (0.3, 2.0),
}  # fmt: skip


_ROUNDED = (
    "_smirnovp", "bdtr", "bdtrc", "bdtri", "expn", "kn", "nbdtr", "nbdtrc", "nbdtri", "pdtri", "smirnov", "smirnovi",
    "yn",
)  # fmt: skip
"""Functions that round an operand and warn if that changes it. A warning needs Python's lock, which the thread that
called the program may hold, so their loops run in that thread."""


_COSTS = {
    "entr": 35, "erfc": 90, "erfcx": 90, "erfinv": 140, "gammaln": 200, "i0": 110, "i0e": 85, "i1": 110, "i1e": 85,
    "log_ndtr": 130, "logit": 60, "ndtr": 80, "ndtri": 140, "psi": 200, "xlog1py": 45, "xlogy": 35,
}  # fmt: skip
"""Functions with vector code of their own (kernels/intrinsics/special.py)."""


def _adjoint(name: str, rules: tuple[Rule, ...]) -> Vjp | None:
    if all(rule is ZERO for rule in rules):
        return None

    def adjoint(b: Any, node: Any, ct: Any) -> list[Any]:
        cts = ct if isinstance(ct, tuple) else (ct,)
        return [
            None if rule is ZERO else _contribution(name, i, rule, b, node, cts)
            for i, rule in enumerate(rules)
        ]

    return adjoint


def _contribution(name: str, operand: int, rule: Rule, b: Any, node: Any, cts: Any) -> Callable[[], Any]:
    """Return the function that builds the cotangent of an operand."""

    def build() -> Any:
        if not callable(rule):
            raise GradientError(
                f"special.{name}: there is no formula for its derivative by operand {operand + 1}; pass an "
                "operand that does not depend on the variables (stop_gradient cuts a dependence)."
            )
        results = [Expression(b, value) for value in node.outputs]
        y = results[0] if len(results) == 1 else results
        slopes = rule(Functions(b, PREFIX), *[Expression(b, value) for value in node.inputs], y)
        derivatives = slopes if isinstance(slopes, tuple) else (slopes,)
        parts = [b.mul(ct, part.value) for ct, part in zip(cts, derivatives, strict=True) if ct is not None]
        total = parts[0]
        for part in parts[1:]:
            total = b.add(total, part)
        return total

    return build


_SHAPES = ((2, 3), (3,), (), (2, 1), (1,))


def _record(name: str, count: int, results: int, rules: tuple[Rule, ...]) -> Op:
    doc = f"scipy.special.{name}; derivatives: " + ", ".join(map(_kind_of_rule, rules))
    samples, domain = (Sample(_SHAPES[:count]),), _DOMAINS.get(name, _DOMAIN)
    ns = None if name in _ROUNDED else 40.0 * count
    return loop_op(name, count, results, doc, _adjoint(name, rules), samples, domain, ns, _COSTS.get(name))


def _kind_of_rule(rule: Rule) -> str:
    return "a formula" if callable(rule) else "0" if rule is ZERO else "none"


RULES: dict[str, tuple[Rule, ...]] = {
    **_RULES,
    **{name: (UNKNOWN,) * count for (count, _), listed in _WITHOUT.items() for name in listed.split()},
}
RESULTS: dict[str, int] = {
    **_RESULTS,
    **{name: results for (_, results), listed in _WITHOUT.items() for name in listed.split()},
}
OPS = tuple([_record(name, len(rules), RESULTS.get(name, 1), rules) for name, rules in RULES.items()])
