# SPDX-License-Identifier: BSD-3-Clause
"""The part of docs/functions.md on scipy.special: SciPy's own list of ufuncs, with the derivatives that there are."""

from functools import cache
from textwrap import wrap

import numpy as np

from tracejit.functions.special_ufuncs import ALIASES, OPERANDS, OWN
from tracejit.ops import OPS, Kind
from tracejit.ops.rules import UNKNOWN, ZERO
from tracejit.ops.special import RULES
from tracejit.ops.ufunc_loops import PREFIX


@cache
def real_ufuncs() -> dict[str, np.ufunc]:
    """Return the ufuncs of scipy.special that compute real numbers of real ones, by name."""
    import scipy.special

    found = {name: getattr(scipy.special, name) for name in dir(scipy.special) if not name.startswith("_")}
    return {
        name: ufunc
        for name, ufunc in found.items()
        if isinstance(ufunc, np.ufunc)
        and ufunc.signature is None
        and any(set(types.replace("->", "")) <= set("fdl") for types in ufunc.types)
    }


def is_supported(name: str) -> bool:
    return ALIASES.get(name, name) in OPERANDS


def derivatives(name: str) -> str:
    """Return which derivatives of a function there are."""
    known = ALIASES.get(name, name)
    rules = RULES.get(known, (ZERO if name == "round" else None,))
    if known in OWN:
        return "none" if name == "round" else "yes"
    numbers = [str(i + 1) for i, rule in enumerate(rules) if callable(rule)]
    steps = all(rule is ZERO for rule in rules)
    if len(numbers) == len(rules):
        return "yes"
    if not numbers:
        return "none" if steps else "error"
    missing = [str(i + 1) for i, rule in enumerate(rules) if rule is UNKNOWN]
    return f"by {', '.join(numbers)}" + (f"; by {', '.join(missing)}: error" if missing else "")


def own_code() -> str:
    """Return the sentence about the functions that have code of their own."""
    names = [name.removeprefix(PREFIX) for name, op in OPS.items() if name.startswith(PREFIX)
             and op.kind is Kind.ELEMENTWISE]  # fmt: skip
    listed = ", ".join(f"`{name}`" for name in sorted(names)[:-1])
    return (
        f"Only {listed} and `{max(names)}` have vector code of their own in programs, which shares loops with other "
        "operations. Their errors are below 8 units of the last place of float64, and below 5 for all except `i1` and "
        "`i1e`. Near the roots of `gammaln` and `psi` below 0 they are larger, as SciPy's are. float32 results are "
        "those of float64, rounded. Numbers where a domain ends are SciPy's."
    )


def section() -> list[str]:
    """Return the lines of the page."""
    ufuncs = real_ufuncs()
    few = [name for name, ufunc in ufuncs.items() if ufunc.nin <= 2]
    have = [name for name in few if is_supported(name)]
    slopes = [name for name in have if derivatives(name) not in ("error",)]
    paragraphs = [
        f"Of the {len(few)} real functions of one and two operands among the ufuncs of `scipy.special`, {len(have)} "
        f"({100 * len(have) // len(few)} %) work, and {len(slopes)} of them have derivatives; of all {len(ufuncs)}, "
        f"{sum(map(is_supported, ufuncs))} work. `scipy.special.name(x)` and `tj.special.name(x)` are the same, "
        "eager and accelerated. Dtypes are SciPy's, and so are numbers: a program runs the loop of SciPy's own ufunc, "
        "by its address.",
        own_code(),
        "*Derivatives* says by which operands there are derivatives. By any other operand `dlgradient` raises a "
        "GradientError.",
        "`tj.special` also has functions that SciPy writes in Python: `logsumexp`, `softmax`, `log_softmax`, "
        "`polygamma`, `multigammaln`, `zeta`, `comb`, `perm`, `factorial`, `sinc`, `jvp`, `yvp`, `ivp`, `kvp`, "
        "spherical Bessel functions, `hankel1` and `hankel2` of real operands, `sph_harm_y`, and `wofz` and `lambertw` "
        "of complex numbers.",
    ]
    return [
        "## SciPy's special functions",
        "",
        *(line for text in paragraphs for line in (*wrap(text, 118, break_on_hyphens=False), "")),
        "| function | operands | derivatives |",
        "|---|---|---|",
        *[
            f"| `scipy.special.{name}` | {ufunc.nin} | {derivatives(name)} |"
            for name, ufunc in ufuncs.items()
            if is_supported(name)
        ],
        "",
    ]
