"""A console for tables and colours, on which text from files is made plain."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from kfhe.cli.echo import mute_errors
from kfhe.display.text import plain


class Console(RichConsole):
    """A console of rich on which text can't steer the terminal; styles and progress bars do so still."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is to be printed, made plain."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))

    def on_broken_pipe(self) -> None:
        """End where nobody reads standard output any more; without a reader of the remarks, go on."""
        if not self.stderr:
            super().on_broken_pipe()
        mute_errors()
