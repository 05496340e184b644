# SPDX-License-Identifier: BSD-3-Clause
"""The page docs/functions.md: every public function of NumPy's main namespace, and its state on traced arrays.

`python tests/support/functions_page.py` writes it. What it says comes from the tables of answers, from the calls of
numpy_grid.py, which the tests compute, and from NumPy's own list of names.
"""

import re
from pathlib import Path

import numpy as np
import special_page
from numpy_grid import BY_FUNCTION

from tracejit.functions.numpy_api import implementations, table, ufuncs, writes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"

SUBJECTS = {module.__name__.rpartition(".")[2]: module for module in (*implementations.SUBJECTS, ufuncs)}
LATE = {module.__name__.rpartition(".")[2] for module in implementations.SUBJECTS}
"""The subjects of the answers that are loaded when the first of them is called."""
OUTSIDE = {  # reason: functions that take no array of numbers, or give no numbers
    "makes an array of sizes, constants or a buffer; NumPy's own runs": """
        arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray bartlett blackman
        broadcast_shapes diag_indices empty eye from_dlpack frombuffer fromfile fromfunction fromiter fromregex
        fromstring full genfromtxt hamming hanning identity indices kaiser load loadtxt mask_indices ones require tri
        tril_indices triu_indices zeros
    """,
    "answers a question about dtypes, memory or objects; NumPy's own runs": """
        can_cast isdtype isfortran isscalar issubdtype iterable may_share_memory min_scalar_type mintypecode
        promote_types shares_memory typename
    """,
    "writes files or text; refused for a traced array, because a replay writes nothing": """
        array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific save
        savetxt savez savez_compressed
    """,
    "settings and information": """
        get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize seterr
        seterrcall show_config show_runtime test
    """,
    "dates, objects, iterators, and what NumPy has replaced": """
        asmatrix bmat busday_count busday_offset datetime_as_string datetime_data frompyfunc is_busday isnat
        nested_iters row_stack in1d trapz
    """,
}
IN_PYTHON = {  # function: what it does
    "roots": "NumPy's own function runs, also within programs, as a call of Python; with a derivative",
}
WRITERS = sorted(function.__name__ for function in writes.WRITERS)
RULES = {  # of the modules of the toolbox, whose functions' docstrings say more
    "elementwise": "Operands are aligned by label, and the result has the merged format.",
    "reductions": "A reduced axis takes its label with it; `keepdims` keeps it.",
    "linear": "Axes that stay keep their labels.",
    "movement": "Labels move with their axes; a new axis is labelled U.",
    "indexing": "A place along an axis keeps the label; new axes are labelled U.",
    "creation": "The format is that of the array.",
    "writes": "They [write into arrays](views_and_writes.md), whose labels stay.",
    "table": "Answers to questions have no format; the other functions are those of the toolbox.",
}


def names() -> list[str]:
    """Return the public functions of NumPy's main namespace, without classes and modules."""
    found = [name for name in dir(np) if not name.startswith("_")]
    return [name for name in found if callable(getattr(np, name)) and not isinstance(getattr(np, name), type)]


def subject(name: str) -> str | None:
    """Return the module whose table answers a function, or that the answer is in; None where there is no answer."""
    function = getattr(np, name)
    if isinstance(function, np.ufunc):
        if function in table.UFUNCS:
            return "elementwise" if function is not np.matmul else "linear"
        return "ufuncs" if function in implementations.UFUNCS else None
    if function in writes.WRITERS:
        return "writes"
    if function in table.FUNCTIONS:
        return str(table.FUNCTIONS[function].__module__.rpartition(".")[2])
    found = [module for module in implementations.SUBJECTS if function in module.FUNCTIONS]
    return found[0].__name__.rpartition(".")[2] if found else None


def outside() -> dict[str, str]:
    """Return the reason for each function that is not about numbers."""
    return {name: reason for reason, listed in OUTSIDE.items() for name in listed.split()}


