"""Workers: running functions on partitions, and errors if no workers are left."""

from __future__ import annotations

from asyncio import run_coroutine_threadsafe
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager
from math import ldexp
from time import monotonic
from typing import Any, Self

import numpy as np
from distributed import Client, KilledWorker, get_client

from kfhe.engine.arrays import highest, squares_of_units, sum_of_units, unit_of

Future = Any  # Dask's

PATIENCE = 60.0  # seconds without any worker before training fails
LOOK_EVERY = 1.0  # seconds between two checks for workers


class ClusterLostError(ConnectionError):
    """The scheduler of a Dask cluster, or too many of its workers, were lost during training."""


class Parts(list[Any]):
    """Arguments that differ by partition: values, or tasks that compute them."""


class Workers:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client : Client
        The cluster.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    def here(cls) -> Self:
        """Return the workers of the current client; raise if there is none."""
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask cluster to train on; create a client first, such as "
                "distributed.Client() for one on this machine"
            ) from None
        return cls(client)

    def run(self, function: Callable[..., Any], *arguments: Any, at: str | None = None) -> Future:
        """Run a function on a worker, if possible on the one at an address; arguments may be tasks."""
        place = {} if at is None else {"workers": [at], "allow_other_workers": True}
        with self.watched():
            return self.client.submit(function, *arguments, pure=False, **place)

    def each(self, function: Callable[..., Any], *arguments: Any) -> Parts:
        """Run a function for each partition; it gets one item of each `Parts`, and other arguments whole."""
        n_parts = next(len(each) for each in arguments if isinstance(each, Parts))
        own = [[each[p] if isinstance(each, Parts) else each for each in arguments] for p in range(n_parts)]
        return Parts(self.run(function, *each) for each in own)

    def exact_sum(self, values: Parts, n: int) -> float:
        """Return the exact sum of n non-negative values, as on one machine; NaN if one is invalid."""
        top = float(np.max(self.result(self.each(highest, values))))
        if np.isnan(top):
            return top
        unit = unit_of(top, n)
        return ldexp(float(sum(self.result(self.each(sum_of_units, values, unit)))), -unit)

    def effective_sample_size(self, weights: Parts, n: int) -> float:
        """Return the effective sample size of n weights that sum to 1."""
        unit = unit_of(max(self.result(self.each(highest, weights))) ** 2, n)
        return 1 / ldexp(float(sum(self.result(self.each(squares_of_units, weights, unit)))), -unit)

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker; wait until there is a worker."""
        alone_since = monotonic()
        while True:
            with self.watched():
                threads: dict[str, int] = self.client.nthreads()
            if threads:
                return dict(sorted(threads.items()))
            if monotonic() - alone_since > PATIENCE:
                raise ClusterLostError(f"there has been no worker for {PATIENCE:.0f} seconds")
            wait([], timeout=LOOK_EVERY)

    def result(self, futures: Any) -> Any:
        """Wait for the results of tasks, as long as there are workers."""
        with self.watched():
            loop = self.client.loop.asyncio_loop  # type: ignore[union-attr]
            wanted = list(futures) if isinstance(futures, Parts) else futures
            gathered = run_coroutine_threadsafe(self.client.gather(wanted, asynchronous=True), loop)
            try:
                while not wait([gathered], timeout=LOOK_EVERY).done:
                    self.threads()
                return gathered.result()
            finally:
                gathered.cancel()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise ClusterLostError if an error is caused by a lost cluster."""
        try:
            yield
        except KilledWorker as error:
            raise ClusterLostError(f"too many workers died: {error}") from error
        except (Exception, CancelledError) as error:  # a closed client raises several types
            if not isinstance(error, ClusterLostError) and self.client.status != "running":
                raise ClusterLostError("the scheduler is gone") from error
            raise
