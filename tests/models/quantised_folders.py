"""Folders of weights in few bits, packed here by the layouts' own rules, one code at a time, and what they mean.

Each function takes the codes' shape (out, in), and gives tensors by name, the configuration and the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Made = tuple[dict[str, Any], dict[str, Any], Array]
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def e4m3(code: int) -> float:
    """The number of a float8 E4M3 code."""
    code = int(code)  # of NumPy's, which would wrap
    sign, exponent, fraction = (-1.0 if code & 128 else 1.0), code >> 3 & 15, code & 7
    if exponent == 0:
        return sign * fraction / 8 * 2.0**-6
    return sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


def bit_words(codes: Array, bits: int) -> Array:
    """Rows of codes as one long number each, in words of 32 bits."""
    words = -(-codes.shape[1] * bits // 32)
    numbers = [sum(int(code) << place * bits for place, code in enumerate(row)) for row in codes]
    return np.array([np.frombuffer(number.to_bytes(words * 4, "little"), "<i4") for number in numbers])


def gptq(
    stem: str, shape: tuple[int, int], rng: np.random.Generator, bits: int = 4, groups: int = 2, order: bool = True,
    layout: str = "gptq",
) -> Made:  # fmt: skip
    out, columns = shape
    code, zero = rng.integers(0, 1 << bits, shape), rng.integers(0, 1 << bits, (groups, out))
    scale = rng.uniform(0.001, 0.02, (groups, out)).astype(np.float16)
    group = np.arange(columns) // (columns // groups)
    if order:
        group = rng.permutation(group)
    tensors = {
        f"{stem}.qweight": np.ascontiguousarray(bit_words(code, bits).T),
        f"{stem}.qzeros": bit_words(zero, bits),
        f"{stem}.scales": ("F16", scale),
        f"{stem}.g_idx": group.astype(np.int32),
    }
    shift = 1 if layout == "gptq" else 0
    values = (code - (zero.T[:, group] + shift)).astype(np.float64) * scale.T[:, group].astype(np.float64)
    config = {"quant_method": "gptq", "bits": bits, "group_size": columns // groups, "desc_act": order}
    return tensors, {**config, "checkpoint_format": layout}, values


def awq(stem: str, shape: tuple[int, int], rng: np.random.Generator, groups: int = 2) -> Made:
    out, columns = shape
    code, zero = rng.integers(0, 16, (columns, out)), rng.integers(0, 16, (groups, out))
    scale = rng.uniform(0.001, 0.02, (groups, out)).astype(np.float16)

    def packed(codes: Array) -> Array:
        words = np.zeros((len(codes), out // 8), np.uint32)
        for word in range(out // 8):
            for place, column in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
                words[:, word] |= codes[:, word * 8 + column].astype(np.uint32) << np.uint32(4 * place)
        return words.view(np.int32)

    tensors = {f"{stem}.qweight": packed(code), f"{stem}.qzeros": packed(zero), f"{stem}.scales": ("F16", scale)}
    group = np.arange(columns) // (columns // groups)
    values = ((code - zero[group]).astype(np.float64) * scale[group].astype(np.float64)).T
    config = {"quant_method": "awq", "bits": 4, "group_size": columns // groups, "version": "gemm", "zero_point": True}
    return tensors, config, values


def packed(
    stem: str, shape: tuple[int, int], rng: np.random.Generator, bits: int = 4, groups: int = 2, zeros: bool = True
) -> Made:
    out, columns = shape
    middle = 1 << (bits - 1)
    code = rng.integers(0, 1 << bits, shape)
    zero = rng.integers(0, 1 << bits, (out, groups)) if zeros else np.full((out, groups), middle)
    scale = rng.uniform(0.001, 0.02, (out, groups)).astype(np.float16)
    tensors = {
        f"{stem}.weight_packed": bit_words(code, bits),
        f"{stem}.weight_scale": ("F16", scale),
        f"{stem}.weight_shape": ("I64", np.array(shape, np.int64)),
    }
    if zeros:
        tensors[f"{stem}.weight_zero_point"] = np.ascontiguousarray(bit_words(zero.T, bits).T)
    group = np.arange(columns) // (columns // groups)
    values = ((code - middle) - (zero[:, group] - middle)).astype(np.float64) * scale[:, group].astype(np.float64)
    weights = {"num_bits": bits, "type": "int", "symmetric": not zeros, "strategy": "group"}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
    return tensors, {**config, "config_groups": {"group_0": {"weights": weights}}}, values


def _fp4(code: Array) -> tuple[Array, Array]:
    numbers = np.array(FP4, np.float32)[code]
    return (code[:, 0::2] | code[:, 1::2] << 4).astype(np.uint8), numbers


def nvfp4(stem: str, shape: tuple[int, int], rng: np.random.Generator, modelopt: bool = False) -> Made:
    out, columns = shape
    codes, numbers = _fp4(rng.integers(0, 16, shape))
    steps = rng.integers(1, 0x7F, (out, columns // 16)).astype(np.uint8)
    overall = np.float32(rng.uniform(1e-5, 1e-4) if modelopt else rng.uniform(1e4, 1e5))
    step = np.vectorize(e4m3)(steps).astype(np.float32)
    scale = step * overall if modelopt else step / overall
    values = numbers * np.repeat(scale, 16, axis=1)
    if modelopt:
        tensors = {f"{stem}.weight": codes, f"{stem}.weight_scale_2": overall.reshape(())}
        config: dict[str, Any] = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    else:
        tensors = {f"{stem}.weight_packed": codes, f"{stem}.weight_global_scale": overall.reshape(1)}
        weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
        config = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}
        config |= {"config_groups": {"group_0": {"weights": weights}}}
    return {**tensors, f"{stem}.weight_scale": ("F8_E4M3", steps)}, config, values


def mxfp4(stem: str, shape: tuple[int, int], rng: np.random.Generator) -> Made:
    codes, numbers = _fp4(rng.integers(0, 16, shape))
    exponents = rng.integers(110, 125, (shape[0], shape[1] // 32)).astype(np.uint8)
    values = numbers * np.repeat(2.0 ** (exponents.astype(np.float64) - 127), 32, axis=1)
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}
    config = {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}
    tensors = {f"{stem}.weight_packed": codes, f"{stem}.weight_scale": exponents}
    return tensors, {**config, "config_groups": {"group_0": {"weights": weights}}}, values


LAYOUTS: dict[str, Callable[..., Made]] = {
    "gptq": gptq, "awq": awq, "packed": packed, "nvfp4": nvfp4, "mxfp4": mxfp4,
    "gptq in order": lambda *a: gptq(*a, order=False),
    "gptq v2": lambda *a: gptq(*a, layout="gptq_v2"),
    "gptq of 8": lambda *a: gptq(*a, bits=8),
    "gptq of 3": lambda *a: gptq(*a, bits=3),
    "gptq of 2": lambda *a: gptq(*a, bits=2),
    "packed without zeros": lambda *a: packed(*a, zeros=False),
    "packed of 8 by row": lambda *a: packed(*a, bits=8, groups=1),
    "packed of 8": lambda *a: packed(*a, bits=8),
    "packed of 3": lambda *a: packed(*a, bits=3),
    "modelopt": lambda *a: nvfp4(*a, modelopt=True),
}  # fmt: skip
