"""What is spread over workers: each has some parts of it, or is still to make them.

A task costs as much as a pass over many rows does, and so does each wait for the next one. So functions of
parts are only noted as steps first. Steps of which one needs what another makes become one program, that one
task runs for each part. It returns what somebody still holds a `Spread` of; all else is forgotten on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias
from weakref import ref

import numpy as np
from dask.utils import funcname
from distributed import Future as AnyFuture
from numpy.typing import NDArray

Future: TypeAlias = "AnyFuture[Any]"  # what a task will return; older ones of Dask are not generic
Path = tuple[int, ...]  # an item of a tuple, an item of that, and so on


class Sample(NamedTuple):
    """What is known of a sample of the rows."""

    iteration: int
    redraw: int
    class_totals: NDArray[np.int64]  # how many rows of each class it has


class Spread:
    """Something that has a part for each block of the rows.

    Parameters
    ----------
    tasks : list of Future, default=()
        What returns the parts, in the order of the rows, if they have been started.

    Attributes
    ----------
    sample : Sample or None
        What is known of a sample, if these are its counts.
    top : float or None
        The highest of its values, if that is known.
    blocks : list of Future, Spread or None
        The sums of its values in blocks of rows, in all parts, if rows are to be drawn by them.
    likely : Spread or None
        What it is likely to stand for, if it was promised: work may begin with that.
    squares : tuple of Spread and int, or None
        The sum of their squares in each part, and the unit that it is in, if rows were drawn by them.
    small : list of Future or Item, or None
        The parts, in tasks that return nothing large besides, if these were brought here.
    brought : list or None
        The parts themselves, if they were brought here and nobody has asked for them yet.
    """

    def __init__(self, tasks: Sequence[Future] = ()) -> None:
        self.sample: Sample | None = None
        self.top: float | None = None
        self.blocks: Any = None
        self.likely: Spread | None = None
        self.squares: tuple[Spread, int] | None = None
        self.small: list[Any] | None = None
        self.brought: list[Any] | None = None
        self._tasks: Sequence[Future] = tasks
        self._path: Path = ()  # where a part is in what its task returns, or in the whole
        self._whole: Spread | None = None  # of whose parts these are items
        self._step: Step | None = None  # that is still to make it
        self._promise: Callable[[], Spread] | None = None

    @classmethod
    def promised(cls, promise: Callable[[], Spread]) -> Self:
        """Return what a function is to say when it is needed: it may wait for what is not known yet."""
        spread = cls()
        spread._promise = promise
        return spread

    def resolved(self) -> Spread:
        """Return what it stands for, if it was promised; else itself."""
        if self._promise is not None:
            self._whole, self._promise = self._promise(), None
        return self if self._whole is None or self._path else self._whole

    @property
    def is_promised(self) -> bool:
        """Whether it is still to be found out what it stands for."""
        return self._promise is not None

    @property
    def drawn_as(self) -> tuple[int, int] | None:
        """The iteration and the redraw of a sample, if these are its counts."""
        return None if self.sample is None else (self.sample.iteration, self.sample.redraw)

    @classmethod
    def of_step(cls, function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Self, Step]:
        """Return what a function is to make, and the step that is to make it."""
        spread = cls()
        step = spread._step = Step(function, [Argument.of(each) for each in arguments], ref(spread))
        return spread, step

    def items(self, n: int) -> list[Spread]:
        """Return the n items of parts that are tuples; nothing is computed for that."""
        made = [Spread() for _ in range(n)]
        for i, each in enumerate(made):
            each._whole, each._path = self, (i,)
        return made

    def place(self) -> tuple[Step | None, Sequence[Future], Path]:
        """Return the step that is still to make it, or the tasks that do, and the path from there."""
        self.resolved()
        if self._whole is None:
            return self._step, self._tasks, self._path
        step, tasks, path = self._whole.place()
        return step, tasks, path + self._path

    def start(self, tasks: Sequence[Future], path: Path) -> None:
        """Note which tasks make it."""
        self._tasks, self._path, self._step = tasks, path, None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same: parts never change."""
        return self


class OfParts:
    """Arguments of functions that are different for each part.

    Parameters
    ----------
    values : sequence
        What each part gets; these may be tasks.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


class Shared:
    """An argument that is too large to be sent with the task of each part, unless there are few.

    Parameters
    ----------
    value : object
        What all parts get.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


