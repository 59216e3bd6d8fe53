"""How the documentation is built: ``make docs``."""

import re
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import kfhe
from kfhe.audit import label_quality
from kfhe.review import write_page
from kfhe.tables.labelled import ColumnRoles, LabelledTable

project = "kfhe"
author = "The kfhe developers"
copyright = author
version = release = kfhe.__version__

# The examples, in the order to be read in
GALLERY = ["battery", "noisy_labels", "noise_models", "regions", "evaluation", "audit", "trace"]
GALLERY += ["abstaining", "early_stopping", "categories", "component", "framework"]
# Pages of the top level: there is no section to navigate in
SINGLE = ["index", "idea", "reproduction", "paper", "contributing", "changelog"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True

myst_heading_anchors = 3
default_role = "code"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template of a class lists its methods

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in GALLERY]),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("kfhe",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
}

# The example page of the guide, made as `kfhe audit --page` makes it
PAGES = Path(__file__).parent / "generated" / "pages"
CUSTOMERS = Path(__file__).parents[1] / "examples" / "data" / "customers.csv"
customers = LabelledTable.read(CUSTOMERS, ColumnRoles("outcome"))
write_page(
    PAGES / "review.html",
    label_quality(customers.X, customers.y, random_state=0),
    customers.X,
    target="outcome",
    name="customers.csv",
    row_numbers=customers.row_numbers,
)
html_extra_path = ["generated/pages"]

html_theme = "pydata_sphinx_theme"
html_title = f"kfhe {release}"
html_static_path = ["_static"]
html_css_files = ["kfhe.css"]
html_sidebars = {page: [] for page in SINGLE}
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

# Links to examples are such that the repository's pages have them as well
EXAMPLE = re.compile(r"\]\((?:\.\./)+examples(?:/(\w+)\.py)?\)")


def link_gallery(app, docname, source):
    """Make a link to an example one to its page in the gallery."""
    source[0] = EXAMPLE.sub(lambda link: f"](/gallery/{link[1] or 'index'})", source[0])


def setup(app):
    """Tell sphinx what to call, and when."""
    app.connect("source-read", link_gallery)
