"""The documentation site, made by Sphinx from the Markdown files of ``docs/``.

    pip install ".[docs]" && python -m sphinx -W --keep-going -c docs/site docs build/site

``build/site/index.html`` is the start page then. It opens from the disk or from any web server. Nothing of the site
comes from the network, and the search needs no server. Warnings are errors: a page without a place in
:data:`PLACES`, or a link that leads nowhere.

The pages are written for a plain git host, where every relative link works. On the site, a link to a file that the site
has leads to its page, and names it by its title. A link to another file of the repository becomes plain text.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]

project = "pyparq"
html_title = "pyparq"
html_theme = "furo"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_heading_anchors = 4
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
highlight_language = "text"
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00695c"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
}

PLACES = {
    "": ["Start here <self>", "Installing <installing>", "tour"],
    "Guides": [
        "selective-reads", "Writing for them <writing>", "Row group sizes <row-group-size>", "filters", "tables",
        "CSV and JSON <csv-and-json>", "embeddings", "Many files <datasets>", "Writing folders <writing-datasets>",
        "Append and delete <append>", "S3 with a key <s3>",
    ],
    "More guides": [
        "Changing rows <deleting>", "Looking up keys <lookup>", "Catalogs of keys <catalog>",
        "Adding indexes <add-indexes>", "Joining, rewriting <rewriting>", "verify", "URLs and stores <urls>",
        "Your own stores <own-stores>", "Stores that fail <store-errors>", "Event loops <async>",
        "Delta Lake and Iceberg <delta-and-iceberg>", "encryption", "pictures", "Other tools <tools>", "spark",
        "Spark platforms <spark-platforms>",
    ],
    "Coming from another library": ["Calls side by side <coming-from>", "pyarrow: one import <pyarrow>"],
    "Reference": [
        "Python <api>", "Command line <command-line>", "types", "Format support <status>", "glossary",
    ],
    "How it works": ["parquet-file", "page-index", "bloom-filters", "what-is-read", "store-requests",
                     "Objects that change <changing-objects>", "Encodings <encodings>", "files"],
    "For developers": [
        "architecture", "Decisions <decisions>", "Wrong footers <footer>", "Other readers and writers <interop>",
        "Spark's pushed filters <spark-pushdown>", "Benchmarks <site/performance>", "site/changelog",
        "site/contributing",
    ],
}  # fmt: skip
"""The navigation: captions and pages, some with a shorter title. Each page of ``docs/`` has a place; the pages of the
Python reference stand below it."""
PARTS = sorted(path.stem for path in (ROOT / "docs").glob("api-*.md"))
RANKS = {
    "Guides": 12, "More guides": 8, "Reference": 6, "": 4, "Coming from another library": 0, "How it works": 0,
    "For developers": -60,
}  # fmt: skip
"""What the search adds to the score of a page. A word in a title gives at most 15 without it, one in the text 5."""
SCORER = """
var Scorer = {
  score: (result) => result[4] + (RANKS[result[0]] || 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
"""

OUTSIDE = {
    "README.md": "docs/index.md",
    "CHANGELOG.md": "docs/site/changelog.md",
    "CONTRIBUTING.md": "docs/site/contributing.md",
    "benchmarks/README.md": "docs/site/performance.md",
}
"""Pages of the repository that lie outside of ``docs/``, and the pages of the site that stand for them."""

BLOCK = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def with_links(text: str, file: Path, page: Path) -> str:
    """The text of ``file`` for the page at ``page``: links lead to pages of the site. Code stays as it is."""
    parts = BLOCK.split(text)
    return "".join(p if p.startswith("```") else LINK.sub(lambda found: _link(found, file, page), p) for p in parts)


def _link(found: re.Match[str], file: Path, page: Path) -> str:
    image, text, target = found.groups()
    name, hash_, anchor = target.partition("#")
    if not name or "://" in name:
        return found[0]
    there = Path(os.path.normpath(file.parent / name)).relative_to(ROOT).as_posix()
    there = OUTSIDE.get(there, there)
    if not image and not there.startswith("docs/"):
        return text
    if text.endswith(".md"):
        text = ""  # Sphinx puts the title of the page there.
    return f"{image}[{text}]({os.path.relpath(ROOT / there, page.parent)}{hash_}{anchor})"


def navigation() -> str:
    """What the start page ends with: the places of all pages, which its text on a git host does not show."""
    return "\n\n" + "\n\n".join(_tree(title, pages) for title, pages in PLACES.items()) + "\n"


def _tree(title: str, pages: list[str]) -> str:
    caption = f":caption: {title}\n" if title else ""
    return f"```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```"


def ranks() -> dict[str, int]:
    """What the search adds to each page: least of the reference to names that stand in for those of others."""
    named = {page.rpartition("<")[2].rstrip(">"): rank for title, rank in RANKS.items() for page in PLACES[title]}
    return named | {part: RANKS["Reference"] - 3 * ("in-" in part) for part in PARTS}


def _scorer(app: Sphinx, *_: object) -> None:
    """The search's own order of results, with :func:`ranks`."""
    path = Path(app.outdir) / "scorer.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"const RANKS = {json.dumps(ranks())};\n{SCORER}")
    app.config.html_search_scorer = str(path)


def _page(app: Sphinx, name: str, content: list[str]) -> None:
    page = file = Path(app.srcdir) / f"{name}.md"
    for outside, inside in OUTSIDE.items():
        if inside == f"docs/{name}.md" and name != root_doc:
            file = ROOT / outside
            content[0] = file.read_text("utf-8")
    text = with_links(content[0], file, page).replace("✅", "✓").replace("❌", "✗")  # emoji need a font
    content[0] = text + (navigation() if name == root_doc else f"\n\n{_tree('', PARTS)}\n" if name == "api" else "")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _page)
    app.connect("config-inited", _scorer)
