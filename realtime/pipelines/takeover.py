"""Which models speak in a session, one after the other, and the change from one to the next.

Owns: `Takeover`: the models that a session has used, and the connection to the next one before the present one is let go.
Driven by `RealtimeSession.hand_off`, and by the command `SwitchAgent` when the machine finds that the moment has come. It
never decides that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from realtime.core.commands import SwitchAgent
from realtime.core.settings import Agent, ToolSpec
from realtime.errors import RealtimeError, SessionClosed
from realtime.pipelines.connection import Connection, LinkModel
from realtime.pipelines.driver import Driver
from realtime.pipelines.link import Link
from realtime.pipelines.link_fault import link_fault
from realtime.pipelines.video import PictureEncoder

__all__ = ["RuntimeModel", "Takeover"]


class RuntimeModel(LinkModel, Protocol):
    """What a session needs of a model (`realtime.models.base.RealtimeModel`)."""

    async def aclose(self) -> None:
        """Let go of what it holds."""
        ...


class Takeover:
    """The models of one session."""

    def __init__(
        self,
        model: RuntimeModel,
        *,
        driver: Driver,
        link: Link,
        encoder: PictureEncoder,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """Begin with the session's own model.

        Args:
            model: It.
            driver: The way to the machine.
            link: Keeps the connection.
            encoder: Makes pictures within the provider's size.
            spawn: Runs what belongs to the session.
        """
        self.models: list[RuntimeModel] = [model]
        """All that were used; they are let go when the session ends."""
        self._driver = driver
        self._link = link
        self._encoder = encoder
        self._spawn = spawn

    def _model_of(self, agent: Agent) -> RuntimeModel:
        """The model that speaks for an agent."""
        return self.models[0] if agent.model is None else agent.model

    def is_change(self, agent: Agent) -> bool:
        """Whether another model would speak for an agent than for the present one."""
        return self._model_of(agent) is not self._model_of(self._driver.machine.agent)

    @asynccontextmanager
    async def prepared(self, agent: Agent, tools: Sequence[ToolSpec]) -> AsyncGenerator[None]:
        """Within it, the connection that an agent will speak over is open, if it is not the present one.

        If the hand-off fails within it, or is cancelled, that connection is let go.

        Raises:
            ModelError, UserError: Its model refused; everything is as before.
            LinkLost: It could not be reached; everything is as before.
            RealtimeError: Its own code failed; everything is as before.
            SessionClosed: The session ended first.
        """
        opened: list[Connection] = []
        try:
            await self._open(agent, tools, opened)
            yield
        except BaseException:
            if opened and not self._driver.closed:  # when the session ends, all are let go
                self._spawn(self._link.abandon(opened[0]))
            raise

    async def _open(self, agent: Agent, tools: Sequence[ToolSpec], opened: list[Connection]) -> None:
        machine = self._driver.machine
        if not self.is_change(agent):
            return
        model = self._model_of(agent)
        if all(model is not known for known in self.models):
            self.models.append(model)
        failed: list[Exception] = []

        async def open_other() -> None:
            try:
                opened.append(await self._link.prepare(model, lambda: machine.configuration(agent, tools)))
            except Exception as error:
                failed.append(error)

        opening = self._spawn(open_other())
        try:
            await asyncio.wait({opening})
        finally:
            opening.cancel()
        if opening.cancelled() or self._driver.closed:
            raise SessionClosed("the session has ended")
        if failed:
            raise failed[0] if isinstance(failed[0], RealtimeError) else link_fault(failed[0])

    def execute(self, command: SwitchAgent) -> None:
        """The moment has come: talk with the agent's model from now on."""
        model = self._model_of(command.agent)
        self._encoder.max_image_bytes = model.capabilities.max_image_bytes
        self._link.switch(model)
