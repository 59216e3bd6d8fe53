"""Clusters to train on: one of this machine that is gone afterwards, or one that is there already."""

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

SHARE_OF_MEMORY = 0.9  # of what is free, that the workers may have together
SOON = 1.0  # seconds that workers have to end, once nobody waits for them


def free_memory() -> int:
    """Return how many bytes this process may still have."""
    return int(min(psutil.virtual_memory().available, MEMORY_LIMIT))


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """Start workers of one thread each on this machine; they, and what they wrote, are gone afterwards.

    Parameters
    ----------
    n_workers : int
        How many.
    """
    with ExitStack() as stack:
        with _interrupted_later():
            folder = stack.enter_context(TemporaryDirectory(prefix="kfhe-", ignore_cleanup_errors=True))
            stack.enter_context(dask.config.set({"temporary-directory": folder}))
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                memory_limit=int(SHARE_OF_MEMORY * free_memory() / n_workers),
                dashboard_address="127.0.0.1:0",  # a port that is free; without any, the usual one is taken
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
    """Let the first Ctrl-C, or kill, wait until a cluster has started: half of one can't be ended quietly.

    Threads and workers that are started meanwhile never hear of Ctrl-C; this thread does, afterwards.
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
        resource_tracker.ensure_running()  # else it would be started with the workers, and unblock the signal
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
    """End workers without waiting for what they are at."""
    closing = [worker.close(timeout=SOON) for worker in cluster.workers.values()]
    await gather(*closing, return_exceptions=True)


def dask_setup(worker: Worker) -> None:
    """Leave Ctrl-C, which a terminal sends to workers as well, to the command: it ends them.

    Dask calls this in each worker of a local cluster, as it starts.
    """
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def connected(scheduler: str, *, set_as_default: bool = True) -> Iterator[Client]:
    """Connect to a cluster by the address of its scheduler; Dask's configuration has the TLS keys.

    Parameters
    ----------
    scheduler : str
        The address, such as ``tcp://10.0.0.1:8786``.
    set_as_default : bool, default=True
        Whether the classifiers find it by themselves.

    Raises
    ------
    ConnectionError
        If nobody answers there.
    """
    client = Client.__new__(Client)
    try:
        client.__init__(scheduler, name="kfhe", set_as_default=set_as_default)  # type: ignore[misc]
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # no answer, no TLS, no address
        client.close()  # else it would wait for an answer when Python ends
        raise ConnectionError(f"no Dask scheduler can be reached at {scheduler}: {error}") from error
    try:
        yield client
    finally:
        # If it is just trying to reach a scheduler that is gone, it logs the trace of where it was
        log = logging.getLogger("distributed.client")
        log.disabled = True
        try:
            client.close()
        finally:
            log.disabled = False
