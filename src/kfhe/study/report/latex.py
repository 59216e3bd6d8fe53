"""A table as LaTeX."""

from __future__ import annotations

from kfhe.study.report.tables import Table, Value

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "<": r"$<$",
    ">": r"$>$",
}


def latex(table: Table) -> str:
    """Return a table as a LaTeX ``table`` environment that needs no package."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(table.title)}. {escaped(table.note)}\label{{tab:{table.key}}}}}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
        r"\hline",
        " & ".join(escaped(name) for name in table.head) + r" \\",
        r"\hline",
        *(" & ".join(_field(value) for value in row) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return a text with LaTeX's special characters as themselves."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _field(value: Value) -> str:
    text = escaped(value.text)
    return rf"\textbf{{{text}}}" if value.strong else text
