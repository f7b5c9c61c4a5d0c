"""The rule-based brain: what it makes of what was said, shown and called."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.errors import ImageError
from realtime.local.brain.rules import RulesResponder
from realtime.local.parts import ReplyRequest, Sight, TextDelta, Tool, ToolCall

from .kit import FlatEyes, picture

NOW = datetime(2026, 11, 30, 15, 5, tzinfo=UTC)
WEATHER = Tool(
    name="get_weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def user(text: str = "", *images: Any) -> ChatMessage:
    return ChatMessage(role=ChatRole.USER, content=text, images=images)


def bot(text: str) -> ChatMessage:
    return ChatMessage(role=ChatRole.ASSISTANT, content=text)


def result(output: str, name: str = "get_weather", **fields: Any) -> list[ChatMessage]:
    call = FunctionCall(name=name, arguments="{}", call_id="c")
    return [
        ChatMessage(role=ChatRole.ASSISTANT, tool_calls=(call,)),
        ChatMessage(role=ChatRole.TOOL, content=output, tool_call_id="c", tool_name=name, **fields),
    ]


async def reply(*messages: ChatMessage, eyes: Any = None, **fields: Any) -> str | list[ToolCall]:
    brain = RulesResponder(eyes or FlatEyes(), time_of_day=lambda: NOW)
    request = ReplyRequest(messages=messages, owner="s", **fields)
    pieces = [piece async for piece in brain.respond(request)]
    calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
    return calls or "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


@pytest.mark.parametrize(
    ("said", "replied"),
    [
        ("He was not an ill-disposed young man.", "You said: He was not an ill-disposed young man."),
        ("Why is the sky blue?", "You asked: Why is the sky blue? I cannot answer that, but I heard you."),
        ("Hello!", "Hello! I hear you."),
        ("Thank you.", "You are welcome."),
        ("Goodbye.", "Goodbye!"),
        ("Stop.", "Okay."),
        ("How are you?", "I am fine, thank you. I hear you well."),
        ("What time is it?", "It is 3:05 PM."),
        ("What is the date today?", "Today is Monday, November 30, 2026."),
        ("What is 12 times 7?", "That makes 84."),
        ("My name is Robin.", "Nice to meet you, Robin."),
        ("What is my name?", "You have not told me your name."),
        ("What did I say?", "You have not said anything before that."),
        ("Say good morning everyone.", "Good morning everyone."),
        ("What do you see?", "I have not seen a picture yet."),
        ("How many pictures have I shown you?", "I have seen 0 pictures."),
    ],
)
async def test_single_sentences(said: str, replied: str) -> None:
    assert await reply(user(said)) == replied


async def test_it_knows_what_was_said_before() -> None:
    talk = [user("The blue car is mine."), bot("You said: The blue car is mine."), user("What did I say?")]
    assert await reply(*talk) == "You said: The blue car is mine."
    talk[-1] = user("What did you say?")
    assert await reply(*talk) == "I said: You said: The blue car is mine."
    talk[-1] = user("How many things have I said?")
    assert await reply(*talk) == "You have said 2 things, this one included."


async def test_it_remembers_facts() -> None:
    talk = [user("My name is Robin."), bot("Nice to meet you, Robin."), user("My favorite color is dark green.")]
    assert await reply(*talk) == "I will remember that your favorite color is dark green."
    talk += [bot("I will remember."), user("What's my name?")]
    assert await reply(*talk) == "Your name is Robin."
    talk[-1] = user("What is my favorite color again?")
    assert await reply(*talk) == "Your favorite color is dark green."


async def test_several_pieces_said_in_a_row_are_one_question() -> None:
    assert await reply(user("Tell me"), user("what time is it?")) == "It is 3:05 PM."
    assert await reply(user("The sky"), user("is grey.")) == "You said: The sky is grey."


async def test_a_question_that_was_never_answered_does_not_hide_the_next() -> None:
    assert await reply(user("What is a whale?"), user("What is two plus two?")) == "That makes 4."


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "replied"),
    [
        ("What does it say?", "It says: OPEN, 24 HOURS."),
        ("Read the sign.", "It says: OPEN, 24 HOURS."),
        ("What is written there?", "It says: OPEN, 24 HOURS."),
        ("What do you see?", "I see a medium bright, mostly red picture, 64 by 32 pixels. It says: OPEN, 24 HOURS."),
        ("What color is it?", "It is mostly red."),
        ("How bright is it?", "The picture is medium bright."),
        ("How big is the picture?", "The picture is 64 by 32 pixels."),
        ("How many pictures do you see?", "I have seen 2 pictures."),
    ],
)
async def test_pictures_are_looked_at_when_they_are_asked_about(said: str, replied: str) -> None:
    eyes = FlatEyes("OPEN", "24 HOURS.")
    assert await reply(user("", picture()), user("", picture()), user(said), eyes=eyes) == replied


async def test_pictures_are_not_looked_at_otherwise() -> None:
    eyes = FlatEyes("OPEN")
    await reply(user("", picture()), user("What time is it?"), eyes=eyes)
    assert eyes.looks == 0


async def test_a_picture_without_words_has_none() -> None:
    assert await reply(user("Read it.", picture())) == "I see no words in it."


async def test_a_picture_that_cannot_be_decoded_is_said_so() -> None:
    class Blind(FlatEyes):
        async def look(self, *_args: object, **_options: object) -> Sight:
            raise ImageError("picture", "x", "an image")

    assert await reply(user("Read it.", picture()), eyes=Blind()) == "I cannot make out that picture."
    assert await reply(user("", picture()), eyes=Blind()) == "I cannot make out that picture."


async def test_shown_without_a_word_a_picture_is_described() -> None:
    replied = await reply(user("Hello."), bot("Hello! I hear you."), user("", picture()), eyes=FlatEyes("EXIT"))
    assert replied == "I see a medium bright, mostly red picture, 64 by 32 pixels. It says: EXIT."


# -- tools -------------------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_when_it_is_spoken() -> None:
    (call,) = await reply(user("What is the weather in London?"), tools=[WEATHER])
    assert isinstance(call, ToolCall)
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "London"})


@pytest.mark.parametrize(
    ("output", "replied"),
    [
        ("It is foggy and 12 degrees in London.", "It is foggy and 12 degrees in London."),
        ("it rains", "The get weather says: it rains."),
        (
            '{"city": "London", "temp_c": 12.50, "rain": true}',
            "The city is London, the temp c is 12.5 and the rain is yes.",
        ),
        ('["red", "blue"]', "The get weather says: red, blue."),
        ("42", "The get weather says: 42."),
        ("", "The get weather is done."),
        ("null", "The get weather says: nothing."),
    ],
)
async def test_a_result_is_spoken(output: str, replied: str) -> None:
    assert await reply(user("What is the weather in London?"), *result(output), tools=[WEATHER]) == replied


async def test_an_error_of_a_tool_is_said_so() -> None:
    replied = await reply(user("weather in London"), *result("no such city", is_error=True), tools=[WEATHER])
    assert replied == "The get weather failed: no such city."


async def test_a_result_is_spoken_of_once() -> None:
    talk = [user("weather in London"), *result("It rains in London."), bot("It rains in London."), user("Thanks.")]
    assert await reply(*talk, tools=[WEATHER]) == "You are welcome."


async def test_an_argument_that_was_not_said_is_asked_for_and_taken() -> None:
    question = await reply(user("What is the weather?"), tools=[WEATHER])
    assert question == "For get weather, what is the city?"
    (call,) = await reply(user("What is the weather?"), bot(question), user("London."), tools=[WEATHER])
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"city": "London"}


async def test_a_tool_that_must_be_called_is() -> None:
    (call,) = await reply(user("Hello."), tools=[WEATHER], tool_choice="required")
    assert isinstance(call, ToolCall)
    assert call.name == "get_weather"


# -- silence and instructions --------------------------------------------------------------------------------------------


async def test_it_begins_when_nobody_said_anything() -> None:
    assert await reply() == "Hello! I am listening."
    assert await reply(user("Hi."), bot("Hello! I hear you.")) == "Is there anything else?"
    assert await reply(user("Hi."), bot("Hello!"), user("")) == "I did not catch that. Are you still there?"


async def test_instructions_can_give_it_words_and_a_name() -> None:
    assert await reply(instructions='Say exactly: "Welcome to the museum."') == "Welcome to the museum."
    named = await reply(user("Who are you?"), instructions="Your name is Ada. Be brief.")
    assert named.startswith("I am Ada.")


async def test_quotes_of_long_talk_are_cut() -> None:
    replied = await reply(user("word " * 500))
    assert len(replied) < 340
