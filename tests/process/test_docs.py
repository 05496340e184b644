# SPDX-License-Identifier: BSD-3-Clause
"""README and docs: every block of Python runs, and what a page shows is what is printed.

The blocks of a page run in order in one namespace: ```python blocks as they are, ```pycon blocks as doctests
("..." stands for anything). Links lead to files that exist. `python tests/process/test_docs.py` writes what is printed
into the pages.
"""

import doctest
import linecache
import os
import re
import runpy
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracejit import config, errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.FAIL_FAST


def blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the language, the text and the first line's number of each block."""
    for match in BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start(2)) + 1


def run(page: str, text: str, namespace: dict) -> list[str]:
    """Run the blocks of a page and return what was wrong, one report for each block of examples that failed."""
    reports: list[str] = []
    linecache.cache[page] = (len(text), None, text.splitlines(keepends=True), page)  # for inspect.getsource()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    for language, code, line in blocks(text):
        if language == "python":
            # The code keeps its place on the page, for tracebacks and for the locations in emitted source.
            exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
            continue
        test = doctest.DocTestParser().get_doctest(code, namespace, page, page, line - 1)
        test.globs = namespace
        runner.run(test, out=reports.append, clear_globs=False)
    return reports


def updated(page: str, text: str, namespace: dict) -> str:
    """Return a page whose examples show what is printed; examples that are right stay as they are."""
    printed: dict[int, str] = {}  # by the number of the line on the page

    class Recorder(doctest.DocTestRunner):
        def report_failure(self, out, test, example, got):
            # The stack names files of this machine; doctest does not compare it.
            got = re.sub(r"^(Traceback .*\n)(?: .*\n)+", r"\1", got)
            printed[test.lineno + example.lineno + len(example.source.splitlines())] = got

        def report_unexpected_exception(self, out, test, example, exc_info):
            raise exc_info[1]

    linecache.cache[page] = (len(text), None, text.splitlines(keepends=True), page)
    runner = Recorder(optionflags=doctest.ELLIPSIS, verbose=False)
    for language, code, line in blocks(text):
        if language == "python":
            exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
        else:
            test = doctest.DocTestParser().get_doctest(code, namespace, page, page, line - 1)
            test.globs = namespace
            runner.run(test, out=str, clear_globs=False)
    lines = text.splitlines(keepends=True)
    for start, got in sorted(printed.items(), reverse=True):
        end = start
        while lines[end] != "\n" and not lines[end].startswith((">>>", "```")):
            end += 1
        lines[start:end] = re.sub(r"^$(?=\n)", "<BLANKLINE>", got, flags=re.MULTILINE).splitlines(
            keepends=True
        )
    return "".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reports = run(str(page.relative_to(ROOT)), page.read_text(), {"__name__": "page"})
    assert not reports, "\n".join(reports)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_a_wrong_page_is_found():
    assert not run("page", "```pycon\n>>> 1 + 1\n2\n```\n", {})
    assert "Expected:\n    3\nGot:\n    2" in run("page", "```pycon\n>>> 1 + 1\n3\n```\n", {})[0]
    with pytest.raises(ZeroDivisionError):
        run("page", "```python\n1 / 0\n```\n", {})


def test_update_shows_what_is_printed():
    page = "a\n```python\nx = 1\n```\nb\n```pycon\n>>> x + 1\n3\n>>> for i in range(2):\n...     print(i)\n```\nc\n"
    expected = page.replace("3\n", "2\n").replace("print(i)\n", "print(i)\n0\n1\n")
    assert updated("page", page, {}) == expected


def test_update_leaves_out_the_stack():
    page = "```pycon\n>>> 1 / 0\nTraceback (most recent call last):\n{}\n```\n"
    error = "ZeroDivisionError: division by zero"
    assert updated("page", page.format("ValueError: no"), {}) == page.format(error)
    with pytest.raises(ZeroDivisionError):
        updated("page", "```pycon\n>>> 1 / 0\n1\n```\n", {})


def test_commands_of_the_readme_are_those_that_ci_runs():
    readme = (ROOT / "README.md").read_text()
    ci = (ROOT / ".ci" / "run").read_text()
    assert '\npip install -e ".[test]" && pytest\n' in readme
    # The same tests, with more cases than the sample, and those of unit/ by themselves.
    sweep = 'pytest --sweep --turn="$turn" '
    assert '\npytest -q --sweep --turn="$turn" tests/unit\n' in ci
    assert f'\npip install --quiet -e ".[test]"\n{sweep}' in ci
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"][
        "testpaths"
    ]
    assert {"tests/unit", *ci.splitlines()[-1].removeprefix(sweep).split()} == set(folders)
    assert '\npip install -e ".[demo]" && tracejit demo\n' in readme


@pytest.mark.parametrize(
    "example, arguments, line",
    [
        ("rosenbrock", [], "at [-1, 2]: value 104, gradient [396.0, 200.0]"),
        ("pinn_burgers", ["20"], "20 iterations in "),
        ("pendulum", ["3", "4"], "3 iterations in "),
    ],
)
def test_example_runs(capsys, monkeypatch, tmp_path, example, arguments, line):
    monkeypatch.chdir(tmp_path)  # it may write a picture
    path = ROOT / "examples" / f"{example}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.startswith(line)


def test_rosenbrock_is_minimised():
    from tracejit.examples import rosenbrock

    x, value = rosenbrock.minimize([-1.0, 2.0])[-1]
    np.testing.assert_allclose(x, [1, 1], rtol=1e-12)
    assert value < 1e-20


def test_pinn_meets_the_exact_solution():
    from tracejit.examples import pinn_burgers

    params, losses = pinn_burgers.train(300)
    assert losses[-1] < losses[0] / 30
    assert pinn_burgers.relative_error(params) < 0.1


@pytest.mark.slow
def test_pinn_solves_burgers_equation_to_half_a_hundredth():
    from tracejit.examples import pinn_burgers

    params, _ = pinn_burgers.train(1500)
    assert pinn_burgers.relative_error(params) < 5e-3


def test_exact_solution_of_burgers_satisfies_the_equation():
    from tracejit.examples.pinn_burgers import NU, exact

    x, t, h = np.linspace(-0.9, 0.9, 7), 0.4, 1e-3
    u, left, right = exact(x, t), exact(x - h, t), exact(x + h, t)
    u_t = (exact(x, t + h) - exact(x, t - h)) / (2 * h)
    residual = u_t + u * (right - left) / (2 * h) - NU * (right - 2 * u + left) / h**2
    assert np.abs(residual).max() < 1e-3 * np.abs(u_t).max()


def test_pendulum_is_identified():
    from tracejit.examples import pendulum

    found, losses = pendulum.identify(400, steps=4)  # as above: compiled once
    assert losses[-1] < losses[0] / 20
    assert found["angle"] == pytest.approx(pendulum.TRUE["angle"], abs=0.05)


if __name__ == "__main__":
    # Pages write files, and look into the cache: neither the checkout nor the user's cache is theirs.
    with tempfile.TemporaryDirectory() as folder:
        del errors.TraceJitError.__notes__  # as in tests: pages show the message alone
        config.settings.cache_dir = os.path.join(folder, "cache")
        for number, path in enumerate(PAGES):
            os.makedirs(own := os.path.join(folder, str(number)))  # two pages may give a file the same name
            os.chdir(own)
            path.write_text(updated(str(path.relative_to(ROOT)), path.read_text(), {"__name__": "page"}))
