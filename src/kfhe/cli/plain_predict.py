"""``kfhe predict MODEL TABLE -o OUTPUT.csv``, run without typer: its start takes as long as many rows."""

from __future__ import annotations

from pathlib import Path

EXPANDED = frozenset("*?[~$%")  # typer makes other names of these on Windows


def predicts_plainly(arguments: list[str]) -> bool:
    """Run the command if it is as plain as that, with ``--proba`` or without; others are left to typer."""
    if arguments[:1] != ["predict"]:
        return False
    paths, output, proba = [], "", False
    given = iter(arguments[1:])
    for argument in given:
        if argument in ("-o", "--output"):
            output = next(given, "")
        elif argument == "--proba":
            proba = True
        else:
            paths.append(argument)
    if len(paths) != 2 or not output.endswith(".csv"):
        return False
    if any(not path or path[0] == "-" or EXPANDED & {*path} for path in (*paths, output)):
        return False
    from kfhe.files import unwritable

    model, table, written = map(Path, (*paths, output))
    if unwritable(written, model, table):
        return False
    from kfhe.cli.predicting import predict_table

    predict_table(model, table, written, proba=proba)
    return True
