"""Clusters to train on: temporary ones on this machine, or existing ones."""

from __future__ import annotations

import logging
import signal
import sys
from asyncio import gather
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread
from types import FrameType

import dask
import psutil
from distributed import Client, LocalCluster, Worker
from distributed.system import MEMORY_LIMIT

SHARE_OF_MEMORY = 0.9  # of the free memory, for all workers together
SOON = 1.0  # seconds that workers have to exit


def free_memory() -> int:
    """Return how many more bytes this process may allocate."""
    return int(min(psutil.virtual_memory().available, MEMORY_LIMIT))


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """Start single-threaded workers on this machine; afterwards they and their files are removed.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    """
    with ExitStack() as stack:
        with _interrupted_later():
            folder = stack.enter_context(TemporaryDirectory(prefix="kfhe-", ignore_cleanup_errors=True))
            stack.enter_context(dask.config.set({"temporary-directory": folder}))
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                memory_limit=int(SHARE_OF_MEMORY * free_memory() / n_workers),
                dashboard_address="127.0.0.1:0",  # any free port, rather than the default one
                silence_logs=logging.CRITICAL,
                preload=[__name__],
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        try:
            yield client
        except BaseException:
            cluster.sync(_end_soon, cluster)
            raise


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until a cluster has started, because half of one can't be ended quietly.

    Threads and workers that are started meanwhile block the signals; this thread handles them afterwards.
    """
    if current_thread() is not main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    if sys.platform != "win32":
        resource_tracker.ensure_running()  # otherwise it would be started later, and unblock the signals
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt


async def _end_soon(cluster: LocalCluster) -> None:
    """End workers without waiting for their tasks."""
    closing = [worker.close(timeout=SOON) for worker in cluster.workers.values()]
    await gather(*closing, return_exceptions=True)


def dask_setup(worker: Worker) -> None:
    """Ignore Ctrl-C in a worker, which terminals send to all processes: the command ends its workers.

    Dask calls this when a worker of a local cluster starts.
    """
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def connected(scheduler: str, *, set_as_default: bool = True) -> Iterator[Client]:
    """Connect to a cluster by the address of its scheduler; TLS keys are in Dask's configuration.

    Parameters
    ----------
    scheduler : str
        The address, such as ``tcp://10.0.0.1:8786``.
    set_as_default : bool, default=True
        Whether it becomes the current client.

    Raises
    ------
    ConnectionError
        The scheduler does not answer.
    """
    client = Client.__new__(Client)
    try:
        client.__init__(scheduler, name="kfhe", set_as_default=set_as_default)  # type: ignore[misc]
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # no answer, no TLS, invalid address
        client.close()  # otherwise it would delay the exit of Python
        raise ConnectionError(f"no Dask scheduler can be reached at {scheduler}: {error}") from error
    with _silent("tornado.application"):  # Dask's event loop: an interrupt at the wrong moment confuses it
        try:
            yield client
        finally:
            with _silent("distributed.client"):  # logs a traceback if the scheduler is gone
                client.close()


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Switch a logger off."""
    log = logging.getLogger(name)
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False
