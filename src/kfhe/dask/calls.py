"""Calls: what a task is to do, with the tasks that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from dask.utils import funcname
from distributed import Future as AnyFuture

from kfhe.dask.rooms import freed_memory
from kfhe.dask.spread import Future, Path, picked


class Call:
    """A function and its arguments as a task: Dask does not have to look for tasks in large values.

    Parameters
    ----------
    function : callable
        The function.
    arguments : sequence
        Values, tasks, items of what they return, and lists and dicts of these.
    at : str or None
        The address of the worker that is to call it, if that is there.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], at: str | None) -> None:
        self.function, self.key, self.place = function, _key_of(function), [at] if at else []
        self.tasks: list[Future] = []
        self.arguments = [self._numbered(each) for each in arguments]

    def _numbered(self, argument: Any) -> Any:
        """Return an argument with numbers in place of tasks."""
        if isinstance(argument, AnyFuture):
            self.tasks.append(argument)
            return Numbered(len(self.tasks) - 1, ())
        if isinstance(argument, Item):
            return Numbered(self._numbered(argument.task).number, argument.path)
        if isinstance(argument, dict):
            return {key: self._numbered(each) for key, each in argument.items()}
        if isinstance(argument, list):
            return [self._numbered(each) for each in argument]
        return argument

    def __dask_tokenize__(self) -> str:
        return self.key

    def __call__(self, made: list[Any]) -> Any:
        """Call the function with what the tasks have made."""
        freed_memory.keep_if_plenty()
        return self.function(*[_put_in(each, made) for each in self.arguments])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the tasks, which Dask knows."""
        return {**self.__dict__, "tasks": []}


class Item(NamedTuple):
    """An argument that is an item of what a task returns; where it is needed, all of that is sent."""

    task: Future
    path: Path


class Numbered(NamedTuple):
    """The place of what a task makes, and the path to an item of it."""

    number: int
    path: Path


def _put_in(argument: Any, made: list[Any]) -> Any:
    """Return an argument with what tasks have made in place of their numbers."""
    if isinstance(argument, Numbered):
        return picked(made[argument.number], argument.path)
    if isinstance(argument, dict):
        return {key: _put_in(each, made) for key, each in argument.items()}
    if isinstance(argument, list):
        return [_put_in(each, made) for each in argument]
    return argument


def _key_of(function: Callable[..., Any]) -> str:
    """Return a name for a task that no other has; what is before the dash is shown on the dashboard."""
    return f"kfhe.{getattr(function, 'name', None) or funcname(function)}-{uuid4().hex}"
