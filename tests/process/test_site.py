# SPDX-License-Identifier: BSD-3-Clause
"""The pages that docs/site/build.py hands to Sphinx, which runs in .ci/run: each of its warnings is an error."""

import doctest
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import tracejit as tj

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["pages", "reference", "gallery", "docstrings", "build"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    return importlib.import_module(request.param)


def named(name: str):
    return pytest.mark.parametrize("module", [name], indirect=True)


def test_its_examples(module):
    assert doctest.testmod(module).failed == 0


@named("reference")
def test_every_public_name_stands_in_the_reference_once(module):
    pages = module.pages()
    shown = re.findall(
        r"^\.\. auto(?:class|function):: tracejit\.(.*)$", "\n".join(pages.values()), re.MULTILINE
    )
    assert len(shown) == len(set(shown))
    plain = {name for name in tj.__all__ if not isinstance(getattr(tj, name), ModuleType)}
    errors = {name for name in plain if name.endswith(("Error", "Warning"))}
    assert {name for name in shown if "." not in name} == plain - errors
    assert {name.removeprefix("errors.") for name in shown if name.startswith("errors.")} == errors
    assert {f"cache.{name}" for name in tj.cache.__all__} <= set(shown)
    index = pages["reference/index.rst"]
    assert all(f"`~tracejit.{name}`" in index for name in shown)


@named("reference")
def test_a_page_has_one_name(module):
    assert set(module.groups()).isdisjoint(module.modules())


@named("gallery")
def test_every_example_has_a_page(module):
    pages = module.pages(ROOT, run=False)
    files = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert set(pages) == {f"examples/{name}.md" for name in files | {"index"}}
    for name in files:
        assert (ROOT / "examples" / f"{name}.py").read_text() in pages[f"examples/{name}.md"]


@named("gallery")
def test_what_an_example_writes_is_not_left_where_the_site_is_built(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = tmp_path / "examples" / "example.py"
    example.parent.mkdir()
    example.write_text("import sys\nopen('picture.png', 'w').close()\nprint(sys.argv[1])\n")
    assert module.printed(example, ["printed"]) == "printed\n"
    assert not (tmp_path / "picture.png").exists()


@named("build")
def test_help_builds_nothing(module, capsys):
    with pytest.raises(SystemExit, match="0"):
        module.main(["--help"])
    assert "build/site" in capsys.readouterr().out


@named("pages")
def test_links_lead_to_pages_of_the_site(module, tmp_path):
    module.copy(ROOT, tmp_path, ["examples/index.md", "reference/index.rst"])
    for page in tmp_path.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target and target not in ("examples/index.md", "../examples/index.md"):
                assert (page.parent / target).exists(), f"{page} leads to {target}"


@named("pages")
def test_code_is_left_as_it_is(module, tmp_path):
    text = "```python\na[0](x)\n```\n"
    assert module.relinked(text, "docs/x.md", ROOT, tmp_path, {"docs/x.md": "x.md"}) == text


@named("pages")
def test_the_page_of_an_error_lies_where_its_message_says(module):
    pages = set(module.written(ROOT).values())
    for name in tj.__all__:
        if name.endswith(("Error", "Warning")) and name not in ("TraceJitError", "TraceJitWarning"):
            (line,) = tj.errors._see(getattr(tj, name)("text"))
            address = line.removeprefix(f"See {tj.errors.DOCUMENTATION}/")
            assert address.replace(".html", ".md") in pages, line
