# SPDX-License-Identifier: BSD-3-Clause
"""Imports point one way, heavy imports happen late, and what the tables name exists."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from emitted import CALLS, names_needed

import tracejit
from tracejit.aval import Aval
from tracejit.codegen.names import SUFFIXES
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.op import KernelCall, Scalar
from tracejit.runtime.python import namespace

PACKAGE = Path(tracejit.__file__).parent
KERNELS = PACKAGE.parent / "kernels"

ORDER = (  # a part imports itself and parts of the lines above its own
    "errors",
    "config",
    "util",
    "tree",
    "store",
    "aval",
    "ops",
    "ir",
    "record",
    "program autodiff",
    "passes",
    "codegen",
    "compile",
    "array",
    "functions",
    "call",
    "runtime",
    "describe",
    "cache capture",
    "pipeline",
    "traces",
    "view",
    "accelerate",
    "export optim testing",
    "doctor",
    "__init__",
    "commands",
    "cli",
    "__main__",
)
LAYER = {part: number for number, line in enumerate(ORDER) for part in line.split()}

HEAVY = {  # (module, package that is imported): why, and only inside a function if it does not say otherwise
    ("ops.elementwise", "scipy"): "the reference of erf",
    ("compile.numba_target", "numba"): "compiles; at the top of the file",
    ("compile.numba_target", "llvmlite"): "compiles; at the top of the file",
    ("compile.llvm", "llvmlite"): "optimises and writes object code; at the top of the file",
    ("compile.objects", "llvmlite"): "loads object code; at the top of the file",
    ("compile.key", "llvmlite"): "its version; at the top of the file",
    ("runtime.cpu", "scipy"): "addresses of BLAS routines, when a program has some",
}
LATE = ("numba", "scipy", "llvmlite")


class Import(NamedTuple):
    """An import statement: the file's module, what it imports, and whether that happens when it is imported."""

    module: str
    imported: str
    at_top: bool
    line: int


def imports_of(path: Path, module: str) -> Iterator[Import]:
    def visit(node: ast.AST, at_top: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = at_top and not isinstance(child, (ast.FunctionDef, ast.Lambda))
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inside = False
            names: list[str] = []
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                package = child.module or ""
                names = [package]
                if package in ("tracejit", "tracejit.kernels") or child.level:
                    names = [f"{package}.{alias.name}" for alias in child.names]
            for name in names:
                yield Import(module, name, inside, child.lineno)
            yield from visit(child, inside)

    yield from visit(ast.parse(path.read_text()), True)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name not in ("kernels", "examples"))
IMPORTS = [found for path in FILES for found in imports_of(path, module_of(path))]


def part_of(module: str) -> str:
    return module.partition(".")[0]


def test_every_part_has_a_layer() -> None:
    assert {part_of(module_of(path)) for path in FILES} == set(LAYER)


def upwards(found: Import) -> bool:
    """Return whether an import points to a part of the same line or a later one."""
    target = part_of(found.imported.removeprefix("tracejit").lstrip(".")) or "__init__"
    own = part_of(found.module)
    if not found.imported.startswith("tracejit") or target in ("kernels", "examples", own):
        return False
    return LAYER[target] >= LAYER[own]


def test_imports_point_one_way() -> None:
    assert [found for found in IMPORTS if upwards(found)] == []


def test_an_import_that_points_upwards_is_noticed() -> None:
    assert upwards(Import("ops.op", "tracejit.ir", True, 1))
    assert upwards(Import("array", "tracejit", False, 1))
    assert not upwards(Import("ir", "tracejit.ops", True, 1))


