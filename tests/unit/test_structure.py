# SPDX-License-Identifier: BSD-3-Clause
"""Imports point one way, heavy imports happen late, and what the tables name exists."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from emitted import CALLS, names_needed
from sources import parsed, statements, with_bodies

import tracejit
from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates.by_op import BESIDE_LOOPS, TEXTS
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.op import KernelCall, Scalar
from tracejit.pipeline import build
from tracejit.runtime.python import namespace

pytestmark = pytest.mark.whole("structure")
PACKAGE = Path(tracejit.__file__).parent
KERNELS = PACKAGE.parent / "kernels"

# A folder, or a file beside the folders, imports itself and what stands above it, at the top of a file or not.
ORDER = (
    "errors",
    "config",
    "util",
    "containers",
    "tree",
    "store",
    "aval",
    "ops",
    "ir",
    "record",
    "program",
    "batching",
    "autodiff",
    "passes.cost",
    "passes.graph",
    "passes.fusion",
    "passes.loops",
    "passes.schedule",
    "codegen",
    "compile",
    "array",
    "functions",
    "functions.layers",
    "functions.numpy_api",
    "fft",
    "integrate",
    "interpolate",
    "spatial",
    "linalg",
    "signal",
    "special",
    "stats",
    "xp",
    "call",
    "runtime",
    "describe",
    "capture",
    "cache",
    "pipeline",
    "traces",
    "view",
    "accelerate",
    "ode",
    "optim",
    "testing",
    "nn",
    "training",
    "exports",
    "doctor",
    "__init__",
    "commands",
    "cli",
    "__main__",
)
HEAVY = {  # (module, package that is imported): why, and only inside a function if it does not say otherwise
    ("ops.elementwise", "scipy"): "the reference of erf",
    ("ops.linalg", "scipy"): "routines of LAPACK, when the first matrix is factored uncompiled",
    ("compile.numba_target", "numba"): "compiles; at the top of the file",
    ("compile.numba_target", "llvmlite"): "compiles; at the top of the file",
    ("compile.operations", "numba"): "as compile.numba_target, which imports it; at the top of the file",
    ("compile.expressions", "numba"): "as compile.operations; at the top of the file",
    ("compile.structured", "numba"): "as compile.operations; at the top of the file",
    ("compile.structured", "llvmlite"): "writes LLVM IR; at the top of the file",
    ("compile.device_target", "numba"): "types of arguments; at the top of the file",
    ("compile.device_target", "llvmlite"): "writes PTX; at the top of the file",
    ("compile.llvm", "llvmlite"): "optimises and writes object code; at the top of the file",
    ("compile.objects", "llvmlite"): "loads object code; at the top of the file",
    ("compile.key", "llvmlite"): "its version; at the top of the file",
    ("functions.numpy_api.scipy_matrices", "scipy"): "its routines, when the first one is needed",
    ("functions.numpy_api.host_filters", "scipy"): "likewise",
    ("functions.numpy_api.host_rules", "scipy"): "quantiles, when the first one is needed",
    ("util.versions", "scipy"): "its version, when a function asks for it",
    ("runtime.table", "scipy"): "addresses of BLAS routines, when a program has some",
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
        for child in statements(node):
            inside = at_top and not isinstance(child, ast.FunctionDef)
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inside = False
            names: list[str] = []
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                package = child.module or ""
                names = [package]
                if (PACKAGE.parent / package.replace(".", "/")).is_dir() or child.level:
                    names = [f"{package}.{alias.name}" for alias in child.names]
            for name in names:
                yield Import(module, name, inside, child.lineno)
            yield from visit(child, inside)

    yield from visit(parsed(path), True)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name not in ("kernels", "examples"))


@cache
def imports() -> list[Import]:
    """Return the import statements of the package."""
    return [statement for path in FILES for statement in imports_of(path, module_of(path))]


def part_of(module: str) -> str:
    first, second, *_ = (*module.split("."), "")
    inner = f"{first}.{second}"
    return inner if inner in ORDER or (first == "passes" and second) else first


def test_the_order_names_what_there_is() -> None:
    assert {part_of(module_of(path)) for path in FILES} - {"passes"} == set(ORDER)
    assert len(set(ORDER)) == len(ORDER)


def upwards(statement: Import) -> bool:
    """Return whether an import points to a part that stands below the importing one in the order."""
    target = part_of(statement.imported.removeprefix("tracejit").lstrip(".")) or "__init__"
    own = part_of(statement.module)
    if not statement.imported.startswith("tracejit") or target in ("kernels", "examples", own):
        return False
    return ORDER.index(target) > ORDER.index(own)


def test_imports_point_one_way() -> None:
    assert [statement for statement in imports() if upwards(statement)] == []


def test_an_import_that_points_upwards_is_noticed() -> None:
    assert upwards(Import("ops.op", "tracejit.ir", True, 1))
    assert upwards(Import("array", "tracejit", False, 1))
    assert upwards(Import("passes.graph.slices", "tracejit.passes.loops.tiles", True, 1))
    assert not upwards(Import("ir", "tracejit.ops", True, 1))


def test_the_top_of_the_package_is_short() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 16


def test_a_folder_has_a_row_in_the_readme_and_a_docstring() -> None:
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in FILES if path.name == "__init__.py"}
    rows = re.findall(r"^\| `([\w/]+)/` \|", (PACKAGE.parent / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(folders - {".", "passes"})
    assert [
        folder for folder in folders if not ast.get_docstring(parsed(PACKAGE / folder / "__init__.py"))
    ] == []


SOURCES = [*FILES, *sorted(KERNELS.rglob("*.py"))]


def definitions(kind: type[Any]) -> Iterator[tuple[Path, Any]]:
    """Return classes or functions of the package and the kernels, with the files that they stand in."""
    for path in SOURCES:
        for node in with_bodies(path):
            if isinstance(node, kind):
                yield path, node


def length(node: Any) -> int:
    """Return the lines of a class or function, without its docstring."""
    text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    return node.end_lineno - node.lineno + 1 - (text.end_lineno - text.lineno + 1 if text else 0)


def test_a_class_name_occurs_once() -> None:
    counts = Counter(node.name for _, node in definitions(ast.ClassDef))
    assert [name for name, count in counts.items() if count > 1] == []


def says_why(node: Any) -> bool:
    return "Long because" in (ast.get_docstring(node) or "")


def test_long_files_and_classes_say_why_they_are_long() -> None:
    files = [path for path in SOURCES if len(path.read_text().splitlines()) > 500]
    assert [path for path in files if not says_why(parsed(path))] == []
    classes = [node for _, node in definitions(ast.ClassDef) if length(node) > 300]
    assert [node.name for node in classes if not says_why(node)] == []


def test_functions_are_short() -> None:
    long = [(path, node.name) for path, node in definitions(ast.FunctionDef) if length(node) > 60]
    assert long == []


def test_nested_functions_do_not_call_themselves() -> None:
    """One that does keeps itself, and all arrays that it refers to, until Python collects garbage."""
    nested = [
        (path, inner)
        for path, outer in definitions(ast.FunctionDef)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.FunctionDef) and inner is not outer
    ]
    assert [
        (path, inner.name)
        for path, inner in nested
        if any(isinstance(node, ast.Name) and node.id == inner.name for node in ast.walk(inner))
    ] == []


def test_locks_are_those_that_a_forked_child_can_take() -> None:
    """util/locks.py makes them; util/uninterrupted.py releases its own in a child."""
    kinds = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier", "allocate_lock")
    made = {
        module_of(path)
        for path in FILES
        if any(kind in path.read_text() for kind in kinds)
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.Attribute, ast.Name))
        and (node.attr if isinstance(node, ast.Attribute) else node.id) in kinds
    }
    assert made == {"util.locks", "util.uninterrupted"}


def test_modules_of_a_part_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module_of(path): set() for path in FILES}
    for statement in imports():
        name = statement.imported.removeprefix("tracejit.")
        is_ours = name != statement.imported  # Python has a module named signal, too
        if is_ours and name in graph and name != statement.module:  # late and type-only imports too
            graph[statement.module].add(name)
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
    found = [(i.module, part_of(i.imported), i.at_top) for i in imports() if part_of(i.imported) in LATE]
    assert {(module, package) for module, package, _ in found} == set(HEAVY)
    at_top = {(module, package) for module, package, at_top in found if at_top}
    assert at_top == {pair for pair, why in HEAVY.items() if "at the top" in why}


def test_kernels_never_import_tracejit() -> None:
    for path in KERNELS.rglob("*.py"):
        for statement in imports_of(path, path.stem):
            assert not statement.imported.startswith("tracejit"), statement


@pytest.mark.parametrize("name", sorted(path.stem for path in (KERNELS / "loops").glob("[!_]*.py")))
def test_kernels_that_are_loops_are_plain_python(name: str) -> None:
    imported = {
        part_of(statement.imported) for statement in imports_of(KERNELS / "loops" / f"{name}.py", name)
    }
    assert imported <= {"math", "typing", "collections"}


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
        assert hasattr(tracejit, name), (
            f"{name} stands in __all__ only; import it, or name it in _MODULES below"
        )
        assert getattr(tracejit, name).__doc__, name


def hand_written(name: str) -> Any:
    for path in KERNELS.rglob("*.py"):
        functions = [n.name for n in parsed(path).body if isinstance(n, ast.FunctionDef)]
        if name in functions:
            return getattr(importlib.import_module(f"tracejit.kernels.{path.parent.name}.{path.stem}"), name)
    raise AssertionError(f"no file of kernels/ defines {name}")


@pytest.mark.parametrize(("op", "name"), [call for call in CALLS if call[1] in TEXTS])
def test_kernels_that_are_written_as_text_are_those_of_the_op(op: str, name: str) -> None:
    sample = OPS[op].samples[0]
    dtypes = [np.dtype(own or "float64") for own in sample.dtypes or (None,) * len(sample.shapes)]
    graph = Graph()
    b = Builder(graph)
    inputs = [b.input(Aval(s, None, dtype)) for s, dtype in zip(sample.shapes, dtypes, strict=True)]
    result = b.apply(OPS[op], inputs, dict(sample.params))
    graph.outputs = [result] if isinstance(result, Value) else list(result)
    (row,) = [row for row in build(graph).rows if row.kernel.name.startswith(name)]
    assert len(set(re.findall(r"args\[(\d+)\]", row.kernel.text))) == len(row.arguments)
    assert {n.id for n in ast.walk(ast.parse(row.kernel.text)) if isinstance(n, ast.Name)} & set(namespace())


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (op, name) for op, name in CALLS
        if name not in set(TEXTS) - set(BESIDE_LOOPS)
        and not name.startswith(("ufunc_loop_", "matrix_loop_", "fourier_loop_"))
        and op not in ("argmax", "argmin", "sort")  # computed by max and min, and first_place; by partition
    ],
)  # fmt: skip
def test_kernels_that_ops_call_exist(op: str, name: str) -> None:
    function = hand_written(name)
    assert function.__doc__
    sample = OPS[op].samples[0]
    dtypes = [np.dtype(own or "float64") for own in sample.dtypes or (None,) * len(sample.shapes)]
    avals = [Aval(shape, None, dtype) for shape, dtype in zip(sample.shapes, dtypes, strict=True)]
    emit = OPS[op].emit
    assert isinstance(emit, KernelCall)
    result = OPS[op].infer(*avals, **sample.params)
    outputs = 1 if isinstance(result, Aval) else len(result)
    numbers = emit.numbers(result, *avals, **sample.params)
    assert all(type(number) is int for number in numbers)
    further = emit.checked + emit.tells_saved - emit.onto
    assert function.__code__.co_argcount == len(numbers) + len(avals) + outputs + further
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


def test_kernels_and_examples_are_packages_of_tracejit() -> None:
    for name in ("kernels", "examples"):
        package = importlib.import_module(f"tracejit.{name}")
        assert [Path(path) for path in package.__path__] == [PACKAGE.parent / name]


def test_files_that_texts_name_exist() -> None:
    root = PACKAGE.parent
    missing = [
        f"{path.relative_to(root)} names {name}"
        for path in [*PACKAGE.rglob("*.py"), *KERNELS.rglob("*.py"), *(root / "docs/decisions").glob("*.md")]
        for name in re.findall(r"(?<![\w/.])((?:[a-z_]+/)+[a-z_]+\.py)\b", path.read_text())
        if not any((folder / name).exists() for folder in (root, PACKAGE, path.parent))
    ]
    assert missing == [
        "tracejit/util/annotate.py names b/net.py",
        "tracejit/util/annotate.py names c/net.py",
    ]  # examples


def opening_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the first lines of all docstrings, of attributes too, with their line numbers."""
    for node in with_bodies(path):
        for child in getattr(node, "body", []):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                text = child.value.value
                if isinstance(text, str):
                    yield child.lineno, text.strip().partition("\n")[0]


def test_definitions_are_noun_phrases_or_commands() -> None:
    question = re.compile(r"(What|Whether|Which|How|Where|Who) ")
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {text}"
        for path in [*PACKAGE.rglob("*.py"), *KERNELS.rglob("*.py")]
        for line, text in opening_lines(path)
        if question.match(text)
    ]
    assert not found


@pytest.mark.parametrize("cls", [dlarray, Value, Node])
def test_attributes_of_hot_classes_are_read_fast(cls) -> None:
    """CPython specialises reads of slots only in classes without such a hook: with one, recording takes 5 % longer."""
    assert (
        not hasattr(cls, "__getattr__")
        and "__getattribute__" not in vars(cls)
        and "__dict__" not in vars(cls)
    )
