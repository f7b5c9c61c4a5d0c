"""What the commands' parsers have in common: bad input is one line, and names what was typed.

Owns: `CommandParser`, `count_or_any`, `number_or_any` and `path`. Driven by each command. It knows no option.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import re
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn, cast

from realtime.errors import ArgumentError

__all__ = ["CommandParser", "count_or_any", "number_or_any", "path"]

_CANNOT = 2


class CommandParser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(_CANNOT, f"{self.prog}: {message} (see {self.prog} --help)\n")

    @contextlib.contextmanager
    def naming_options(self, given: argparse.Namespace, **settings: str) -> Generator[None]:
        """Within it, an `ArgumentError` about the value of an option names the option, not the setting that it became.

        Args:
            given: What was read of the command line.
            settings: Settings that are not called as their option's ``dest``, with that.
        """
        try:
            yield
        except ArgumentError as error:
            dest = settings.get(error.argument, error.argument)
            action = next((each for each in self._actions if each.dest == dest), None)
            if action is None or not _came_from(error.given, getattr(given, dest, None)):
                raise
            raise _renamed(error, action) from error


def count_or_any(text: str) -> int | None:
    """A whole number; ``any`` is None."""
    return None if text == "any" else int(text)


def number_or_any(text: str) -> float | None:
    """A number; ``any`` is None."""
    return None if text == "any" else float(text)


count_or_any.__name__ = number_or_any.__name__ = "number (or 'any')"


def path(text: str) -> Path:
    """A path; an empty text, such as an empty variable of a shell, is none: `Path` makes the present folder of it."""
    if not text:
        raise argparse.ArgumentTypeError("a path is wanted, not an empty text")
    return Path(text)


def _came_from(value: object, typed: object) -> bool:
    """Whether a value that was refused is an option's, or one of those of an option that is given several times."""
    values = [typed]
    if isinstance(typed, list):
        values += cast("list[object]", typed)
    return any(str(value) == str(each) for each in values)


def _renamed(error: ArgumentError, action: argparse.Action) -> ArgumentError:
    typed = max(action.option_strings, key=len) if action.option_strings else str(action.metavar or action.dest)
    told = str(error).removeprefix(error.argument)
    if action.type in {count_or_any, number_or_any}:
        told = told.replace(", or None", ", or any")
    else:  # left out it is None, and cannot be typed
        told = re.sub(r", or None( for [^,]*)?(?=, not )", "", told)
    named = copy.copy(error)
    named.argument, named.args = typed, (typed + told,)
    return named
