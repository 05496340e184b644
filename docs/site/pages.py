# SPDX-License-Identifier: BSD-3-Clause
"""The written pages: where each lies in the site, and its links, which lead to files of the checkout."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

MOVED = {  # a page of the checkout: its name in the site
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "tests/README.md": "tests.md",
}
TITLES = {"pages": "All pages <pages>"}  # entries of the sidebar with a name of their own
FOLDERS = {"docs/decisions": "decisions/index.md", "examples": "examples/index.md"}
SIDEBAR = {  # caption: pages; what is not named stands under REST
    "Use": ("getting_started", "from_matlab", "from_jax_torch", "examples/index", "networks", "layers", "random",
            "views_and_writes", "checkpoints", "scipy", "export"),
    "Know": ("soundness", "cache", "processes", "performance", "inspector", "platforms", "limits"),
    "Look up": ("reference/index", "functions", "errors/index", "glossary", "changelog", "deprecation", "security",
                "pages"),
    "Work on it": ("contributing", "how_it_works", "adding_an_op", "adding_a_pass", "tests", "benchmarks",
                   "decisions/index", "roadmap"),
}  # fmt: skip
REST = "Know"
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>', re.MULTILINE)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def written(root: Path) -> dict[str, str]:
    """Return the pages of a checkout: their paths, and their names in the site."""
    found = [str(path.relative_to(root)) for path in sorted((root / "docs").rglob("*.md"))]
    moved = {page: name for page, name in MOVED.items() if (root / page).exists()}
    return {page: page.removeprefix("docs/") for page in found} | moved


def copy(root: Path, folder: Path, made: Iterable[str]) -> None:
    """Copy the pages of a checkout, and the files to which they lead, and add what Sphinx asks for.

    Args:
        root: the checkout.
        folder: the folder to write into.
        made: the names of the other pages of the site.
    """
    names = written(root)
    decisions = {page: name for page, name in names.items() if page.startswith("docs/decisions/")}
    for page, name in names.items():
        text = (root / page).read_text()
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relinked(text, page, root, folder, names))
    listed = "".join(f"- [{title(folder / name)}]({Path(name).name})\n" for name in decisions.values())
    (folder / "decisions" / "index.md").write_text(
        f"# Decisions\n\n{listed}\n{toctree(decisions.values(), 'decisions')}"
    )
    with (folder / "errors" / "index.md").open("a") as file:
        file.write("\n" + toctree([name for name in names.values() if name.startswith("errors/")], "errors"))
    with (folder / "index.md").open("a") as file:
        file.write("\n" + sidebar([*names.values(), "decisions/index.md", *made]))


def relinked(text: str, page: str, root: Path, folder: Path, names: dict[str, str]) -> str:
    """Return the text of a page with links that fit the site; other files of the checkout are copied beside it.

    An anchor in HTML at the beginning of a line becomes one of MyST, so that it is known to exist.

    >>> names = {"docs/x.md": "x.md", "README.md": "index.md"}
    >>> relinked("[a](../README.md#b)", "docs/x.md", Path("."), Path("."), names)
    '[a](index.md#b)'
    """

    def moved(match: re.Match[str]) -> str:
        if "://" in match[2] or match[2].startswith("mailto:"):
            return match[0]
        target = os.path.normpath(os.path.join(os.path.dirname(page), match[2]))
        name = names.get(target) or FOLDERS.get(target)
        if name is None:  # a file of code, a picture: Sphinx copies it where it is asked to
            name = target
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / target, folder / name)
        return match[1] + os.path.relpath(name, os.path.dirname(names[page]) or ".") + match[3]

    # Not in blocks of code: there brackets are lists and calls.
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("```") else ANCHOR.sub(r"(\1)=\n", LINK.sub(moved, part)) for part in parts
    )


def title(page: Path) -> str:
    """Return the first heading of a page."""
    return page.read_text().partition("\n")[0].removeprefix("# ")


def toctree(names: Iterable[str], folder: str = "", caption: str = "") -> str:
    """Return Sphinx's list of the pages that belong below one."""
    entries = [TITLES.get(name, name.removesuffix(".md").removeprefix(f"{folder}/")) for name in names]
    lines = [
        ":hidden:",
        *([f":caption: {caption}"] if caption else []),
        "",
        *(e for e in entries if e != "index"),
    ]
    return "```{toctree}\n" + "\n".join(lines) + "\n```\n"


def sidebar(names: Iterable[str]) -> str:
    """Return the lists beside every page: those at the top and the first of each folder."""
    all_ = [name.removesuffix(".md").removesuffix(".rst") for name in names]
    top = [name for name in all_ if "/" not in name or name.endswith("/index")]
    named = [name for entries in SIDEBAR.values() for name in entries]
    rest = [name for name in top if name not in named and name != "index"]
    lists = {caption: [name for name in entries if name in top] for caption, entries in SIDEBAR.items()}
    lists[REST] += rest
    return "\n".join(toctree(entries, caption=caption) for caption, entries in lists.items())
