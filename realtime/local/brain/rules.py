"""The rule-based brain: small, offline, and honest about what it heard and saw.

Owns: `RulesResponder`. Driven by a running response. It answers what tools gave, calls tools that are asked for, looks at
pictures when it is asked about them, knows what was said before, and otherwise repeats what it heard.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import cast

from realtime.errors import ImageError
from realtime.local.brain.answers import ASK_FOR_ARGUMENT, about_results, answers, echo, exact_words
from realtime.local.brain.looking import answer_about_pictures, describe
from realtime.local.brain.spoken_tools import Missing, find_calls, force_call, spoken_name
from realtime.local.brain.talk import Talk
from realtime.local.parts import Eyes, ReplyRequest, Responder, TextDelta, Tool, ToolCall

__all__ = ["RulesResponder"]


class RulesResponder:
    """The embedded `Responder`."""

    def __init__(self, eyes: Eyes, *, time_of_day: Callable[[], datetime], otherwise: Responder | None = None) -> None:
        """Make a brain.

        Args:
            eyes: Looks at pictures.
            time_of_day: The local time, for whoever asks it.
            otherwise: Replies where no rule has an answer; None: what was heard is repeated. It is closed with this one.
        """
        self._eyes = eyes
        self._time_of_day = time_of_day
        self._otherwise = otherwise
        self.name = "rules" if otherwise is None else otherwise.name
        """The name of whoever does the talking."""

    async def respond(self, request: ReplyRequest) -> AsyncIterator[TextDelta | ToolCall]:
        """Reply in one or two sentences, or call tools."""
        talk = Talk(request.messages)
        if request.tool_choice == "required" and request.tools:
            yield force_call(talk.heard, request.tools)
            return
        reply = await self._reply(talk, request)
        if isinstance(reply, str):
            yield TextDelta(text=reply)
        elif reply is not None:
            for call in reply:
                yield call
        elif self._otherwise is None:
            yield TextDelta(text=echo(talk, talk.heard))
        else:
            pieces = self._otherwise.respond(replace(request, tools=(), tool_choice="none"))
            async with aclosing(cast("AsyncGenerator[TextDelta | ToolCall, None]", pieces)):
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        """Close whoever does the talking otherwise."""
        if self._otherwise is not None:
            await self._otherwise.aclose()

    async def _reply(self, talk: Talk, request: ReplyRequest) -> str | list[ToolCall] | None:
        """What a rule says; None if none has an answer."""
        if talk.results:
            return about_results(talk.results)
        if not talk.heard:
            return await self._reply_to_silence(talk, request)
        calls = self._calls(talk, request.tools)
        if isinstance(calls, Missing):
            return ASK_FOR_ARGUMENT.format(tool=spoken_name(calls.tool.name), argument=calls.argument)
        if calls:
            return calls
        seen = await answer_about_pictures(talk, self._eyes, request.owner)
        if seen is not None:
            return seen
        facts_only = self._otherwise is not None
        for heard in (talk.said[-1], talk.heard):  # the last sentence alone, then all that was said in a row
            plain = heard.strip().rstrip(".!").strip()
            for answer in answers(self._time_of_day(), request.instructions, facts_only=facts_only):
                text = answer(talk, plain)
                if text is not None:
                    return text
        return None

    def _calls(self, talk: Talk, tools: Sequence[Tool]) -> list[ToolCall] | Missing:
        """The calls that were asked for, or the answer to the question for an argument."""
        for tool in tools:
            for argument in tool.parameters.get("properties") or ():
                question = ASK_FOR_ARGUMENT.format(tool=spoken_name(tool.name), argument=spoken_name(str(argument)))
                if talk.replied[-1:] == [question] and len(talk.said) > 1:
                    answered = f"{talk.said[-2].rstrip('.?!')} {spoken_name(str(argument))} is {talk.heard}"
                    return find_calls(answered, [tool])
        return find_calls(talk.heard, tools)

    async def _reply_to_silence(self, talk: Talk, request: ReplyRequest) -> str:
        """Nobody said anything: talk about what was shown, or begin."""
        words = exact_words(request.instructions)
        if words:
            return words
        if talk.shown:
            try:
                return describe(await self._eyes.look(talk.shown[-1], owner=request.owner))
            except ImageError:
                return "I cannot make out that picture."
        if talk.silent and (talk.said or talk.replied):
            return "I did not catch that. Are you still there?"
        return "Is there anything else?" if talk.replied else "Hello! I am listening."