def gradients_on_the_page() -> dict[str, bool]:
    """Return what the page says: whether each function has a gradient."""
    rows = re.findall(r"(?m)^\| `np\.(\w+)` \| (yes|none) \|$", PAGE.read_text())
    return {name: state == "yes" for name, state in rows}


def listed(text: str) -> set[str]:
    """Return the functions in the rows of a page."""
    return set(re.findall(r"(?m)^\| `np\.(\w+)` \|", text))


def rule(module: str) -> str:
    """Return the sentence on formats in the docstring of a module of implementations."""
    if module in RULES:
        return RULES[module]
    text = SUBJECTS[module].__doc__ or ""
    found = re.search(r"Labels:? (.*)", " ".join(text.split()))
    assert found is not None, f"{module} does not say what it does to labels"
    return found[1][0].upper() + found[1][1:]


def page(gradients: dict[str, bool]) -> str:
    """Return the text of the page; `gradients` says which functions have one."""
    reasons = outside()
    supported = [name for name in names() if subject(name)]
    numeric = [*supported, *(name for name in IN_PYTHON if hasattr(np, name))]
    lines = [HEAD.format(count=len(numeric))]
    by_subject: dict[str, list[str]] = {}
    for name in supported:
        by_subject.setdefault(subject(name) or "", []).append(name)
    for module in (module for module in TITLES if module in by_subject):
        lines += [f"## {TITLES[module]}", "", rule(module), ""]
        lines += ["| function | gradient |", "|---|---|"]
        lines += [
            f"| `np.{name}` | {'yes' if gradients.get(name, False) else 'none'} |"
            for name in by_subject[module]
        ]
        lines.append("")
    lines += special_page.section()
    lines += ["## In Python", "", "| function | |", "|---|---|"]
    lines += [f"| `np.{name}` | {what} |" for name, what in IN_PYTHON.items()]
    lines += ["", "## Not about numbers", "", "| function | |", "|---|---|"]
    lines += [f"| `np.{name}` | {reasons[name]} |" for name in names() if name in reasons]
    return "\n".join(lines) + "\n"


