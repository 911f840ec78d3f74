"""How the documentation is built: Sphinx, Markdown through MyST, the reference from docstrings.

Everything that a build needs is in the environment; nothing is fetched while building or reading.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.error_codes import page  # noqa: E402  found through the line above
from tools.proof_tables import tables  # noqa: E402

project = "Fanfold"
author = "The Fanfold authors"
project_copyright = "The Fanfold authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "**/_*.md"]
nitpicky = False  # private types stand in some signatures; links to them have no target on purpose
templates_path: list[str] = []

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "Fanfold"
html_copy_source = False
html_show_sourcelink = False

# The entries of errors.md are made from the sources at every build; see tools/error_codes.py.
(ROOT / "docs" / "reference" / "_errors.md").write_text(page(), encoding="utf-8")
# So are the tables of proof.md.
for name, text in tables().items():
    (ROOT / "docs" / "explanation" / name).write_text(text, encoding="utf-8")
