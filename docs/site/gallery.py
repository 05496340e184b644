# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the examples: what each is about, what it prints, and its code."""

import ast
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tracejit.util.parsing import parsed

ARGUMENTS = {
    "pendulum": ["60"],
    "pinn_burgers": ["200"],
    "neural_ode": ["30"],
    "digits_gan": ["10"],
}  # shorter than when one runs them oneself
NOT_RUN = {"digits": "tracejit demo"}  # it needs scikit-learn and matplotlib: the command that runs it


def pages(root: Path, run: bool = True) -> dict[str, str]:
    """Return the pages of the examples of a checkout: names in the site, and texts.

    Args:
        root: the checkout.
        run: whether the examples are run, to show what they print.
    """
    files = [path for path in sorted((root / "examples").glob("*.py")) if path.stem != "__init__"]
    with ThreadPoolExecutor(os.cpu_count()) as workers:  # each waits for a process
        texts = workers.map(lambda path: page(path, run), files)
        found = {f"examples/{path.stem}.md": text for path, text in zip(files, texts, strict=True)}
    rows = "".join(f"| [{path.stem}]({path.stem}.md) | {about(path)[0]} |\n" for path in files)
    entries = "\n".join(path.stem for path in files)
    found["examples/index.md"] = (
        f"# Examples\n\n| example | |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )
    return found


def about(path: Path) -> tuple[str, str]:
    """Return the first sentence of a file's docstring, and the rest."""
    text = ast.get_docstring(parsed(path.read_text())) or ""
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest


def page(path: Path, run: bool) -> str:
    """Return the page of an example."""
    first, rest = about(path)
    arguments = ARGUMENTS.get(path.stem, [])
    command = NOT_RUN.get(path.stem) or " ".join(["python", f"examples/{path.name}", *arguments])
    shown = f"```\n$ {command}\n{printed(path, arguments) if run and path.stem not in NOT_RUN else ''}```\n"
    code = f"```python\n{path.read_text()}```\n"
    return f"# {path.stem.replace('_', ' ').capitalize()}\n\n{first}\n\n{rest}\n\n{shown}\n{code}"


def printed(path: Path, arguments: list[str]) -> str:
    """Return what an example prints."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(path.resolve()), *arguments],
            env={**os.environ, "PYTHONPATH": str(path.resolve().parents[1]), "TRACEJIT_CACHE_DIR": folder},
            cwd=folder,  # pictures
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return done.stdout
