# SPDX-License-Identifier: BSD-3-Clause
"""The emitted source of small programs, as files that are compared and run.

Each file is named for the property that it pins. They change only by ``pytest --update-golden``; the difference is
then reviewed like code.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from golden_cases import CASES, Case, graph_of

from tracejit.codegen import target
from tracejit.codegen.emit import module_source
from tracejit.ir import Graph, evaluate
from tracejit.passes.loops import multiplier
from tracejit.pipeline import build
from tracejit.program import Program, ScalarArgument
from tracejit.runtime.python import PythonExecutable

pytestmark = pytest.mark.whole("golden files")
FOLDER = Path(__file__).parents[2] / "support" / "golden"


@pytest.fixture(autouse=True, params=[16, 64], ids="on_a_machine_of_{}_bytes".format)
def _vectors_of_64_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write for vectors of 64 bytes, whatever the machine has."""
    monkeypatch.setattr(target, "of_this_machine", lambda: request.param)
    with target.written_for(64):
        yield


def arrays_of(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.1, 1.0, shape).astype(np.float32) for shape in case.shapes]


def program_of(case: Case) -> tuple[Graph, Program]:
    graph = graph_of(case)
    with pytest.MonkeyPatch.context() as patch:
        if case.blas:
            patch.setattr(multiplier, "BLAS_FROM", 0)
        return graph, build(graph)


@pytest.mark.parametrize("name", CASES)
def test_emitted_source(name: str, request: pytest.FixtureRequest) -> None:
    case = CASES[name]
    graph, program = program_of(case)
    text = module_source(program, name)
    path = FOLDER / f"{name}.py"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.exists(), f"{path} is missing; pytest --update-golden writes it"
    golden = path.read_text()
    executable = PythonExecutable(program)
    exec(
        compile(golden, str(path), "exec"), executable._namespace
    )  # the text of the file, not the text emitted now
    arrays = arrays_of(case)
    for have, want in zip(executable(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5)
    assert text == golden, "the emitted source changed; review the difference after pytest --update-golden"


@pytest.mark.parametrize("name", CASES)
def test_launches_and_memory(name: str) -> None:
    case = CASES[name]
    _, program = program_of(case)
    names = [row.kernel.name for row in program.rows]
    assert len(names) == len(case.launches), names
    for have, want in zip(names, case.launches, strict=True):
        assert have.startswith(want), names
    assert bool(program.arena_bytes) == case.arena


def test_sizes_and_constants_are_not_in_the_text() -> None:
    def kernels(case: Case) -> list[str]:
        return [kernel.text for kernel in program_of(case)[1].kernels]

    case = CASES["constants_are_arguments"]
    other = Case(lambda b, x: [b.add(b.mul(x, 0.4), 8.0)], ((30,),), case.launches)
    assert kernels(case) == kernels(other)
    assert [a for row in program_of(case)[1].rows for a in row.arguments if isinstance(a, ScalarArgument)]
    for name, case in CASES.items():
        if (
            "concatenate" not in name and "reshape" not in name
        ):  # an axis of size 1 has no loop; sizes in params
            doubled = case._replace(shapes=tuple(tuple(2 * n for n in shape) for shape in case.shapes))
            assert kernels(case) == kernels(doubled), name


def test_every_file_belongs_to_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(CASES)


def test_source_names_neither_paths_nor_lines_of_the_user() -> None:
    for path in FOLDER.glob("*.py"):
        assert "/" not in path.read_text().replace(" / ", "")
