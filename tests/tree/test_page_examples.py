"""Every Python example of README and docs runs, word for word and in order, a page in one namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from alone import alone

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Pages whose examples have a test of their own.
ELSEWHERE = {
    "docs/cells.md": "tests/jupyter/test_documented_cells.py",
    "docs/contexts.md": "tests/scheduler/test_contexts_page.py",
    "docs/jit.md": "tests/jit/test_jit_page.py",
    "docs/triton.md": "tests/plugins/test_triton_kernels.py",
    "docs/textures.md": "tests/textures/test_textures_page.py",
}
NUMPY = "import numpy as np\nimport pygpukit as gp\n"
SPEECH = f"""
import shutil
shutil.copy(r"{ROOT / "tests" / "asr" / "clips" / "question.wav"}", "speech.wav")
"""
# The voice of a conversation, and where it is heard, are scripted: Kokoro takes long on the simulated device.
VOICE = f"""
import wave
import numpy as np
import pygpukit as gp
from pipeline.scripted import Kokoro

class Player:
    heard = 0
    def push(self, samples): self.heard += len(samples)

player, kokoro = Player(), Kokoro()
monkeypatch.setattr(gp.tts, "load", lambda *path, **settings: kokoro)
with wave.open(r"{ROOT / "tests" / "asr" / "clips" / "question.wav"}") as file:
    samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
