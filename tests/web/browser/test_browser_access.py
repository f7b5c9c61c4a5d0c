"""Who may call, who can use the page, and what it says when something is refused."""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.local, pytest.mark.timeout(400)]

WIDTHS = (360, 820, 1366)


# -- refused ------------------------------------------------------------------------------------------------------------


def test_a_wrong_token_is_refused_in_words_and_the_right_one_is_taken(visit):
    visitor = visit("guarded/")
    page = visitor.page
    page.click("#use-microphone")
    page.fill("#token", "guessed")
    page.click("#start")
    expect(page.locator("#notices")).to_contain_text("The access token is not right.")
    page.click("#use-microphone")
    page.fill("#token", "open sesame")
    page.click("#start")
    visitor.connected()


def test_a_token_in_the_address_is_used_and_not_left_there(visit):
    visitor = visit("guarded/#token=open%20sesame")
    assert "token" not in visitor.page.url
    visitor.begin()


@pytest.fixture
def foreign_page(tmp_path: Path) -> Iterator[str]:
    """Somebody else's page, on an address of its own."""
    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}/"
        http.shutdown()
        thread.join()


def test_a_page_from_elsewhere_cannot_call(browser, server, foreign_page):
    page = browser.new_page()
    page.goto(foreign_page)
    told = page.evaluate(
        """(address) => new Promise((resolve) => {
          const socket = new WebSocket(address.replace("http", "ws") + "call");
          const heard = [];
          socket.onopen = () => socket.send(JSON.stringify({ type: "hello" }));
          socket.onmessage = ({ data }) => heard.push(JSON.parse(data));
          socket.onclose = () => resolve(heard);
        })""",
        server.url,
    )
    page.close()
    assert not any(one["type"] == "welcome" for one in told)
    assert all(one["code"] == "bad_origin" for one in told)


def test_the_page_loads_nothing_from_elsewhere(visit, server):
    visitor = visit(arrive=False)
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.arrive()
    visitor.begin(camera=True)
    expect(visitor.page.locator(".message img").first).to_be_visible()
    assert asked
    assert all(url.startswith((server.url, "blob:", "data:")) for url in asked), asked


# -- devices ------------------------------------------------------------------------------------------------------------


def refuse(name: str) -> str:
    """A browser whose microphone is refused in this way."""
    return f"navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', '{name}'));"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NotAllowedError", "Allow it beside the address"),
        ("NotFoundError", "No microphone was found"),
        ("NotReadableError", "Another program may be using it"),
    ],
)
def test_a_microphone_that_cannot_be_had_is_explained_and_one_can_write(visit, name, words):
    visitor = visit(arrive=False)
    visitor.page.add_init_script(refuse(name))
    visitor.arrive()
    visitor.page.click("#start")
    visitor.connected()
    expect(visitor.page.locator("#notices")).to_contain_text(words)
    visitor.say("Hello!")
    expect(visitor.line("assistant")).not_to_be_empty()


def test_a_lost_device_is_told_and_replaced(visitor):
    """The browser cannot unplug its fake devices; a track that ends is what a page sees of it."""
    visitor.begin(camera=True)
    lose = """(label) => {
      const track = document.querySelector("#preview-camera").srcObject.getTracks()[0];
      track.stop();
      track.dispatchEvent(new Event("ended"));
    }"""
    visitor.page.evaluate(lose)
    expect(visitor.page.locator("#notices")).to_contain_text("The camera was disconnected. It goes on with")
    expect(visitor.page.locator("#tile-camera")).to_be_visible()


# -- everybody ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, out of the package that carries it."""
    found = importlib.util.find_spec("axe_playwright_python")
    [folder] = found.submodule_search_locations
    return (Path(folder) / "axe.min.js").read_text()


def complaints(page, axe: str) -> list[str]:
    """What axe finds wrong, each with where."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe)
    page.wait_for_timeout(0)
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:4]]}"
        for one in found["violations"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_lobby_in_a_call_and_in_the_inspector(visit, axe, scheme):
    visitor = visit(color_scheme=scheme, reduced_motion="reduce")
    page = visitor.page
    assert complaints(page, axe) == []
    visitor.begin(camera=True)
    visitor.say("What does the sign say?")
    expect(visitor.line("assistant")).to_be_visible()
    expect(page.locator(".message img").first).to_be_visible()
    assert complaints(page, axe) == []
    page.click("#settings")
    assert complaints(page, axe) == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 360, "height": 720})
    assert complaints(page, axe) == []
    page.click("#inspector-close")
    assert complaints(page, axe) == []


def test_a_call_can_be_held_by_keyboard_alone(visit):
    """Begin, write, stop, end; focus is where one is, and the order is the order of the page."""
    visitor = visit()
    page = visitor.page

    def tab_to(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.id") == name:
                return
        pytest.fail(f"{name} is not reached with the Tab key")

    tab_to("use-microphone")
    page.keyboard.press("Space")
    tab_to("start")
    page.keyboard.press("Enter")
    visitor.connected()
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("My name is Robin.")
    page.keyboard.press("Enter")
    expect(visitor.line("user", "Robin")).to_be_visible()
    expect(page.locator("#spoken")).to_contain_text("You: My name is Robin.")  # read out
    tab_to("settings")
    page.keyboard.press("Enter")
    expect(page.locator("#use-microphone")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).to_be_focused()
    tab_to("end")
    page.keyboard.press("Enter")
    expect(page.locator("#start")).to_be_focused()


def test_nothing_is_wider_than_the_window_and_every_control_can_be_hit(visit):
    """From a small phone to a desktop, with long words in the captions and both pictures shown."""
    visitor = visit(viewport={"width": 360, "height": 640})
    page = visitor.page
    visitor.begin(camera=True)
    page.click("#screen")
    visitor.say("Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " * 3)
    expect(visitor.line("user", "Donau")).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 640})
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        controls = page.eval_on_selector_all(
            "button:not(.inspector *), textarea",
            """(all) => all.filter((one) => one.offsetParent !== null).map((one) => {
              const { left, right, top, bottom } = one.getBoundingClientRect();
              return { id: one.id, left, right, top, bottom };
            })""",
        )
        assert controls
        for one in controls:
            assert one["left"] >= 0, (width, one)
            assert one["right"] <= width, (width, one)
            assert one["bottom"] <= 640, (width, one)
            assert one["bottom"] - one["top"] >= 24, (width, one)


def test_the_theme_follows_the_system_until_one_is_chosen(visit):
    visitor = visit(color_scheme="dark")
    page = visitor.page
    ground = """() => [getComputedStyle(document.body).backgroundColor,
      ...["--line", "--you", "--reply"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name))]"""
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert not set(light) & set(dark)
    assert all(color.startswith("rgb(") for color in light + dark)  # the meter draws with them
    page.click("#theme")
    expect(page.locator("#theme")).to_have_attribute("aria-label", "Theme: dark")
    assert page.evaluate(ground) == dark
    page.reload()
    assert page.evaluate(ground) == dark
