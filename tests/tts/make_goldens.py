"""What onnxruntime says of Kokoro's ONNX file with its weights dequantised, for test_kokoro.py; run by hand.

    python -m venv /tmp/goldens && /tmp/goldens/bin/pip install numpy onnx onnxruntime
    cd tests && /tmp/goldens/bin/python -m tts.make_goldens "$(pygpukit models get kokoro-82m)"

The quantised operations of the graph become those of float32, with the same weights; outputs on the way are exposed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

TARGET = Path(__file__).parent / "goldens.npz"
# Name: phonemes, voice, speed. What is compared stage by stage is short: its source alone has 22 x 120 numbers a frame.
UTTERANCES = {
    "short": ("\u02c8I", "jf_alpha", 1.3),
    "hello": ("h\u0259l\u02c8O w\u02c8\u025c\u0279ld, \u00f0\u026as \u026az \u0259 t\u02c8\u025bst.", "jm_kumo", 1.0),
    "slow": ("sl\u02c8Oli, nW!", "jm_kumo", 0.8),
}
OUTPUTS = {
    "durations": "/encoder/Clip_output_0",
    "pitch": "/encoder/F0_proj/Conv_output_0",
    "energy": "/encoder/N_proj/Conv_output_0",
    "frames": "/decoder/decoder/decode.3/Div_4_output_0",
    "source": "/decoder/decoder/generator/Concat_3_output_0",
    "spectrum": "/decoder/decoder/generator/conv_post/Conv_output_0",
}


def dequantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in float32."""
    graph = model.graph
    arrays = {each.name: each for each in graph.initializer}
    made: dict[str, np.ndarray] = {}
    ones: set[str] = set()

    def value(name: str) -> np.ndarray:
        return numpy_helper.to_array(arrays[name])

    def weight(name: str, zero: str, axis: int) -> np.ndarray:
        stored, scale, point = value(name), value(name.removesuffix("_quantized") + "_scale"), value(zero)
        shape = [1] * stored.ndim
        shape[axis] = -1
        scale, point = (x.astype(np.float32).reshape(shape if x.size > 1 else ()) for x in (scale, point))
        return ((stored.astype(np.float32) - point) * scale).astype(np.float32)

    def rewritten(node: onnx.NodeProto) -> onnx.NodeProto:
        given = list(node.input)
        if node.op_type == "DynamicQuantizeLinear":
            made[node.output[1]] = np.float32(1)
            return helper.make_node("Identity", given, node.output[:1])
        if node.op_type in ("ConvInteger", "MatMulInteger"):
            convolves = node.op_type == "ConvInteger"
            made[given[1] + "_float"] = weight(given[1], given[3], 0 if convolves else -1)
            ones.add(given[1].removesuffix("_quantized") + "_scale")
            new = helper.make_node("Conv" if convolves else "MatMul", [given[0], given[1] + "_float"], node.output)
        elif node.op_type == "DynamicQuantizeLSTM":
            for position, zero in ((1, 9), (2, 11)):
                made[given[position] + "_float"] = weight(given[position], given[zero], 0).transpose(0, 2, 1).copy()
            names = [given[0], given[1] + "_float", given[2] + "_float", *given[3:8]]
            new = helper.make_node("LSTM", names, node.output)
        elif (node.op_type == "Floor" and "bias_quant" in node.name) or node.name.endswith("bias_quantized_node"):
            return helper.make_node("Identity", given, node.output)
        else:
            return node
        new.name = node.name
        new.attribute.extend(node.attribute)
        return new

    nodes = [rewritten(node) for node in graph.node]
    made |= {name: np.ones_like(value(name)) for name in ones}
    kept = [each for each in graph.initializer if each.name not in made]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept + [numpy_helper.from_array(np.asarray(x), name) for name, x in made.items()])
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in OUTPUTS.values())
    return model


def main(folder: Path) -> int:
    """Write the file."""
    vocabulary = json.loads((folder / "vocab.json").read_text())["vocab"]
    voices = np.load(folder / "voices_ja.npz")
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(dequantised(onnx.load(folder / "model.onnx")), file.name)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(file.name, options, providers=["CPUExecutionProvider"])
    found: dict[str, Any] = {}
    for name, (phonemes, voice, speed) in UTTERANCES.items():
        tokens = np.array([[0, *(vocabulary[symbol] for symbol in phonemes), 0]])
        style = voices[voice][len(phonemes) - 1].reshape(1, 256)
        given = {"tokens": tokens, "style": style, "speed": np.array([speed], np.float32)}
        audio, *rest = session.run(["audio", *OUTPUTS.values()], given)
        stages = dict(zip(OUTPUTS, rest, strict=True))
        moved, *_ = session.run(["audio"], given | {"style": style * np.float32(1 + 1e-6)})
        found |= {f"{name}/{stage}": stages[stage].ravel() for stage in ("durations", "pitch", "energy")}
        # The file's last step leaves out the division by the squared windows, which add up to 1.5.
        found |= {f"{name}/audio": audio.ravel() / 1.5, f"{name}/moved": moved.ravel() / 1.5}
        if name == "short":
            found |= {f"{name}/frames": stages["frames"], f"{name}/source": stages["source"]}
            found[f"{name}/spectrum"] = stages["spectrum"][:, :, ::5]
        for key in (f"{name}/audio", f"{name}/moved"):
            found[key] = np.rint(np.clip(found[key], -1, 1) * 32767).astype(np.int16)
    np.savez_compressed(TARGET, **found)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    path = Path(sys.argv[1])
    sys.exit(main(path if path.is_dir() else path.parent))
