"""Features, encoder and decoder, alignment and sound, each against another implementation or what is known of it."""

from __future__ import annotations

import json
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asr.sounds import HERE, clip
from asr.tiny_weights import CONFIG, TOKENS, mel, weights

import pygpukit as gp
from pygpukit.asr.alignment import warp
from pygpukit.asr.audio import samples_of
from pygpukit.asr.decoder import WhisperDecoder
from pygpukit.asr.encoder import WhisperEncoder
from pygpukit.asr.features import Features
from pygpukit.asr.weights import WhisperWeights
from pygpukit.core.errors import InvalidSpecError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> WhisperWeights:
    """The small random model, from a folder of Hugging Face's."""
    path = tmp_path_factory.mktemp("whisper")
    header, at, raw = {}, 0, b""
    for name, array in weights().items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at, raw = at + array.nbytes, raw + array.tobytes()
    head = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + raw)
    (path / "config.json").write_text(json.dumps(CONFIG))
    loaded = gp.models.open_checkpoint(path)
    try:
        from pygpukit.asr.weights import from_checkpoint

        return from_checkpoint(loaded, dtype="float32")
    finally:
        loaded.close()


def test_states_and_logits_are_those_of_transformers(tiny: WhisperWeights) -> None:
    golden = np.load(HERE / "transformers.npz")
    states = WhisperEncoder(tiny.config, tiny)(gp.from_numpy(mel()))
    assert states.shape == (1, 50, 32)
    np.testing.assert_allclose(states.to_numpy()[0], golden["states"], atol=1e-4)
    decoder = WhisperDecoder(tiny.config, tiny)
    logits = decoder(TOKENS, states)
    np.testing.assert_allclose(logits.to_numpy(), golden["logits"], atol=1e-4 * float(np.std(golden["logits"])))


def test_a_step_gives_the_bits_of_the_prompt_and_of_every_batch(tiny: WhisperWeights) -> None:
    encoder, decoder = WhisperEncoder(tiny.config, tiny), WhisperDecoder(tiny.config, tiny)
    other = np.random.default_rng(3).uniform(-1, 1, (80, 100)).astype(np.float32)
    both = encoder(gp.from_numpy(np.stack([mel(), other])))
    alone = encoder(gp.from_numpy(mel()))
    assert both.to_numpy()[0].tobytes() == alone.to_numpy()[0].tobytes()
    cache = decoder.cache(3, 2)
    for window in range(2):
        decoder.hear(both[window], cache, window)
    whole = decoder.logits(decoder.prompt(TOKENS, 0, 0, cache)).to_numpy()
    decoder.prompt(TOKENS[:-1], 2, 0, cache)
    decoder.prompt([5, 6], 1, 1, cache)
    at = len(TOKENS) - 1
    together = decoder.step([7, TOKENS[-1]], [2, at], [1, 2], [1, 0], cache).to_numpy()
    single = decoder.step([TOKENS[-1]], [at], [2], [0], cache).to_numpy()
    filled = decoder.step([9, 7, TOKENS[-1]], [at, 2, at], [0, 1, 2], [1, 1, 0], cache).to_numpy()  # up to four rows
    assert together[1].tobytes() == single[0].tobytes() == filled[2].tobytes()
    assert together[0].tobytes() == filled[1].tobytes()
    np.testing.assert_allclose(single[0], whole[-1], atol=1e-4)


def test_generating_takes_the_likeliest_token_each_time(tiny: WhisperWeights) -> None:
    states = WhisperEncoder(tiny.config, tiny)(gp.from_numpy(mel()))
    decoder = WhisperDecoder(tiny.config, tiny)
    found = decoder.generate(states, max_length=9, temperature=0.0)
    expected = [tiny.config.decoder_start_token_id]
    while len(expected) < 9 and expected[-1] != tiny.config.eos_token_id:
        expected.append(int(decoder(expected, states).to_numpy()[-1].argmax()))
    assert found == expected and len(found) > 1
    gp.set_sampling_seed(4)
    drawn = decoder.generate(states, 9, 1.0, 5)
    gp.set_sampling_seed(4)
    assert decoder.generate(states[0], 9, 1.0, 5) == drawn
    assert decoder.generate(states, 1) == expected[:1]
    with pytest.raises(InvalidSpecError, match="max_length=0"):
        decoder.generate(states, 0)
    with pytest.raises(ShapeError, match="states have shape"):
        decoder.generate(states[0, :3])


@pytest.mark.parametrize("bands", [80, 128])
def test_features_are_those_of_faster_whisper(bands: int) -> None:
    golden = np.load(HERE / "features.npz")[str(bands)]
    features = Features(clip("fox"), bands)
    found = features.window(0, features.frames, features.frames).to_numpy()[:, ::7]
    np.testing.assert_allclose(found, golden, atol=1e-4)
    part = features.window(100, 50, 300).to_numpy()
    whole = features.window(0, features.frames, features.frames).to_numpy()
    np.testing.assert_allclose(part[:, :50], whole[:, 100:150], atol=5e-5)
    assert not part[:, 50:].any()


@pytest.mark.parametrize("count", [1, 2, 40, 159, 160, 161, 400])
def test_the_shortest_sounds_have_features(count: int) -> None:
    features = Features(np.full(count, 0.1, np.float32), 80)
    assert features.frames == (count + 160) // 160
    assert np.isfinite(features.window(0, features.frames, 3000).to_numpy()).all()