def test_modules_of_a_part_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module_of(path): set() for path in FILES}
    for found in IMPORTS:
        name = found.imported.removeprefix("tracejit.")
        if found.at_top and name in graph and name != found.module:
            graph[found.module].add(name)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for target in graph[module]:
                visit(target, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_heavy_packages_are_imported_late_and_in_few_places() -> None:
    found = [(i.module, part_of(i.imported), i.at_top) for i in IMPORTS if part_of(i.imported) in LATE]
    assert {(module, package) for module, package, _ in found} == set(HEAVY)
    at_top = {(module, package) for module, package, at_top in found if at_top}
    assert at_top == {pair for pair, why in HEAVY.items() if "at the top" in why}


def test_kernels_never_import_tracejit() -> None:
    for path in KERNELS.rglob("*.py"):
        for found in imports_of(path, path.stem):
            assert not found.imported.startswith("tracejit"), found


@pytest.mark.parametrize("name", ["gather", "gemm", "random", "scan", "search"])
def test_kernels_that_are_loops_are_plain_python(name: str) -> None:
    imported = {part_of(found.imported) for found in imports_of(KERNELS / "loops" / f"{name}.py", name)}
    assert imported <= {"math", "typing", "collections"}


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*[m for m in {LATE} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_tracejit_imports_numpy_only() -> None:
    assert loaded_by("import tracejit") == set()


def test_the_check_of_imports_can_fail() -> None:
    assert "scipy" in loaded_by("import tracejit, scipy")


def test_public_names_are_sorted_and_complete() -> None:
    names = tracejit.__all__
    # As ruff sorts them: log1p before log10.
    assert names == sorted(names, key=lambda name: [(len(part), part) if part.isdigit() else (0, part)
                                                    for part in re.split(r"(\d+)", name)])  # fmt: skip
    assert len(set(names)) == len(names)
    missing = [
        name
        for name, value in vars(tracejit).items()
        if not name.startswith("_") and name not in names and not isinstance(value, ModuleType)
    ]
    assert not missing
    for name in names:
        assert getattr(tracejit, name).__doc__, name


def hand_written(name: str) -> Any:
    for path in KERNELS.rglob("*.py"):
        functions = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        if name in functions:
            return getattr(importlib.import_module(f"tracejit.kernels.{path.parent.name}.{path.stem}"), name)
    raise AssertionError(f"no file of kernels/ defines {name}")


@pytest.mark.parametrize(("op", "name"), CALLS)
def test_kernels_that_ops_call_exist(op: str, name: str) -> None:
    function = hand_written(name)
    assert function.__doc__
    sample = OPS[op].samples[0]
    dtypes = [np.dtype(own or "float64") for own in sample.dtypes or (None,) * len(sample.shapes)]
    avals = [Aval(shape, None, dtype) for shape, dtype in zip(sample.shapes, dtypes, strict=True)]
    emit = OPS[op].emit
    assert isinstance(emit, KernelCall)
    numbers = emit.numbers(OPS[op].infer(*avals, **sample.params), *avals, **sample.params)
    assert all(type(number) is int for number in numbers)
    assert function.__code__.co_argcount == len(numbers) + len(avals) + 1 + emit.checked
    assert name in namespace()


@pytest.mark.parametrize(
    "op", [op for op in OPS.values() if op.kind in (Kind.ELEMENTWISE, Kind.REDUCE)], ids=str
)
def test_the_python_backend_defines_what_is_emitted(op: Op) -> None:
    accepted = 0
    for dtype in SUFFIXES:
        needed = names_needed(op, dtype)
        accepted += bool(needed)
        assert needed <= set(namespace()), f"{op.name} of {dtype}"
    if isinstance(op.emit, Scalar) and "_{T}(" in op.emit.template:
        assert accepted, "the check reads no template"


def test_dir_lists_public_names_only() -> None:
    assert [name for name in dir(tracejit) if not name.startswith("_")] == sorted(tracejit.__all__)


def test_the_parent_of_a_checkout_imports_the_package(tmp_path: Path) -> None:
    (tmp_path / "tracejit").symlink_to(PACKAGE.parent, target_is_directory=True)
    code = "import sys; sys.path.append(sys.argv[1]); import tracejit; print(tracejit.zeros(1).shape)"
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '')\n{code}", str(PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "(1,)\n"


def test_kernels_and_examples_are_packages_of_tracejit() -> None:
    for name in ("kernels", "examples"):
        package = importlib.import_module(f"tracejit.{name}")
        assert [Path(path) for path in package.__path__] == [PACKAGE.parent / name]
