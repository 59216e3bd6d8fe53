"""A cluster whose workers are threads of this process: they start at once."""

import pytest
from clusters import local_cluster
from distributed import Client


@pytest.fixture(scope="module")
def client():
    with local_cluster(2, processes=False) as cluster, Client(cluster) as client:
        yield client