def test_documented_features(tmp_path: Path) -> None:
    sound = clip("short")
    mel = gp.asr.preprocess_audio(sound)
    assert (mel.shape, str(mel.dtype)) == ((80, 3000), "float32")
    assert gp.asr.preprocess_audio(sound, n_mels=128).shape == (128, 3000)
    batch = gp.asr.preprocess_audio_batch([sound, sound[:8000]]).to_numpy()
    assert batch[0].tobytes() == mel.to_numpy().tobytes()
    assert gp.asr.pad_or_trim(sound, 100).shape == (100,)
    assert gp.asr.pad_or_trim(sound).to_numpy()[len(sound) :].any() == False  # noqa: E712
    logs = gp.from_numpy(np.array([[-10.0, 0.0], [-3.0, 1.0]], np.float32))
    np.testing.assert_allclose(gp.asr.normalize_mel(logs).to_numpy(), [[-0.75, 1.0], [0.25, 1.25]])


def test_the_path_through_a_matrix_is_the_cheapest() -> None:
    rng = np.random.default_rng(5)
    for rows, columns in ((1, 1), (1, 6), (6, 1), (4, 5), (5, 4), (7, 7)):
        cost = rng.standard_normal((rows, columns))
        i, j = warp(cost)
        assert (i[0], j[0], i[-1], j[-1]) == (0, 0, rows - 1, columns - 1)
        assert set(zip(np.diff(i).tolist(), np.diff(j).tolist(), strict=True)) <= {(0, 1), (1, 0), (1, 1)}
        assert cost[i, j].sum() == pytest.approx(_cheapest(cost))


def _cheapest(cost: Array) -> float:
    """By trying all paths."""

    def from_here(i: int, j: int) -> float:
        if (i, j) == (0, 0):
            return float(cost[0, 0])
        before = [(i - 1, j), (i, j - 1), (i - 1, j - 1)]
        return float(cost[i, j]) + min(from_here(a, b) for a, b in before if a >= 0 and b >= 0)

    return from_here(cost.shape[0] - 1, cost.shape[1] - 1)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_other_rates_are_resampled(rate: int) -> None:
    time = np.arange(rate // 2) / rate
    found = samples_of(np.sin(2 * np.pi * 440 * time).astype(np.float32), rate)
    assert found.size == 8000
    want = np.sin(2 * np.pi * 440 * np.arange(8000) / 16000)
    np.testing.assert_allclose(found[200:-200], want[200:-200], atol=1e-4)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav_files_and_channels(tmp_path: Path, width: int) -> None:
    wave_form = 0.5 * np.sin(np.arange(800) / 20)
    whole = np.round(wave_form * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    raw = (whole + 128).astype("u1").tobytes() if width == 1 else b"".join(
        int(value).to_bytes(width, "little", signed=True) for value in np.repeat(whole, 2)
    )  # fmt: skip
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1 if width == 1 else 2, width, 16000, 0, "NONE", ""))
        file.writeframes(raw)
    np.testing.assert_allclose(samples_of(tmp_path / "a.wav"), wave_form, atol=2.0 ** (2 - 8 * min(width, 3)))


def test_an_audio_buffer_has_its_own_rate() -> None:
    sound = np.sin(np.arange(2400) / 20).astype(np.float32)
    buffer = gp.ops.audio.AudioBuffer(gp.from_numpy(sound), 24000)
    np.testing.assert_array_equal(samples_of(buffer), samples_of(sound, 24000))
    assert samples_of(buffer, 24000).size == 1600
    with pytest.raises(gp.InvalidSpecError, match="its rate is 24000 Hz, but sample_rate is 16000"):
        samples_of(buffer, 16000)


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "no.wav").write_bytes(b"RIFFnothing")
    for audio, kind, message in (
        (np.zeros(0, np.float32), gp.InvalidSpecError, "empty"),
        (np.array([np.nan], np.float32), gp.InvalidSpecError, "NaN"),
        (np.zeros((3, 20, 20), np.float32), gp.ShapeError, "shape"),
        (np.zeros(3, np.uint16), gp.DTypeError, "uint16"),
        (tmp_path / "no.wav", gp.InvalidSpecError, r"no\.wav"),
        (tmp_path / "absent.wav", OSError, "absent"),
    ):
        with pytest.raises(kind, match=message):
            samples_of(audio)
    with pytest.raises(gp.InvalidSpecError, match="sample_rate is 3"):
        samples_of(np.zeros(9, np.float32), 3)
    for settings in ({"beam_size": 0}, {"temperature": ()}, {"max_length": 0}, {"seed": -1}, {"patience": 0.0}):
        with pytest.raises(gp.InvalidSpecError):
            gp.asr.Options(**settings)
    with pytest.raises(gp.InvalidSpecError, match="activation_function"):
        gp.asr.WhisperConfig(activation_function="relu")


@pytest.mark.parametrize("language", ["de", "DE", "German", "de-AT", "de_DE", " german "])
def test_a_language_by_its_code_or_name(language: str) -> None:
    assert gp.asr.Options(language=language).language == "de"
    assert gp.asr.Options(language="no such language").language == "no such language"


@pytest.mark.parametrize("rate", ["16000", 16000.5])
def test_a_rate_that_is_no_whole_number(rate: Any) -> None:
    with pytest.raises(InvalidSpecError, match="sample_rate is"):
        samples_of(np.zeros(100, np.float32), rate)
    assert samples_of(np.zeros(100, np.float32), 8000.0).size == 200  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("beam_size", 2.0), ("temperature", "0.5"), ("patience", "1"), ("seed", "1")]
)
def test_settings_of_another_type_are_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidSpecError, match=name):
        gp.asr.Options(**{name: value})
