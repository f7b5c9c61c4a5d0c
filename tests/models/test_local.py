"""The local server as a child process: started, shared, started again, ended (architecture section 3; L4, L7)."""

import asyncio
import os
import signal

import pytest

from realtime.core.commands import ConfigureSession
from realtime.core.model_events import SessionReady, SessionUpdated
from realtime.errors import ArgumentError, LinkLost, MissingExtraError, ModelError
from realtime.models import LocalRealtime
from realtime.transports.websocket import PromptTransport


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:  # gone, and taken note of: a zombie would still be there
        return False
    return True


async def ask(transport):
    await transport.send("who")
    pid, _, note = (await transport.receive()).partition(" ")
    return int(pid), note


@pytest.fixture
async def model(local_module):
    made = LocalRealtime(module=local_module, start_timeout_seconds=30, note="a b")
    yield made
    for transport in list(made._transports):
        await transport.aclose()
    await made.aclose()


async def test_it_starts_a_server_and_connects_by_its_url(model):
    transport = await model.open()
    assert model.url.startswith("ws://127.0.0.1:")
    pid, note = await ask(transport)
    assert pid != os.getpid()
    assert note == "a b"
    await transport.aclose()
    await model.aclose()
    assert not lives(pid)


async def test_nothing_is_started_before_it_is_opened(model):
    assert model._process is None
    await model.aclose()


async def test_sessions_share_one_server_and_the_last_one_ends_it(model):
    first, second = await asyncio.gather(model.open(), model.open())
    pid, _ = await ask(first)
    assert (await ask(second))[0] == pid
    await first.aclose()
    await model.aclose()
    assert (await ask(second))[0] == pid
    await second.aclose()
    await model.aclose()
    await model.aclose()
    assert not lives(pid)


async def test_what_is_sent_at_once_arrives_and_a_connection_that_is_gone_is_let_go(model):
    transport = await model.open()
    assert isinstance(transport, PromptTransport)
    assert transport.is_clear
    transport.send_at_once("who")
    assert int((await transport.receive()).partition(" ")[0]) != os.getpid()
    await transport._transport.aclose()
    assert not transport.is_clear
    with pytest.raises(LinkLost):
        transport.send_at_once("who")
    assert not model._transports


async def test_a_server_that_died_is_started_again(model):
    transport = await model.open()
    pid, _ = await ask(transport)
    await transport.send("die")
    with pytest.raises(LinkLost):
        await transport.receive()
    await transport.aclose()
    again = await _reopen(model)
    assert (await ask(again))[0] != pid
    assert not lives(pid)


async def _reopen(model):
    """As the link does: the first attempt may come before the death is noticed."""
    for _ in range(100):
        try:
            return await model.open()
        except LinkLost:
            continue
    raise AssertionError


async def test_a_server_that_died_between_two_sessions_is_started_again(model):
    transport = await model.open()
    pid, _ = await ask(transport)
    await transport.aclose()
    os.kill(pid, signal.SIGKILL)
    assert (await ask(await _reopen(model)))[0] != pid


async def test_it_opens_again_after_it_was_closed(model):
    first = await model.open()
    await first.aclose()
    await model.aclose()
    assert await ask(await model.open())


def test_one_object_serves_one_loop_after_another(local_module):
    model = LocalRealtime(module=local_module)

    async def call():
        transport = await model.open()
        pid, _ = await ask(transport)
        await transport.aclose()
        await model.aclose()
        return pid

    assert asyncio.run(call()) != asyncio.run(call())


async def test_a_server_that_dies_at_the_start_is_an_error_with_its_last_words(local_module):
    model = LocalRealtime(module=local_module, behaviour="die")
    with pytest.raises(ModelError, match=r"code 2.*no model in this directory") as caught:
        await model.open()
    assert caught.value.fatal
    await model.aclose()


async def test_an_option_that_the_server_does_not_know_is_told(local_module):
    model = LocalRealtime(module=local_module, brane="rules")
    with pytest.raises(ModelError, match="unrecognized arguments: --brane rules"):
        await model.open()


