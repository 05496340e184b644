# SPDX-License-Identifier: BSD-3-Clause
"""Builds the documentation as a site: ``python docs/site/build.py [FOLDER]``, with the extra `docs`.

The pages of docs/, the README and their like are copied into a folder of their own, with links that fit there, beside
pages that are made: the reference, of the docstrings of the public names, and the examples with what they print. Sphinx
turns that folder into the site. Each warning is an error.
"""

import argparse
import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]


import gallery  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def assemble(folder: Path, run_examples: bool = True) -> None:
    """Write everything that Sphinx reads into an empty folder."""
    made = {**reference.pages(), **gallery.pages(ROOT, run=run_examples)}
    pages.copy(ROOT, folder, sorted(made))
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(argv: list[str]) -> int:
    """Build the site; return Sphinx's exit status."""
    parser = argparse.ArgumentParser(description="Builds the documentation as a site.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=ROOT / "build" / "site", help="default: build/site"
    )
    target = parser.parse_args(argv).folder.resolve()
    from sphinx.cmd.build import main as sphinx

    source = ROOT / "build" / "site-source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    assemble(source)
    options = [
        "--fail-on-warning",
        "--fresh-env",
        "--quiet",
        "--jobs",
        "auto",
        "-d",
        str(ROOT / "build" / "site-doctrees"),
    ]
    status = sphinx([*options, "-c", str(HERE), str(source), str(target)])
    if not status:
        print(target / "index.html")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
