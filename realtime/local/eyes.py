"""Pictures to words: size, brightness and color at a glance, text by a reader.

Owns: `PictureEyes`. Driven by a responder. Decoding is done on the server's worker pool, reading by a `WordReader`, which
is started with the first picture, so that a server that is never shown one does not hold it. What was found in a picture
is remembered as long as the picture lives.
"""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from typing import Protocol

from realtime.chat.messages import ImageContent
from realtime.local.parts import Sight
from realtime.local.pictures import glance
from realtime.local.weights import package_dir
from realtime.local.workers import FairPool

__all__ = ["PictureEyes", "WordReader"]


class WordReader(Protocol):
    """Finds the lines of text in a picture."""

    async def prepare(self) -> None:
        """Make ready to read."""
        ...

    async def read(self, picture: bytes) -> list[str]:
        """The lines, from top to bottom.

        Raises:
            ImageError: It cannot be decoded.
            ModelError: The reader failed.
        """
        ...

    async def aclose(self) -> None:
        """Give up what it holds."""
        ...


class PictureEyes:
    """The embedded `Eyes`."""

    def __init__(self, pool: FairPool, reader: WordReader) -> None:
        """Open them. Nothing is loaded yet.

        Args:
            pool: Where pictures are decoded.
            reader: Finds text.

        Raises:
            MissingExtraError: A package of the extra `local` is missing.
        """
        package_dir("rapidocr", what="reading pictures", package="rapidocr")
        self._pool = pool
        self._reader = reader
        self._looking = asyncio.Lock()
        self._is_prepared = False
        self._seen: dict[int, tuple[weakref.ref[ImageContent], Sight, bool]] = {}

    async def look(self, picture: ImageContent, *, owner: str, read: bool = True) -> Sight:
        """Say what a picture shows; twice the same picture costs once."""
        known = self._recall(picture, read=read)
        if known is not None:
            return known
        async with self._looking:
            known = self._recall(picture, read=read)
            if known is not None:
                return known
            sight = self._recall(picture, read=False)
            if sight is None:
                sight = await self._pool.run(owner, "now", glance, picture.data)
                self._remember(picture, sight, read=False)
            if read:
                sight = replace(sight, lines=tuple(await self._reader.read(picture.data)))
                self._remember(picture, sight, read=True)
            return sight

    async def prepare(self) -> None:
        """Make ready to read, when there is time, rather than when somebody waits for it. Tried once."""
        if not self._is_prepared:
            self._is_prepared = True
            await self._reader.prepare()

    async def aclose(self) -> None:
        """End the reader."""
        await self._reader.aclose()

    def _recall(self, picture: ImageContent, *, read: bool) -> Sight | None:
        entry = self._seen.get(id(picture))
        if entry is None or entry[0]() is not picture or (read and not entry[2]):
            return None
        return entry[1]

    def _remember(self, picture: ImageContent, sight: Sight, *, read: bool) -> None:
        key, seen = id(picture), self._seen

        def forget(reference: weakref.ref[ImageContent]) -> None:
            if key in seen and seen[key][0] is reference:
                del seen[key]

        seen[key] = (weakref.ref(picture, forget), sight, read)
