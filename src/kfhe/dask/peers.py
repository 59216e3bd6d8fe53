"""Peers: workers that train together, and what they send each other over connections as Dask makes them.

Each worker listens where Dask has its address, with the security that Dask was given. A task runs in a thread
of its own; connections belong to the worker's event loop.
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
    """A worker can't train on, as another one that has some of the rows is gone, or nobody waits for it."""


class Peers(Exchange):
    """What a worker knows of the others that train with it.

    Parameters
    ----------
    worker : Worker
        The worker.
    name : str
        The name of the training, which no stranger knows.
    rank, n : int
        The number of the worker, and how many there are.
    """

    def __init__(self, worker: Worker, name: str, rank: int, n: int) -> None:
        self.rank, self.n = rank, n
        self._worker, self._name = worker, name
        self._inboxes: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(n)]
        self._comms: list[Any] = []  # those by which others are heard
        self._others: dict[int, Any] = {}  # those by which they are told
        self._lost: PeerLostError | None = None

    async def open(self) -> str:
        """Begin to listen; return the address."""
        scheme, _ = parse_address(self._worker.address)
        host = "" if scheme == "inproc" else get_address_host(self._worker.address)
        host = f"[{host}]" if ":" in host else host
        arguments = self._worker.security.get_listen_args("worker")
        self._listener = listen(unparse_address(scheme, host), self._hear, **arguments)
        await self._listener.start()
        address: str = self._listener.contact_address
        return address

    async def _hear(self, comm: Any) -> None:
        """Put aside what one of the others sends, until it is asked for."""
        self._comms.append(comm)
        rank = -1
        try:
            name, rank = await comm.read()
            while name == self._name:
                self._inboxes[rank].put_nowait((await comm.read())["thing"])
        except Exception as error:  # of a connection that is closed, most often
            self._inboxes[rank].put_nowait(PeerLostError(f"worker {rank} is gone: {error}"))
        comm.abort()

    def connect(self, addresses: list[str]) -> None:
        """Connect to the others, who listen at these addresses."""
        if self.n > 1:
            self._ask(self._connect(addresses))

    async def _connect(self, addresses: list[str]) -> None:
        arguments = self._worker.security.get_connection_args("worker")
        for rank, address in enumerate(addresses):
            if rank != self.rank:
                self._others[rank] = await connect(address, **arguments)
                await self._others[rank].write((self._name, self.rank))

    def swap(self, things: list[Any]) -> list[Any]:
        """Send each worker one of some things, and return what each has sent here."""
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
        """Wait, in the thread of the task, for what is done by the loop."""
        if self._lost is not None:
            asked.close()
            raise self._lost
        try:
            return run_coroutine_threadsafe(asked, self._worker.loop.asyncio_loop).result()  # type: ignore[attr-defined]
        except OSError as error:
            raise self._lost or PeerLostError(str(error)) from error

    def lose(self, reason: str) -> None:
        """Let whatever waits for the others know that it waits in vain; to be called by the loop."""
        self._lost = self._lost or PeerLostError(reason)
        for inbox in self._inboxes:
            inbox.put_nowait(self._lost)
        for comm in self._others.values():
            comm.abort()

    def close(self) -> None:
        """Close all connections; to be called by the loop."""
        self.lose("the training is over")
        self._listener.stop()
        for comm in self._comms:
            comm.abort()
