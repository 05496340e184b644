# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the reference: every public name, in the group of the module that defines it."""

import importlib
import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import tracejit

TITLES = {  # module: title, where its name says too little
    "accelerate": "Acceleration",
    "array": "Arrays",
    "blocks": "Blocks of images",
    "custom_gradient": "Custom backward functions",
    "dense": "Layers",
    "evaluate": "Gradients",
    "exports": "Ahead of time",
    "labels": "Labels",
    "linear": "Products and linear systems",
    "movement": "Moves",
    "optim": "Optimisers",
    "random": "Random numbers",
    "stft": "Transforms of segments",
}
SAME = {
    "nn": "networks",
    "activation_variants": "activations",
    "class_losses": "losses",
    "differentiable": "custom_gradient",
    "kernel": "custom_gradient",
    "linalg": "linear",
    "mapping": "derivatives",
    "numpy_function": "evaluate",
    "rng": "random",
    "transforms": "derivatives",
}  # modules whose names stand with those of another one
FIRST = ("array", "accelerate", "evaluate", "labels")


def pages() -> dict[str, str]:
    """Return the pages of the reference: names in the site, and texts."""
    found = {f"reference/{name}.rst": page(heading(name), members) for name, members in groups().items()}
    found |= {f"reference/{name}.rst": module_page(name, module) for name, module in modules().items()}
    rows = [row(heading(name), name, members) for name, members in groups().items()]
    for name, module in modules().items():
        rows.append(row(f"tracejit.{name}", name, [f"{name}.{member}" for member in public(module)]))
    entries = "\n".join(f"   {name}" for name in (*groups(), *modules()))
    found["reference/index.rst"] = (
        f"Reference\n=========\n\n.. list-table::\n   :widths: 20 80\n\n{''.join(rows)}\n"
        f".. toctree::\n   :hidden:\n\n{entries}\n"
    )
    return found


def row(title: str, page: str, members: Iterable[str]) -> str:
    """Return a row of the list of all names: a page, and the names on it."""
    names = ", ".join(f":py:obj:`~tracejit.{member}`" for member in members)
    return f"   * - :doc:`{title} <{page}>`\n     - {names}\n"


def groups() -> dict[str, list[str]]:
    """Return the public names of tracejit that are no modules, by group."""
    found: dict[str, list[str]] = {name: [] for name in FIRST}
    for name in tracejit.__all__:
        value = getattr(tracejit, name)
        if not isinstance(value, ModuleType) and not is_error(value):
            found.setdefault(group_of(value), []).append(name)
    return {name: members for name, members in found.items() if members}


def group_of(value: Any) -> str:
    """Return the group of a public object: its module within functions/, or the part of the package."""
    parts = value.__module__.split(".")
    name = parts[-1] if parts[1] == "functions" else parts[1]
    return SAME.get(name, name)


def is_error(value: Any) -> bool:
    """Return whether an object is a class of errors; these stand on the page of their module."""
    return inspect.isclass(value) and issubclass(value, Exception)


def has_page(error: type) -> bool:
    """Return whether a class of errors has a page: all but the two that are the bases of the others."""
    return is_error(error) and error not in (tracejit.TraceJitError, tracejit.TraceJitWarning)


def modules() -> dict[str, ModuleType]:
    """Return the public modules."""
    return {
        name: importlib.import_module(f"tracejit.{name}")
        for name in tracejit.__all__
        if isinstance(getattr(tracejit, name), ModuleType)
    }


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
        and (inspect.isfunction(value) or inspect.isclass(value))
    ]
    return list(getattr(module, "__all__", own))


def heading(name: str) -> str:
    """Return the title of a group.

    >>> heading("losses"), heading("linear")
    ('Losses', 'Products and linear systems')
    """
    return TITLES.get(name, name.replace("_", " ").capitalize())


def page(title: str, members: Iterable[str], module: str = "tracejit", text: str = "") -> str:
    """Return a page that shows objects of a module."""
    shown = "\n\n".join(
        directive(f"{module}.{name}", getattr(importlib.import_module(module), name)) for name in members
    )
    return f"{title}\n{'=' * len(title)}\n\n{text}\n\n.. currentmodule:: {module}\n\n{shown}\n"


def module_page(name: str, module: ModuleType) -> str:
    """Return the page of a public module."""
    text = f".. automodule:: tracejit.{name}\n   :no-index:"
    # A class is described once: at its name in tracejit itself, if it has one.
    members = [
        member for member in public(module)
        if not inspect.isclass(value := getattr(module, member)) or is_error(value) or not hasattr(tracejit, member)
    ]  # fmt: skip
    return page(f"tracejit.{name}", members, f"tracejit.{name}", text)


def directive(name: str, value: Any) -> str:
    """Return the line that has Sphinx show an object."""
    if inspect.isclass(value):
        link = (
            f"\n\n   :doc:`A mistake, and what works </errors/{value.__name__}>`." if has_page(value) else ""
        )
        return f".. autoclass:: {name}" + (link if is_error(value) else "\n   :members:")
    return f".. autofunction:: {name}" if callable(value) else f".. autodata:: {name}\n   :no-value:"