class Argument(NamedTuple):
    """An argument of a step: what another step makes, or what is given."""

    step: Step | None
    given: Any
    path: Path

    @classmethod
    def of(cls, value: Any) -> Self:
        """Take what a function is to get."""
        if not isinstance(value, Spread):
            return cls(None, value, ())
        step, tasks, path = value.place()
        return cls(step, OfParts(tasks), path)


class Step(NamedTuple):
    """A function that is still to be run for each part."""

    function: Callable[..., Any]
    arguments: list[Argument]
    made: ref[Spread]


class Program:
    """Steps that are run for a part by one task.

    Parameters
    ----------
    steps : list of Step
        The steps; each comes after those that it needs.

    Attributes
    ----------
    name : str
        The names of the functions.
    given : list
        What the task gets; of `OfParts`, those of its part. The first is what all parts share, a tuple.
    made : list of Spread
        What its task returns: if these are several, a tuple.
    """

    def __init__(self, steps: list[Step]) -> None:
        numbers = {id(step): i for i, step in enumerate(steps)}
        self.name = "+".join(funcname(step.function) for step in steps)
        self.given: list[Any] = [()]
        self.made: list[Spread] = []
        self._calls: list[tuple[Callable[..., Any], list[tuple[bool, int, Path]]]] = []
        self._returned: list[int] = []
        for i, step in enumerate(steps):
            self._calls.append((step.function, [self._source(each, numbers) for each in step.arguments]))
            spread = step.made()
            if spread is not None:
                self._returned.append(i)
                self.made.append(spread)
        last_use = {j: i for i, (_, sources) in enumerate(self._calls) for ours, j, _ in sources if ours}
        self._forgotten = [
            [j for j, last in last_use.items() if last == i and j not in self._returned]
            for i in range(len(steps))
        ]

    def _source(self, argument: Argument, numbers: dict[int, int]) -> tuple[bool, int, Path]:
        """Return whether a step makes an argument, the number of it or of what is given, and a path."""
        if argument.step is not None:
            return True, numbers[id(argument.step)], argument.path
        if isinstance(argument.given, Shared):
            self.given[0] = (*self.given[0], argument.given.value)
            return False, 0, (len(self.given[0]) - 1,)
        self.given.append(argument.given)
        return False, len(self.given) - 1, argument.path

    def given_to(self, p: int) -> list[Any]:
        """Return what the task of a part gets."""
        return [each.values[p] if isinstance(each, OfParts) else each for each in self.given]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what workers don't need."""
        return {**self.__dict__, "given": [], "made": []}

    def __call__(self, *given: Any) -> Any:
        """Run the steps for a part."""
        made: list[Any] = []
        for (function, sources), forgotten in zip(self._calls, self._forgotten, strict=True):
            made.append(function(*[picked(made[i] if ours else given[i], path) for ours, i, path in sources]))
            for i in forgotten:
                made[i] = None
        returned = tuple(made[i] for i in self._returned)
        return returned[0] if len(returned) == 1 else returned


def program_of(wanted: Sequence[Step], steps: Sequence[Step]) -> tuple[Program, list[Step]]:
    """Make a program of some steps and all that has to do with them; return it, and the steps that are left.

    All that has to do with the first runs first: what it needs on the way has made room for the others then.
    What nobody needs is in neither.
    """
    needed = {id(each) for each in steps if each.made() is not None}
    groups: dict[int, list[Step]] = {}  # by step; steps that have to do with each other share one
    for each in reversed(steps):
        needs = [argument.step for argument in each.arguments if argument.step is not None]
        if id(each) in needed:
            needed |= {id(other) for other in needs}
            groups[id(each)] = [each]
    kept = [each for each in steps if id(each) in needed]
    for each in kept:
        for argument in each.arguments:
            if argument.step is not None and groups[id(argument.step)] is not groups[id(each)]:
                both = groups[id(argument.step)] + groups[id(each)]
                groups |= {id(member): both for member in both}
    own = {id(member) for step in wanted for member in groups[id(step)]}
    ranks = {id(groups[id(step)]): rank for rank, step in reversed([*enumerate(wanted)])}
    chosen = sorted((each for each in kept if id(each) in own), key=lambda each: ranks[id(groups[id(each)])])
    return Program(chosen), [each for each in kept if id(each) not in own]


def picked(value: Any, path: Path) -> Any:
    """Return what is at the end of a path; the value itself if that is empty."""
    for i in path:
        value = value[i]
    return value


def all_picked(value: Any, paths: Sequence[Path]) -> list[Any]:
    """Return what is at the ends of several paths."""
    return [picked(value, path) for path in paths]
