"""Pictures that are given by address, made data: no realtime model takes addresses.

Owns: `PictureFetcher`, which fetches them off the loop and bounds it all: time, size, where from, how many at once. Driven by
`session.py` (what is sent, and what a conversation begins with) and by the tools' results. It never keeps a picture.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from realtime.chat.context import ChatContext
from realtime.chat.messages import ImageContent
from realtime.errors import ImageError, LinkLost, RealtimeError, UserError
from realtime.pipelines.worker import WorkerPool
from realtime.transports.fetch import MAX_FETCH_BYTES, MAX_FETCH_SECONDS, Address, Fetch, is_public

__all__ = ["PictureFetcher", "has_addresses"]

_AT_ONCE = 4

Part = TypeVar("Part")


def has_addresses(images: Iterable[object]) -> bool:
    """Whether one of them is a picture by address."""
    return any(_is_address(image) for image in images)


def _is_address(image: object) -> bool:
    return isinstance(image, ImageContent) and not image.is_embedded and bool(image.url)


class PictureFetcher:
    """Makes data of pictures by address."""

    def __init__(
        self,
        *,
        enabled: bool = True,
        max_bytes: int = MAX_FETCH_BYTES,
        timeout_seconds: float = MAX_FETCH_SECONDS,
        allows: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Without a thread; they exist while something is fetched.

        Args:
            enabled: False: pictures by address are refused.
            max_bytes: The largest picture.
            timeout_seconds: The longest that one takes.
            allows: What may be connected to.
            tls: For a certificate authority of your own.
        """
        self._enabled = enabled
        self._max_bytes = max_bytes
        self._seconds = timeout_seconds
        self._allows = allows
        self._tls = tls
        self._pool = WorkerPool("realtime-fetch", max_threads=_AT_ONCE, max_waiting=256)

    def check(self, images: Iterable[object]) -> None:
        """Refuse what would have to be fetched and may not be.

        Raises:
            UserError: A picture is given by address, and fetching is off; the text says what would do.
        """
        if not self._enabled and has_addresses(images):
            raise UserError(
                "the model takes pictures as data, and this session fetches none (download=False): "
                "give the bytes (ImageContent.from_bytes)"
            )

    async def embed(self, parts: Sequence[Part]) -> list[Part]:
        """The same parts, with the pictures among them that are given by address as data.

        Raises:
            UserError: One is not to be had: not https, not public, too large, no picture; or fetching is off.
            LinkLost: A server could not be reached in time.
        """
        self.check(parts)
        if not has_addresses(parts):
            return list(parts)
        member = self._pool.join()
        turn = asyncio.Semaphore(_AT_ONCE)
        failed: RealtimeError | None = None
        tasks: list[asyncio.Task[Part]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self._embedded(part, turn)) for part in parts]
        except* RealtimeError as errors:
            failed = _first(cast("Any", errors))
        finally:
            self._pool.forget(member)
        if failed is not None:
            raise failed
        return [task.result() for task in tasks]

    async def embed_context(self, context: ChatContext) -> None:
        """Put data in the place of every address in a context. Meanwhile nobody else changes it.

        Raises:
            UserError, LinkLost: As for `embed`; nothing was changed.
        """
        lease = context.lease("session.send")
        try:
            entries = [entry for entry in lease.entries() if has_addresses(entry.message.images)]
            wanted = list(
                dict.fromkeys(image for entry in entries for image in entry.message.images if _is_address(image))
            )
            fetched = dict(zip(wanted, await self.embed(wanted), strict=True))
            for entry in entries:
                images = tuple(fetched.get(image, image) for image in entry.message.images)
                lease.replace(entry, replace(entry.message, images=images))
        finally:
            lease.release()

    async def _embedded(self, part: Part, turn: asyncio.Semaphore) -> Part:
        if not isinstance(part, ImageContent) or not _is_address(part):
            return part
        fetch = Fetch(
            part.url,
            max_bytes=self._max_bytes,
            timeout_seconds=self._seconds,
            allows=self._allows,
            tls=self._tls,
        )
        async with turn:
            try:
                async with asyncio.timeout(self._seconds + 1.0):
                    data = await self._pool.run(fetch.run)
            except TimeoutError:
                raise LinkLost(f"a picture was not there within {self._seconds:g} s") from None
            finally:
                fetch.abort()
        try:
            image = ImageContent.from_bytes(data, "", part.detail)
        except ImageError as error:
            raise UserError(f"what was fetched is no picture that a model takes: {error}") from error
        return cast("Part", image)


def _first(errors: BaseExceptionGroup[Any]) -> RealtimeError:
    found: Any = errors.exceptions[0]
    return _first(found) if hasattr(found, "exceptions") else found