async def test_a_module_that_is_not_there_is_told(local_module):
    with pytest.raises(ModelError, match="No module named no_such_module"):
        await LocalRealtime(module="no_such_module").open()


async def test_a_missing_package_is_told_with_the_extra_that_brings_it(local_module):
    model = LocalRealtime(module=local_module, behaviour="extra")
    with pytest.raises(MissingExtraError) as caught:
        await model.open()
    assert caught.value.extra == "local"
    assert str(caught.value) == "the local LLM needs ctranslate2: pip install 'realtime-session[local]'"


async def test_a_server_that_never_listens_is_given_up_and_ended(local_module):
    model = LocalRealtime(module=local_module, behaviour="silent", start_timeout_seconds=0.5)
    with pytest.raises(ModelError, match=r"did not listen within 0\.5 s"):
        await model.open()
    assert model._process is None


async def test_a_cancelled_open_leaves_a_server_that_the_next_one_uses(local_module):
    # the link's patience may be shorter than the loading of models
    model = LocalRealtime(module=local_module)
    opening = asyncio.create_task(model.open())
    while model._process is None:  # noqa: ASYNC110  (until the child is there)
        await asyncio.sleep(0)
    process = model._process
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    transport = await model.open()
    assert model._process is process
    await transport.aclose()
    await model.aclose()


async def test_much_output_neither_blocks_the_server_nor_stays_in_memory(model):
    transport = await model.open()
    for _ in range(3):
        await transport.send("talk")
        assert await transport.receive() == "talked"
    assert len(model._process._said()) < 10_000


@pytest.mark.parametrize("behaviour", ["serve", "ignore"])
async def test_a_server_that_does_not_let_go_is_made_to(local_module, behaviour):
    model = LocalRealtime(module=local_module, behaviour=behaviour)
    transport = await model.open()
    pid, _ = await ask(transport)
    await transport.send("deaf")
    assert await transport.receive() == "deaf"
    await transport.aclose()
    async with asyncio.timeout(10):
        await model.aclose()
    assert not lives(pid)


async def test_the_server_ends_when_its_input_ends(model):
    # so it cannot outlive us
    transport = await model.open()
    pid, _ = await ask(transport)
    model._process._transport.get_pipe_transport(0).close()
    async with asyncio.timeout(10):
        with pytest.raises(LinkLost):
            await transport.receive()
        await model._process._wait()
    assert not lives(pid)


def test_settings_become_options():
    model = LocalRealtime(brain="rules", silence_ms=400, verbose=True, quiet=False, model_dir=None)
    assert model._arguments == [
        "-m",
        "realtime.local",
        "--port",
        "0",
        "--exit-with-stdin",
        "--brain",
        "rules",
        "--silence-ms",
        "400",
        "--verbose",
    ]


@pytest.mark.parametrize("name", ["port", "host", "exit_with_stdin"])
def test_what_is_the_models_to_say_is_refused(name):
    with pytest.raises(ArgumentError, match=name):
        LocalRealtime(**{name: 1})


def test_it_says_how_long_a_start_may_take():
    assert LocalRealtime(start_timeout_seconds=90).open_timeout_seconds == 90
    with pytest.raises(ArgumentError, match="start_timeout_seconds"):
        LocalRealtime(start_timeout_seconds=0)


@pytest.mark.local
async def test_the_embedded_llm_starts_shakes_hands_and_ends():
    model = LocalRealtime(silence_ms=300)
    transport, wire = await model.open(), model.make_wire()
    (ready,) = wire.decode(await transport.receive())
    assert isinstance(ready, SessionReady)
    for message in wire.encode(ConfigureSession(command_id="k1", instructions="Be brief.")):
        await transport.send(message)
    events = []
    while not any(isinstance(event, SessionUpdated) for event in events):
        events += wire.decode(await transport.receive())
    pid = model._process._transport.get_pid()
    await transport.aclose()
    await model.aclose()
    assert not lives(pid)
