"""One parser of data URLs (V7, B23)."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.data_url import decode_base64, is_data_url, make_data_url, normalize_mime_type, parse_data_url
from realtime.errors import ImageError

DATA = bytes(range(256))
PLAIN = base64.b64encode(DATA).decode()
URL_SAFE = base64.urlsafe_b64encode(DATA).decode()
PERCENT = "".join(f"%{byte:02X}" for byte in DATA)


@pytest.mark.parametrize(
    ("url", "mime_type"),
    [
        (f"data:image/jpeg;base64,{PLAIN}", "image/jpeg"),
        (f"DATA:image/JPEG;BASE64,{PLAIN}", "image/jpeg"),
        (f"data:image/jpeg;charset=utf-8;base64,{PLAIN}", "image/jpeg"),
        (f"data:image/jpeg;name=a.jpg;base64;x=y,{PLAIN}", "image/jpeg"),
        (f"data:;base64,{PLAIN}", ""),
        (f"data:image/jpg;base64,{PLAIN}", "image/jpeg"),
        (f"data:image/jpeg,{PERCENT}", "image/jpeg"),
        (f"data:image/jpeg;base64,{PLAIN[:40]}\r\n{PLAIN[40:90]}\n {PLAIN[90:]}\n", "image/jpeg"),
        (f"data:image/jpeg;base64,{URL_SAFE}", "image/jpeg"),
        (f"data:image/jpeg;base64,{PLAIN.rstrip('=')}", "image/jpeg"),
        (f"data:image/jpeg;base64,{PLAIN.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}", "image/jpeg"),
        (f"  data: image/png ; base64 ,{PLAIN}  ", "image/png"),
    ],
    ids=[
        "plain", "upper case", "charset", "parameters", "no type", "jpg", "percent", "line breaks", "url-safe", "no padding",
        "percent in base64", "spaces",
    ],
)  # fmt: skip
def test_every_form_gives_its_bytes(url, mime_type):
    assert parse_data_url(url) == (mime_type, DATA)


@pytest.mark.parametrize(
    "url",
    [
        "data:image/jpeg;base64",
        "data:image/jpeg;base64,",
        "data:image/jpeg,",
        "data:image/jpeg;base64,SECRETSECRET!",
        "data:image/jpeg;base64,SECRETSECRETX",
        "data:image/jpeg;base64,SECRETSECRETX===",
        "data:image/jpeg;base64,SECRETSECRET=SECR",
        "data:image/jpeg;base64,SECRETSECRETé",
        "https://host/SECRETSECRET.jpg",
        "image/jpeg;base64,SECRETSECRET",
        "",
    ],
)
def test_what_is_no_data_url_is_refused_without_echoing_it(url):
    with pytest.raises(ImageError) as caught:
        parse_data_url(url)
    assert "SECRETSECRET" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@given(st.binary(min_size=1))
def test_what_was_written_is_read_again(data):
    assert parse_data_url(make_data_url(data, "image/png")) == ("image/png", data)


@given(st.text() | st.text(st.sampled_from("%4a\ud800é,;=\n")))
def test_text_is_parsed_or_refused_and_nothing_else(text):
    for one in (text, f"data:{text}", f"data:image/png;base64,{text}"):
        try:
            _, data = parse_data_url(one)
        except ImageError:
            continue
        assert data


def test_schemes_and_types_are_told_in_any_case():
    assert is_data_url(" DaTa:,x")
    assert not is_data_url("database")
    assert normalize_mime_type(" Image/JPG; q=1") == "image/jpeg"


def test_base64_alone_is_read_as_in_a_url():
    assert decode_base64(f"\n{URL_SAFE}\n") == DATA
    with pytest.raises(ImageError, match="base64_str"):
        decode_base64("")
