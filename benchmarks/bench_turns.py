"""How good semantic turn detection is: sentences at their end, and broken off between two words.

Each is followed by silence and goes the way that a client's audio goes: voice activity detection, the pause, then the
words by Whisper and the sound by Smart Turn. Shown is what the pause was taken for by words alone, by sound alone, and by
both: finished (the turn ends after the silence that is set), in doubt (after a quarter of the cap), unfinished (at the
cap). Twenty sentences are spoken by the embedded voice; four by humans, where the recordings are beside the checkout.

Needs the weights: pip install --no-deps pipecat-ai==1.14.0
Run:  python benchmarks/bench_turns.py [--check]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from realtime.local.completeness import sounds_complete
from realtime.local.endpointing import EndpointingSettings, SpeechPause, SpeechStart
from realtime.local.input_audio import InputAudio
from realtime.local.listening import FINISHED
from realtime.local.recognizer import WhisperRecognizer
from realtime.local.smart_turn import SmartTurn
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.vad import SileroDetector
from realtime.local.weights import whisper_tiny
from realtime.local.workers import FairPool
from realtime.media.resample import Resampler
from realtime.pcm import read_wav

SPEECH = Path(__file__).parents[1].parent / "shared" / "media" / "speech"
SENTENCES = """
What time is it?
My name is Robin.
What is twelve times seven?
I would like to know what the weather is like in London.
The train to Manchester leaves from platform nine at half past ten.
Can you tell me where the nearest pharmacy is?
Please turn off the light in the kitchen.
I have been working on this problem for two hours.
Could you book a table for four people on Friday evening?
My favorite color is dark green.
He was not an ill disposed young man.
When I came home yesterday the door was open and the cat was gone.
How far is it from here to the station?
Send a message to Anna and tell her that I will be late.
No, that is not what I meant.
I think that we should wait until the rain stops.
Read the sign behind the counter to me.
The eight of spades, the four of clubs, and the seven of hearts.
Is there anything in the fridge that I could cook for dinner?
Remind me to call my mother tomorrow at nine in the morning.
""".strip().splitlines()
CUTS = 3
RATE = 16_000
END_FINISHED, CUT_UNFINISHED = 0.9, 0.5
"""What `--check` asks of both together: ends taken for ends at once, and cuts that are not."""


@dataclass(frozen=True)
class Case:
    """Something said, and whether that was all."""

    speaker: str
    is_end: bool
    samples: np.ndarray


def cases() -> Iterator[Case]:
    """All of them, always the same."""
    voice, draw = HibariSynthesizer(FairPool(1)), random.Random(7)
    for text in SENTENCES:
        speech = voice.speak(text)
        resampler = Resampler(voice.rate_hz, RATE)
        samples = np.frombuffer(speech.pcm, "<i2").astype(np.float32) / 32768
        samples = np.concatenate([resampler.push(samples), resampler.flush()])
        yield Case("voice", True, samples)
        ends = [end for _word, end in speech.words[1:-1]]
        for end in sorted(draw.sample(ends, min(CUTS, len(ends)))):
            yield Case("voice", False, samples[: end * RATE // 1000])
    for path in sorted(SPEECH.glob("*.wav")):
        pcm, rate, _channels = read_wav(path.read_bytes())
        resampler = Resampler(rate, RATE)
        samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
        samples = np.concatenate([resampler.push(samples), resampler.flush()])
        yield Case("human", True, samples)
        loudness = np.convolve(np.square(samples), np.full(800, 1 / 800), "same")
        for share in (0.2, 0.4, 0.6, 0.8):  # the quietest place near each: most likely between two words
            first, last = (int(len(samples) * (share + near)) for near in (-0.06, 0.06))
            yield Case("human", False, samples[: first + int(loudness[first:last].argmin())])


def up_to_the_pause(case: Case, detector: SileroDetector) -> np.ndarray | None:
    """What the listener has of a turn when its last pause is noticed; None if nothing was taken for speech."""
    audio = InputAudio(detector)
    audio.set_endpointing(EndpointingSettings(semantic="low"))
    line = np.concatenate([np.zeros(RATE // 2, np.float32), case.samples, np.zeros(RATE, np.float32)])
    resampler = Resampler(RATE, 24_000)
    pcm = np.concatenate([resampler.push(line), resampler.flush()])
    audio.append((pcm.clip(-1, 1) * 32767).astype("<i2").tobytes())
    start, found = 0, None
    while audio.waiting:
        for heard in audio.hear(4):
            if isinstance(heard, SpeechStart):
                start = heard.at_ms
            elif isinstance(heard, SpeechPause):
                found = audio.cut(start, heard.at_ms + heard.silence_ms).samples
    return found


def main() -> int:
    """Measure; gives the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if both together are worse than they should be")
    parser.add_argument("--most", type=int, help="so many cases only; with all of them it takes minutes")
    options = parser.parse_args()
    pool, detector = FairPool(1), SileroDetector()
    recognizer, judge = WhisperRecognizer(pool, whisper_tiny()), SmartTurn(pool)
    taken: list[tuple[Case, bool, bool]] = []
    times: list[float] = []
    for case in islice(cases(), options.most):
        samples = up_to_the_pause(case, detector)
        if samples is None:
            continue
        began = time.perf_counter()
        by_sound = judge.judge(samples) >= FINISHED
        times.append(1000 * (time.perf_counter() - began))
        taken.append((case, sounds_complete(recognizer.transcribe(samples).text), by_sound))
    print(f"{'':7} {'':18} {'words':>12} {'sound':>12} {'both':>24}")
    print(f"{'speaker':7} {'':18} {'finished':>12} {'finished':>12} {'finished/doubt/unfinished':>24}")
    shares: dict[tuple[str, bool], float] = {}
    for speaker in ("voice", "human"):
        for is_end in (True, False):
            some = [(words, sound) for case, words, sound in taken if (case.speaker, case.is_end) == (speaker, is_end)]
            if not some:
                continue
            both = sum(words and sound for words, sound in some)
            neither = sum(not words and not sound for words, sound in some)
            shares[speaker, is_end] = both / len(some)
            print(
                f"{speaker:7} {'at the end' if is_end else 'broken off':12} {len(some):5}"
                f" {sum(words for words, _ in some):12} {sum(sound for _, sound in some):12}"
                f" {both:10} / {len(some) - both - neither} / {neither}"
            )
    print(f"Smart Turn: {statistics.median(times):.0f} ms for a pause, on one thread")
    fine = shares["voice", True] >= END_FINISHED and shares["voice", False] <= 1 - CUT_UNFINISHED
    return 0 if fine or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
