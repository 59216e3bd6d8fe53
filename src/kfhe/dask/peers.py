"""Peers: connections between workers that train together.

Each worker listens on the interface that Dask uses, with Dask's security. Tasks run in threads of their own;
connections belong to the worker's event loop.
"""

from __future__ import annotations

import asyncio
from asyncio import run_coroutine_threadsafe
from typing import Any

from distributed import Worker
from distributed.comm.addressing import get_address_host, parse_address, unparse_address
from distributed.comm.core import connect, listen
from distributed.protocol.serialize import to_serialize

from kfhe.exchange import Exchange


class PeerLostError(ConnectionError):
    """A worker can't continue, because another worker or the client is gone."""


class Peers(Exchange):
    """The exchange with other workers on a cluster.

    Parameters
    ----------
    worker : Worker
        The worker.
    name : str
        The secret name of the training.
    rank, n : int
        The position of the worker, and the number of workers.
    """

    def __init__(self, worker: Worker, name: str, rank: int, n: int) -> None:
        self.rank, self.n = rank, n
        self._worker, self._name = worker, name
        self._inboxes: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(n)]
        self._comms: list[Any] = []  # incoming connections
        self._others: dict[int, Any] = {}  # outgoing connections
        self._lost: str | None = None  # why the others can't be asked any more

    async def open(self) -> str:
        """Start listening; return the address."""
        scheme, _ = parse_address(self._worker.address)
        host = "" if scheme == "inproc" else get_address_host(self._worker.address)
        host = f"[{host}]" if ":" in host else host
        arguments = self._worker.security.get_listen_args("worker")
        self._listener = listen(unparse_address(scheme, host), self._hear, **arguments)
        await self._listener.start()
        address: str = self._listener.contact_address
        return address

    async def _hear(self, comm: Any) -> None:
        """Store what another worker sends until it is needed."""
        self._comms.append(comm)
        rank = -1
        try:
            name, rank = await comm.read()
            while name == self._name:
                self._inboxes[rank].put_nowait((await comm.read())["thing"])
        except Exception as error:  # usually because the connection was closed
            self._inboxes[rank].put_nowait(PeerLostError(f"worker {rank} is gone: {error}"))
        comm.abort()

    def connect(self, addresses: list[str]) -> None:
        """Connect to the other workers at these addresses."""
        if self.n > 1:
            self._ask(self._connect(addresses))

    async def _connect(self, addresses: list[str]) -> None:
        arguments = self._worker.security.get_connection_args("worker")
        for rank, address in enumerate(addresses):
            if rank != self.rank:
                self._others[rank] = await connect(address, **arguments)
                await self._others[rank].write((self._name, self.rank))

    def swap(self, things: list[Any]) -> list[Any]:
        """Send each worker one of the items, and return those received."""
        received: list[Any] = things if self.n == 1 else self._ask(self._swap(things))
        return received

    async def _swap(self, things: list[Any]) -> list[Any]:
        sent = [comm.write({"thing": to_serialize(things[rank])}) for rank, comm in self._others.items()]
        return (await asyncio.gather(*map(self._receive, range(self.n), things), *sent))[: self.n]

    async def _receive(self, rank: int, own: Any) -> Any:
        if rank == self.rank:
            return own
        thing = await self._inboxes[rank].get()
        if isinstance(thing, PeerLostError):
            raise thing
        return thing

    def _ask(self, asked: Any) -> Any:
        """Wait, in the thread of the task, for a coroutine in the event loop."""
        if self._lost is not None:
            asked.close()
            raise PeerLostError(self._lost)
        try:
            return run_coroutine_threadsafe(asked, self._worker.loop.asyncio_loop).result()  # type: ignore[attr-defined]
        except OSError as error:
            raise PeerLostError(self._lost or str(error)) from error

    def lose(self, reason: str) -> None:
        """Wake up everything that waits for the others with an error; call it in the event loop."""
        self._lost = self._lost or reason
        for inbox in self._inboxes:
            inbox.put_nowait(PeerLostError(self._lost))
        for comm in self._others.values():
            comm.abort()

    def close(self) -> None:
        """Close all connections; call it in the event loop."""
        self.lose("the training is over")
        self._listener.stop()
        for comm in self._comms:
            comm.abort()
