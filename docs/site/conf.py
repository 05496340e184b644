# SPDX-License-Identifier: BSD-3-Clause
"""Settings of Sphinx for build.py."""

import os
import sys
import urllib.request
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import docstrings  # noqa: E402

from tracejit.errors import DOCUMENTATION  # noqa: E402

project = "tracejit"
author = "The tracejit developers"
copyright = author
version = release = version_of("tracejit")

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.intersphinx", "sphinx.ext.viewcode",
]  # fmt: skip
html_theme = "furo"
html_title = f"tracejit {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_baseurl = f"{DOCUMENTATION}/"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4  # as GitHub names them
myst_links_external_new_tab = True
default_role = "code"
smartquotes_action = "D"  # dashes only: a quoted word is often the value of an option
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"no-value": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes are shown as members
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
viewcode_line_numbers = True


def reachable(address: str) -> bool:
    """Return whether the names of another project can be had, unless DOCS_OFFLINE=1 says not to look."""
    if os.environ.get("DOCS_OFFLINE") == "1":
        return False
    try:
        with urllib.request.urlopen(f"{address}objects.inv", timeout=5):
            return True
    except OSError:
        return False


intersphinx_timeout = 10
intersphinx_mapping = {
    name: (address, None)
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "numba": "https://numba.readthedocs.io/en/stable/",
    }.items()
    if reachable(address)
}


def setup(app: Any) -> None:
    """Have docstrings read as plain text, before napoleon reads their sections."""

    def convert(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.converted(lines)

    app.connect("autodoc-process-docstring", convert, priority=400)