blocks = [samples, np.zeros(32000, np.float32)]
"""


@dataclass(frozen=True)
class Page:
    """before: what a page takes as given, by the number of the example before which it is run; check: what must hold at
    the end; models: names that are fetched where they are not there."""

    check: str
    before: dict[int, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()


PAGES = {
    "README.md": Page(
        "assert y.to_numpy()[0, 0] == 512.5\nassert chat.messages[-1].content == 'The capital of France is Paris.'",
        models=("smollm2-135m-instruct", "kokoro-82m", "whisper-tiny.en"),
    ),
    "docs/arrays.md": Page(
        "expected = x.to_numpy() / (1 + np.exp(-2 * x.to_numpy()))\n"
        "np.testing.assert_allclose(swish(x, 2.0).to_numpy(), expected, rtol=1e-5)\n"
        "np.testing.assert_allclose(z.to_numpy(), np.exp(x.to_numpy()), rtol=1e-5)\n"
        "assert not y[:, ::2].to_numpy().any()"
    ),
    "docs/attention.md": Page("assert out.shape == (2, 16, 1, 64)", {0: NUMPY}),
    "docs/chat.md": Page("assert type(chat).__name__ == 'ChatWidget'", models=("smollm2-135m-instruct",)),
    "docs/convolution.md": Page(
        "assert w.shape == (8, 16, 3, 3)",
        {0: NUMPY + "x, w = gp.ones((2, 16, 8, 8), 'bfloat16'), gp.ones((8, 16, 3, 3), 'bfloat16')"},
    ),
    "docs/cutile.md": Page("assert z.to_numpy().tolist() == [one + 1.0 for one in range(1000)]"),
    "docs/dashboards.md": Page("import os\nassert os.path.getsize('run.pgktrace')", {0: NUMPY}),
    "docs/comm.md": Page("assert group.ranks[0].size == 1"),
    "docs/devices.md": Page("assert y.device == last and y.to(0).to_numpy().tolist() == [[1.0] * 3] * 2"),
    "docs/fft.md": Page(
        "np.testing.assert_allclose(again.to_numpy(), x.to_numpy(), atol=1e-5)\n"
        "np.testing.assert_allclose(power.to_numpy(), abs(np.fft.rfft(x.to_numpy())) ** 2, rtol=1e-3, atol=1e-3)"
    ),
    "docs/getting_started.md": Page(
        "assert phase == 'Succeeded' and x.to_numpy().max() == 0",
        {
            3: "phase = scheduler.stats(task.id).phase\nscheduler.close()\n"
            "import pathlib\npathlib.Path('my_module.py').write_text("
            "'def train_step(weights, gradients, rate): return float((weights - gradients * rate).to_numpy().sum())')\n"
            "weights, gradients = gp.ones(100), gp.ones(100)"
        },
    ),
    "docs/linalg.md": Page(
        "np.testing.assert_allclose(a.to_numpy() @ x.to_numpy(), b.to_numpy(), atol=2e-2)\n"
        "assert np.isnan(y.to_numpy()).all() and w.shape == (1000, 8) and v.shape == (1000, 8, 8)"
    ),
    "docs/llm.md": Page(
        "assert token.text is not None and likeness[0, 1] > 0.6 and abs(likeness[2, :2]).max() < 0.1\n"
        "assert weights['model.layers.1.w'].shape == (3, 5) and loader.num_loaded() == 0",
        {
            6: "import numpy as np\nfrom safetensors.numpy import save_file\n"
            "save_file({f'model.layers.{n}.w': np.ones((3, 5)) for n in range(2)}, 'model.safetensors')"
        },
        models=("smollm2-135m-instruct", "all-minilm-l6-v2"),
    ),
    "docs/dask.md": Page(
        "assert value == 1.5 and len(texts) == 2 and 'Paris' in texts[0]",
        {0: "import numpy as np\nnp.save('a.npy', np.array([1, 2], np.float32))\npaths = ['a.npy']"},
        ("smollm2-135m-instruct",),
    ),
    "docs/matmul.md": Page(
        "assert y.shape == (4, 32) and d.shape == (8, 8)",
        {
            0: NUMPY + "x, w = gp.ones((16, 16), 'bfloat16'), gp.ones((16, 16), 'bfloat16')",
            1: "a, b = gp.ones((8, 8)), gp.ones((8, 8))",
            3: "weight, x = gp.ones((32, 64)), gp.ones((4, 64), 'bfloat16')",
        },
    ),
    "docs/plugins.md": Page("np.testing.assert_allclose(probabilities.to_numpy().sum(), 1, rtol=1e-6)", {0: NUMPY}),
    "docs/profiling.md": Page("assert len(p.works) >= 2 and p.totals()"),
    "docs/measuring.md": Page(
        "assert result.median_us > 0 and x.to_numpy()[0] < 1",
        {
            0: "import pygpukit as gp\nsource = 'extern \"C\" __global__ void scale(float* x, float f, int n) {'\n"
            "source += ' int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }'\n"
            "x, blocks = gp.ones(1000), 4"
        },
    ),
    "docs/models.md": Page("assert len(ids) > 5 and weights.shape == (576,)", models=("smollm2-135m-instruct",)),
    "docs/recognition.md": Page(
        "assert result.text and piece.end_time > piece.start_time",
        {0: SPEECH, 1: "import numpy as np\nblock = np.zeros(1024, np.float32)"},
        ("whisper-tiny.en", "silero-vad"),
    ),
    "docs/sound.md": Page(
        "assert np.abs(back.to_numpy() - y.to_numpy()).max() < 1e-4 and abs(np.nanmedian(f0) - 440) < 4\n"
        "import os\nassert os.path.getsize('tune.flac') > 1000",
        {
            2: f"import os\nos.symlink(r'{ROOT / 'notebooks'}', 'notebooks')\nint16_samples = np.zeros(3200, np.int16)",
            3: "chunks = [np.zeros(240, np.float32)] * 3",
        },
    ),
    "docs/serving.md": Page(
        "server.close()",
        {
            0: "import functools, openai\nimport pygpukit as gp\nserved = gp.llm.load('smollm2-135m-instruct')\n"
            "server = gp.llm.serve(served, port=0)\nreal = openai.OpenAI\n"
            "def client(base_url, api_key): return real(base_url=server.url, api_key=server.token)\n"
            "monkeypatch.setattr(openai, 'OpenAI', client)",
        },
        ("smollm2-135m-instruct",),
    ),
    "docs/synthesis.md": Page("import os\nassert os.path.getsize('hello.wav') > 40000", models=("kokoro-82m",)),
    "docs/transfers.md": Page(
        "np.testing.assert_array_equal(back.wait(), host * np.float32(2))",
        {0: NUMPY},
    ),
    "docs/voice.md": Page(
        "assert player.heard and voice.conversation_history[-1].assistant_text",
        {0: VOICE, 2: "llm, tts = gp.llm.load('smollm2-135m-instruct', progress=False), kokoro"},
        ("whisper-tiny.en", "smollm2-135m-instruct", "silero-vad"),
    ),
}


def examples(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def pages() -> Iterator[str]:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if examples(str(path.relative_to(ROOT))):
            yield str(path.relative_to(ROOT))


def test_every_page_with_examples_is_tested_once() -> None:
    assert not PAGES.keys() & ELSEWHERE.keys()
    assert sorted(PAGES.keys() | ELSEWHERE.keys()) == sorted(pages())
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())


@pytest.mark.timeout(900)  # models on the simulated device
@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_examples_of_a_page_run(name: str, tmp_path: Path) -> None:
    """A page in a process of its own, as a reader has it: the models of its widgets go with it."""
    for model in PAGES[name].models:
        from pygpukit.models import get

        get(model)
    alone(__file__, "run_page", name, folder=tmp_path)


def run_page(name: str) -> None:
    folder = str(Path.cwd())
    with pytest.MonkeyPatch.context() as monkeypatch:
        page, names = PAGES[name], {"__name__": "example", "monkeypatch": monkeypatch}
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setenv("PYTHONPATH", folder, prepend=":")
        for number, example in enumerate(examples(name)):
            run(page.before.get(number, ""), f"{name}, before example {number}", names)
            run(example, f"{name}, example {number}", names)
        assert page.check
        run(page.check, f"{name}, what must hold", names)


def run(source: str, where: str, names: dict[str, Any]) -> None:
    exec(compile(source, where, "exec"), names)
