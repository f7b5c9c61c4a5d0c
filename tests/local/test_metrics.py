"""What the server counts."""

from __future__ import annotations

import logging

import pytest

from realtime.local.metrics import Metrics, Turn


def test_counters_and_histograms_are_prometheus_text() -> None:
    metrics = Metrics()
    metrics.count("responses", status="completed")
    metrics.count("responses", status="completed")
    metrics.count("sessions")
    metrics.observe("audio", 0.31)
    text = metrics.text({"sessions_open": 1})
    assert "realtime_llm_sessions_open 1\n" in text
    assert 'realtime_llm_responses_total{status="completed"} 2\n' in text
    assert "realtime_llm_sessions_total 1\n" in text
    assert 'realtime_llm_audio_seconds_bucket{le="0.3"} 0\n' in text
    assert 'realtime_llm_audio_seconds_bucket{le="0.4"} 1\n' in text
    assert 'realtime_llm_audio_seconds_bucket{le="+Inf"} 1\n' in text
    assert "realtime_llm_audio_seconds_count 1\n" in text
    assert all(line.startswith("#") or len(line.split()) == 2 for line in text.splitlines())


def test_a_turn_measures_from_the_end_of_speech_and_logs_no_words(caplog: pytest.LogCaptureFixture) -> None:
    now = [10.4]
    metrics = Metrics()
    turn = Turn(metrics, "sess_1", 10.0, lambda: now[0])
    turn.reached("transcript")
    now[0] = 10.5
    turn.reached("audio")
    turn.reached("audio")
    with caplog.at_level(logging.INFO, "realtime.local.metrics"):
        turn.finish("completed")
    assert turn.seconds == pytest.approx({"transcript": 0.4, "audio": 0.5})
    assert caplog.messages == ["turn of sess_1 completed: transcript=400ms audio=500ms"]
    assert metrics.get("turns", status="completed") == 1
