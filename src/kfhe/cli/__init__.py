"""The command ``kfhe``: one module per command, with its options and what it prints.

The commands use the other packages: `kfhe.tables` reads tables, `kfhe.study` runs studies.
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

YOUNG = 50_000  # threshold of the garbage collector, because commands create many objects that stay

_interrupted = False


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    # SIGTERM, which batch systems and containers send, is handled like Ctrl-C: temporary files are removed
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steady_streams()
    collect_after = gc.get_threshold()
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)  # no garbage collection at exit
    sys.unraisablehook = _ask_again
    commands: Any = None
    with warnings.catch_warnings():
        warnings.showwarning = _say
        try:
            commands = import_module("kfhe.cli.commands")
            commands.app(prog_name="kfhe")
        except KeyboardInterrupt:  # before the command has started, or after it has ended
            sys.exit(130)
        except Exception as error:
            if commands is not None and commands.debug:
                raise
            echo(f"kfhe: {_in_words(error)}", err=True)
            sys.exit(1)
        finally:
            gc.set_threshold(*collect_after)


def _ask_again(error: UnraisableHookArgs) -> None:
    """Interrupt again if Python dropped the first interrupt, as it does in destructors."""
    global _interrupted
    if issubclass(error.exc_type, KeyboardInterrupt):
        _interrupted = True
        Timer(0.01, _interrupt).start()  # raised here, it would be dropped again
    elif not _interrupted:  # otherwise it may be a consequence of the interrupt
        sys.__unraisablehook__(error)


def _interrupt() -> None:
    if sys.platform == "win32":
        interrupt_main()
    else:
        os.kill(os.getpid(), signal.SIGINT)  # also ends system calls, unlike interrupt_main


def _say(message: Warning | str, *where: Any, **others: Any) -> None:
    """Print a warning without its place in the code."""
    echo(f"kfhe: {message}", err=True)


def _in_words(error: Exception) -> str:
    """Return an error in one line; unexpected errors are given with their type."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table"
    message = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError | ImportError | StudyError):
        return message
    return f"{type(error).__name__}: {message} (kfhe --debug ... shows where)"
