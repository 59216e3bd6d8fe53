"""The command ``kfhe``: one module per command."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import warnings
from _thread import interrupt_main
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import apply, audit, data, evaluate, export, fit, plot, predict, study
from kfhe.cli.echo import echo
from kfhe.study.errors import StudyError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

app = typer.Typer(
    help="Kalman Filter-based Heuristic Ensemble: a classifier for labels that can't be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=apply.EXAMPLES)(apply.apply)
app.command(epilog=plot.EXAMPLES)(plot.plot)
app.command(epilog=export.EXAMPLES)(export.export)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")


YOUNG = 50_000  # objects after which garbage is searched for: commands begin by making many that stay

_debug = False
_interrupted = False


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        echo(f"kfhe {version('kfhe')}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    global _debug
    _debug = debug


def main() -> None:
    """Run the command line: 0 it worked, 1 it failed, 2 it was used wrongly, 130 it was ended."""
    # kill, as batch systems and containers use it, ends all as Ctrl-C does: files and processes are cleared
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    collect_after = gc.get_threshold()
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)  # nothing is searched for in what the process ends with
    sys.unraisablehook = _ask_again
    with warnings.catch_warnings():
        warnings.showwarning = _say
        try:
            app(prog_name="kfhe")
        except KeyboardInterrupt:  # before the command has begun, or after it has ended
            sys.exit(130)
        except Exception as error:
            if _debug:
                raise
            echo(f"kfhe: {_in_words(error)}", err=True)
            sys.exit(1)
        finally:
            gc.set_threshold(*collect_after)


def _ask_again(error: UnraisableHookArgs) -> None:
    """Interrupt once more if the first time was lost: Python drops what is raised while it clears up."""
    global _interrupted
    if issubclass(error.exc_type, KeyboardInterrupt):
        _interrupted = True
        Timer(0.01, _interrupt).start()  # here it would be lost again
    elif not _interrupted:  # else it may have come of being left half-way
        sys.__unraisablehook__(error)


def _interrupt() -> None:
    if sys.platform == "win32":
        interrupt_main()
    else:
        os.kill(os.getpid(), signal.SIGINT)  # ends waiting too, which interrupt_main does not


def _say(message: Warning | str, *where: Any, **others: Any) -> None:
    """Say what a warning says; where in the code it comes from is of no use here."""
    echo(f"kfhe: {message}", err=True)


def _in_words(error: Exception) -> str:
    """Return one line on what went wrong; errors that nobody foresaw come with their type."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table"
    message = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError | ImportError | StudyError):
        return message
    return f"{type(error).__name__}: {message} (kfhe --debug ... shows where)"