HEAD = """# NumPy's functions

Under NumPy's names dlarrays answer all {count} functions of the main namespace that compute with numbers. Each gives
NumPy's numbers and dtypes uncompiled, and is recorded and replayed by an accelerated function. *Gradient* says
whether `dlgradient` differentiates it; *none* stands where the result consists of integers, truth values or steps.

This page is generated by `python tests/support/functions_page.py`.

## Differences from NumPy

- The places of equal elements are in order in every `argsort`, and the values of `np.unique_values` are sorted. Zeros
  of both signs keep their order in a sort with `kind="stable"` or `stable=True`; in others they come in any order.
- The number of elements of some results depends on values: on how many differ, or on where a condition holds. That
  number is [guarded](soundness.md): another number is recorded again.
- `float(x)`, `int(x)` and `x.item()` give numbers of Python, which vary as `x` does, and [keep its
  derivative](soundness.md#numbers-that-vary).
- `np.frompyfunc` is refused, because its results are objects; `np.vectorize` gives numbers. `np.ma` is refused too.
- NumPy's generators take traced parameters, such as `rng.normal(x, 1.0)`: [in replays they draw
  anew](random.md).
- `np.asmatrix` and `np.bmat` are refused. A function that returns an `np.poly1d` runs uncompiled.
- Sizes, places of cuts, shifts and axes may be integers in an array, `np.split(x, cuts)`; the elements of one that is
  traced are guards.

## Ufuncs

Their methods (`reduce`, `accumulate`, `outer`, `reduceat`, `at`) and the arguments `axis`, `keepdims`, `dtype`,
`initial`, `where` and `out` work as in NumPy. Where a ufunc has no op for a whole axis, `reduce` and `accumulate`
apply it to one element after the other, and record as many operations as the axis has elements; `where` is refused
there for a ufunc without an identity, such as `np.subtract`. `order="F"` and `signature=` are refused; other values of
`order=` change nothing.

## What takes traced arrays while code is recorded

- `np.r_` and `np.c_`.
- Functions that `np.vectorize` made. Such a function is called once, with an element of each operand, and what it
  computes is computed for all. Where it chooses with `if`, and not with `np.where`, it is called for each of up to
  256 elements, whose branches are guarded.
- Functions and classes of NumPy that ask no array whether it answers for them. These are ufuncs and other functions
  of lists (`np.exp([a, b])`), numbers of a type (`np.float32(a)`, `np.float64(x)`), `np.nditer`, `np.ndenumerate`,
  `np.fromiter`, `np.arange` of traced bounds, `np.asfortranarray`, `np.require` and `np.lib.stride_tricks`. Outside
  of recordings NumPy converts an untraced dlarray there.
- [Functions of Python's `math`](soundness.md#functions-of-math), with derivatives.
- The assertions of `np.testing`, which are guards.
- All of `numpy.polynomial`, with derivatives: functions (`polyval`, `chebfit`) and classes (`Polynomial(c)(x)`,
  `Chebyshev.fit(x, y, 3)`).
- `np.emath`, which gives complex numbers where an operand lies outside of the real domain, and
  `np.histogram(x, "auto")`, which gives as many bins as NumPy's rule. Both are guarded.

## Linear algebra

These work for stacks of matrices too, with derivatives of any order:

| of `np.linalg` | |
|---|---|
| equations and inverses | `solve`, `inv`, `pinv`, `lstsq`, `tensorsolve`, `tensorinv` |
| decompositions | `cholesky`, `qr`, `eig`, `eigvals`, `eigh`, `eigvalsh`, `svd`, `svdvals` |
| numbers | `det`, `slogdet`, `trace`, `diagonal`, `matrix_rank`, `cond`, `norm`, `matrix_norm`, `vector_norm` |
| products | `matrix_power`, `multi_dot` |

- `tj.solve`, `tj.inv`, `tj.det`, `tj.slogdet`, `tj.cholesky` and `tj.solve_triangular` are the same functions.
  `tj.linalg` has those that NumPy lacks, under the names of `scipy.linalg`, which stand for them in recorded functions.
- The derivatives of `cholesky`, `eigh` and `eigvalsh` are symmetric, as their matrices are.
- Eigenvectors and singular vectors have the sign that makes the first of their large elements positive.
- Where values are equal, the pairs of their vectors have no part in derivatives. Functions of the values, and of the
  space that these vectors span, have their derivatives. A function of the matrix that is put together again from
  changed values, `V @ np.diag(np.exp(w)) @ V.T` at a multiple of the identity, lacks the derivatives of the elements
  beside the diagonal. `pinv` and `lstsq` have all derivatives.
- `np.linalg.det` has all its derivatives at singular real matrices, too.
- A matrix that is singular, or not positive definite, raises `numpy.linalg.LinAlgError`, uncompiled and in replays.
"""
TITLES = {
    "arranging": "Joining, splitting, turning, inserting",
    "choosing": "Selection by conditions and places",
    "counting": "Counts and histograms",
    "creation": "Arrays of the same size",
    "differences": "Differences, running sums, interpolation, convolution",
    "elementary": "Elementwise functions that are not ufuncs",
    "elementwise": "Elementwise functions",
    "indexing": "Places",
    "linear": "Products and matrices",
    "masked": "Reductions without NaN, averages",
    "matrices": "More products and parts of matrices",
    "movement": "Rearrangement",
    "table": "Questions, and functions with several forms",
    "ordering": "Sorting, searching, sets",
    "packing": "Bits",
    "polynomials": "Polynomials",
    "quantiles": "Median, quantiles, percentiles",
    "ranges": "Grids",
    "reductions": "Reductions",
    "ufuncs": "Less common ufuncs",
    "wider": "Functions with further arguments",
    "writes": "Functions that write",
}

if __name__ == "__main__":
    from numpy_oracle import check_gradient

    computed = {name: any(map(check_gradient, BY_FUNCTION.get(name, []))) for name in names()}
    computed |= dict.fromkeys(WRITERS, True)  # as the tests of writes show
    PAGE.write_text(page(computed))
