"""Clusters of this machine for tests, some of which kill their workers."""

from contextlib import contextmanager

from distributed import LocalCluster
from distributed.core import Status


@contextmanager
def local_cluster(n_workers, **settings):
    """A cluster of workers with a thread each, that is closed in the end even if workers have died."""
    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **settings)
    try:
        yield cluster
    finally:
        try:
            cluster.close()
        except KeyError:  # Dask, of a worker that was dying meanwhile
            cluster.status = Status.closed
