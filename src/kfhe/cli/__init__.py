"""The command ``kfhe``: one module per command, with its options and what it prints.

What commands do is in the other packages: tables are read by `kfhe.tables`, studies run by `kfhe.study`.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import warnings
from _thread import interrupt_main
from importlib import import_module
from threading import Timer
from typing import TYPE_CHECKING, Any

from kfhe.cli.echo import echo, steady_streams
from kfhe.study.errors import StudyError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

YOUNG = 50_000  # objects after which garbage is searched for: commands begin by making many that stay

_interrupted = False


def main() -> None:
    """Run the command line: 0 it worked, 1 it failed, 2 it was used wrongly, 130 it was ended."""
    # kill, as batch systems and containers use it, ends all as Ctrl-C does: files and processes are cleared
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steady_streams()
    collect_after = gc.get_threshold()
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)  # nothing is searched for in what the process ends with
    sys.unraisablehook = _ask_again
    commands: Any = None
    with warnings.catch_warnings():
        warnings.showwarning = _say
        try:
            commands = import_module("kfhe.cli.commands")
            commands.app(prog_name="kfhe")
        except KeyboardInterrupt:  # before the command has begun, or after it has ended
            sys.exit(130)
        except Exception as error:
            if commands is not None and commands.debug:
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
