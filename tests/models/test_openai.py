"""OpenAI's models: keys, address, what each can do."""

import json

import pytest

from realtime.core.commands import ConfigureSession
from realtime.errors import ArgumentError, UserError
from realtime.models import OpenAIRealtime
from realtime.models.openai import openai_capabilities


async def test_the_key_comes_from_the_argument_or_the_environment_and_goes_as_a_bearer_token(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj_1")
    assert await OpenAIRealtime().headers() == {"Authorization": "Bearer sk-env", "OpenAI-Project": "proj_1"}
    given = await OpenAIRealtime(api_key="sk-arg", organization="org_1", project="proj_2").headers()
    assert given == {
        "Authorization": "Bearer sk-arg",
        "OpenAI-Organization": "org_1",
        "OpenAI-Project": "proj_2",
    }


def test_without_a_key_it_says_which_variable():
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        OpenAIRealtime("gpt-realtime")


def test_the_model_is_in_the_address():
    assert (
        OpenAIRealtime("gpt-realtime-mini", api_key="k").url
        == "wss://api.openai.com/v1/realtime?model=gpt-realtime-mini"
    )


def test_another_server_may_go_without_a_key_and_keeps_what_its_url_says():
    model = OpenAIRealtime("gpt-realtime", url="ws://127.0.0.1:9/v1/realtime?model=other&x=1")
    assert model.url == "ws://127.0.0.1:9/v1/realtime?model=other&x=1"
    assert model.name == "openai:gpt-realtime"


def test_a_key_never_shows():
    model = OpenAIRealtime(api_key="sk-very-secret")
    assert "secret" not in f"{model!r} {model} {model.name} {model.url}"


@pytest.mark.parametrize(
    ("model", "window", "pictures"),
    [
        ("gpt-realtime", 32_000, True),
        ("gpt-realtime-2025-08-28", 32_000, True),
        ("gpt-realtime-2.1-mini", 128_000, True),
        ("gpt-4o-realtime-preview-2025-06-03", 32_000, False),
        ("gpt-realtime-of-tomorrow", None, True),
    ],
)
def test_what_a_model_can_do_is_data(model, window, pictures):
    capabilities = openai_capabilities(model)
    assert capabilities.model == model
    assert capabilities.context_window == window
    assert capabilities.supports_image_input is pictures
    assert capabilities.supports_seeding_images is pictures
    assert capabilities.max_session_seconds == 3600


def test_settings_reach_the_wire():
    model = OpenAIRealtime(
        api_key="k", voice="marin", speed=1.1, transcription="whisper-1", noise_reduction="near_field"
    )
    (text,) = model.make_wire(wall=0.0).encode(ConfigureSession(command_id="k1"))
    audio = json.loads(text)["session"]["audio"]
    assert audio["output"]["voice"] == "marin"
    assert audio["output"]["speed"] == 1.1
    assert audio["input"]["transcription"] == {"model": "whisper-1"}
    assert audio["input"]["noise_reduction"] == {"type": "near_field"}
    assert (model.voice, model.transcription, model.turn_detection) == ("marin", "whisper-1", None)


def test_each_connection_has_a_wire_format_of_its_own():
    model = OpenAIRealtime(api_key="k")
    assert model.make_wire() is not model.make_wire()


@pytest.mark.parametrize("model", ["", None, 7])
def test_a_model_needs_a_name(model):
    with pytest.raises(ArgumentError, match="model"):
        OpenAIRealtime(model, api_key="k")


def test_a_setting_that_cannot_be_is_refused_by_name():
    with pytest.raises(ArgumentError, match="speed"):
        OpenAIRealtime(api_key="k", speed=9.0)
    with pytest.raises(UserError, match=r"no setting 'tempo'; it has .*speed"):
        OpenAIRealtime(api_key="k", tempo=1.0)


@pytest.mark.parametrize("setting", [{"reasoning_effort": "low"}, {"parallel_tool_calls": False}])
def test_a_model_that_does_not_reason_is_not_told_how(setting):
    with pytest.raises(
        UserError, match=rf"gpt-realtime does not reason \(supports_reasoning\): leave {next(iter(setting))}"
    ):
        OpenAIRealtime(api_key="k", **setting)
    assert OpenAIRealtime("gpt-realtime-2.1", api_key="k", **setting).capabilities.supports_reasoning


def test_the_other_protocol_is_refused_by_its_models_names():
    with pytest.raises(ArgumentError, match="GPT-Live speaks another protocol"):
        OpenAIRealtime("gpt-live-1", api_key="k")
