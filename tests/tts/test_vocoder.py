"""The source of Kokoro's voice and its short Fourier transforms: the kernels, of several sentences, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops import host
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers.fourier import ShortFourier
from pygpukit.tts.layers.source import HarmonicSource
from pygpukit.tts.parts import Part

pytestmark = pytest.mark.usefixtures("backend_name")


def test_the_source_of_several_sentences() -> None:
    rng = np.random.default_rng()
    weights = {
        "l_linear.weight": gp.from_numpy(rng.standard_normal((1, 9), dtype=np.float32)),
        "l_linear.bias": gp.from_numpy(rng.standard_normal(1, dtype=np.float32)),
    }
    source, spans = HarmonicSource(Part(weights), 24000, 300), Spans([(1, 4), (7, 3), (10, 1)], 11)
    values = rng.uniform(80, 300, 11).astype(np.float32)
    values[[2, 8]] = 5  # no voice there
    pitch = gp.from_numpy(values)
    with host.built_in_kernels():
        found = source(pitch, [3, None, 2**63 + 1], spans).to_numpy()
        alone = source(pitch[7:10], [None], Spans([(0, 3)], 3)).to_numpy()
    expected = source(pitch, [3, None, 2**63 + 1], spans).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert not found[:300].any() and not found[1500:2100].any()
    assert found[2100:3000].tobytes() == alone.tobytes()


@pytest.mark.parametrize("dense", [True, False])
def test_the_transforms_of_several_sentences(dense: bool) -> None:
    rng = np.random.default_rng()
    fourier, lengths = ShortFourier(20, 5), [35, 1300, 640]
    signals, frames = Spans([(5, 35), (60, 1300), (1360, 640)], 2003), Spans([(0, 8), (11, 261), (275, 129)], 404)
    apart = Spans([(0, 35), (35, 1300), (1335, 640)], sum(lengths))
    signal = gp.from_numpy(rng.standard_normal(2003))
    spectrum = rng.standard_normal((1, 22, 404), dtype=np.float32)
    given = gp.from_numpy(spectrum)
    if dense:
        given = gp.from_numpy(np.ascontiguousarray(spectrum.transpose(0, 2, 1))).transpose(0, 2, 1)
    with host.built_in_kernels():
        found, sound = (
            fourier.forward(signal, signals, frames).to_numpy(),
            fourier.inverse(given, frames, apart).to_numpy(),
        )
        alone = fourier.inverse(given[:, :, 11:272], Spans([(0, 261)], 261), Spans([(0, 1300)], 1300)).to_numpy()
    expected = fourier.forward(signal, signals, frames).to_numpy()
    np.testing.assert_allclose(found[:, :11], expected[:, :11], rtol=1e-6, atol=1e-6)
    turned = np.abs(found[:, 11:] - expected[:, 11:])
    magnitude = np.maximum(expected[:, :11], 1e-6)
    assert (np.minimum(turned, 2 * np.pi - turned) * magnitude < 1e-6).all()
    assert not found[:, :, 8:11].any() and not found[:, :, 272:275].any()
    np.testing.assert_allclose(sound, fourier.inverse(given, frames, apart).to_numpy(), rtol=0, atol=3e-5)
    assert sound[35:1335].tobytes() == alone.tobytes()
