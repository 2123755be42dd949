"""The convolutions of suite `conv`, and their error: alike for this package and for its peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

KINDS = ("bfloat16", "float16", "tf32")  # of operands; tf32: float32 that may be rounded to it
LAYOUTS = ("last", "first")  # where the channels of input and result are
CHECKED = 16  # places of an image that are compared with float64


@dataclass(frozen=True)
class Case:
    """A convolution. x: (B, C, L) or (B, C, H, W). w, settings: as conv1d(), conv2d() and the transposed ones take
    them; settings are the same for rows and columns. The first word of the name is the model's."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    settings: dict[str, int] = field(default_factory=dict)
    transposed: bool = False

    def setting(self, name: str) -> int:
        return self.settings.get(name, 1 if name in ("stride", "dilation", "groups") else 0)

    @property
    def out(self) -> tuple[int, ...]:
        """The result's shape."""
        stride, padding, dilation = (self.setting(name) for name in ("stride", "padding", "dilation"))
        groups, more = self.setting("groups"), self.setting("output_padding")
        reach = [dilation * (k - 1) for k in self.w[2:]]
        pairs = list(zip(self.x[2:], reach, strict=True))
        if self.transposed:
            extents = [(n - 1) * stride - 2 * padding + far + more + 1 for n, far in pairs]
        else:
            extents = [(n + 2 * padding - far - 1) // stride + 1 for n, far in pairs]
        return (self.x[0], self.w[1] * groups if self.transposed else self.w[0], *extents)

    @property
    def flops(self) -> int:
        """Of a multiplication and an addition for each weight and place of the result; transposed, of the input."""
        places = prod(self.x[2:] if self.transposed else self.out[2:])
        return 2 * self.x[0] * places * prod(self.w)


def _resnet() -> Iterator[Case]:
    """Every shape of ResNet-50's convolutions: channels in and out, kernel, stride, extent of the image."""
    shapes = [(3, 64, 7, 2, 224), (64, 64, 1, 1, 56)]
    for width, extent in ((64, 56), (128, 28), (256, 14), (512, 7)):
        if width > 64:  # a stage begins with twice the extent
            shapes += [(2 * width, width, 1, 1, 2 * extent), (width, width, 3, 2, 2 * extent)]
            shapes.append((2 * width, 4 * width, 1, 2, 2 * extent))
        shapes += [(width, width, 3, 1, extent), (width, 4 * width, 1, 1, extent), (4 * width, width, 1, 1, extent)]
    for channels, filters, k, stride, extent in shapes:
        name = f"ResNet-50 {k}x{k}, {channels} to {filters} of {extent}x{extent}{f', stride {stride}' * (stride > 1)}"
        yield Case(
            name, (32, channels, extent, extent), (filters, channels, k, k), {"stride": stride, "padding": k // 2}
        )


def _whisper() -> Iterator[Case]:
    """The two convolutions of the encoders of tiny and large-v3, one window."""
    for model, width, mels in (("tiny", 384, 80), ("large-v3", 1280, 128)):
        yield Case(f"Whisper {model}, first", (1, mels, 3000), (width, mels, 3), {"padding": 1})
        yield Case(f"Whisper {model}, second", (1, width, 3000), (width, width, 3), {"stride": 2, "padding": 1})


def _kokoro() -> Iterator[Case]:
    """Those of Kokoro-82M for three seconds of speech: text encoder, decoder, generator."""
    yield Case("Kokoro text, 5 wide", (1, 512, 120), (512, 512, 5), {"padding": 2})
    yield Case("Kokoro decoder, 3 wide", (1, 1090, 120), (1024, 1090, 3), {"padding": 1})
    again = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 1090}
    yield Case("Kokoro decoder, depthwise transposed", (1, 1090, 120), (1090, 1, 3), again, transposed=True)
    yield Case("Kokoro up by 10", (1, 512, 240), (512, 256, 20), {"stride": 10, "padding": 5}, transposed=True)
    yield Case("Kokoro up by 6", (1, 256, 2400), (256, 128, 12), {"stride": 6, "padding": 3}, transposed=True)
    for channels, length in ((256, 2400), (128, 14401)):
        for k, dilation in ((3, 1), (7, 3), (11, 5)):
            settings = {"padding": dilation * (k - 1) // 2, "dilation": dilation}
            name = f"Kokoro {channels} channels, {k} wide, dilation {dilation}"
            yield Case(name, (1, channels, length), (channels, channels, k), settings)
    yield Case("Kokoro last, 7 wide", (1, 128, 14401), (22, 128, 7), {"padding": 3})


def _others() -> Iterator[Case]:
    """Convolutions that those models do not have: grouped (ResNeXt-50) and depthwise (MobileNet) in two dimensions."""
    grouped = {"padding": 1, "groups": 32}
    yield Case("ResNeXt-50 3x3, 512 in 32 groups of 14x14", (32, 512, 14, 14), (512, 16, 3, 3), grouped)
    depthwise = {"padding": 1, "groups": 144}
    yield Case("MobileNet 3x3, 144 depthwise of 56x56", (32, 144, 56, 56), (144, 1, 3, 3), depthwise)


SMALL = (
    Case("ResNet-50 small", (2, 16, 9, 9), (24, 16, 3, 3), {"stride": 2, "padding": 1}),
    Case("Whisper small", (1, 16, 40), (24, 16, 3), {"stride": 2, "padding": 1}),
    Case("Kokoro small, dilated", (1, 16, 40), (16, 16, 7), {"padding": 9, "dilation": 3}),
    Case("Kokoro small, transposed", (1, 16, 9), (16, 8, 4), {"stride": 2, "padding": 1}, transposed=True),
    Case(
        "Kokoro small, depthwise transposed", (1, 6, 9), (6, 1, 3),
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 6}, transposed=True,
    ),
    Case("ResNeXt-50 small", (2, 16, 5, 6), (32, 4, 3, 3), {"padding": 1, "groups": 4}),
    Case("MobileNet small", (1, 6, 5, 6), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
)  # fmt: skip
QUICK = 2**33  # operations of a case in a quick run


def cases(size: str) -> tuple[Case, ...]:
    """size: "small" (the simulated device), "quick" or "full"."""
    if size == "small":
        return SMALL
    every = (*_resnet(), *_whisper(), *_kokoro(), *_others())
    return tuple(case for case in every if size == "full" or case.flops < QUICK)


def title(case: Case, layout: str) -> str:
    """The name of a case's row."""
    return f"{case.name}, channels {layout}"


def ends(images: Any) -> Any:
    """The first and the last of a batch: what error() looks at."""
    return images[:: max(images.shape[0] - 1, 1)]


def error(case: Case, x: Any, w: Any, result: Any) -> float:
    """The largest error of some places over the largest result, by float64. x, result: ends() as (b, C, ...), w:
    NumPy."""
    import numpy as np

    groups = case.setting("groups")
    x, w, result = (value.astype(np.float64) for value in (x, w, result))
    x = x.reshape(len(x), groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    w = w if not case.transposed else w.swapaxes(1, 2)  # groups, filters, channels, taps
    worst = largest = 0.0
    extents = case.out[2:]
    for flat in np.unique(np.linspace(0, prod(extents) - 1, CHECKED).astype(int)):
        place = tuple(int(i) for i in np.unravel_index(flat, extents))
        expected = np.zeros((len(x), groups, w.shape[1], 1))
        for tap, at in _seen(case, place):
            taken, seen = (..., *tap), (..., *at)
            expected += w[taken] @ x[seen][..., None]
        own = (..., *place)
        difference = result[own] - expected.reshape(len(x), -1)
        worst = max(worst, float(np.abs(difference).max()))
        largest = max(largest, float(np.abs(expected).max()))
    return worst / max(largest, 1e-300)


def _seen(case: Case, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(place in the kernel, place in the image) of all that a place of the result is made of."""
    from itertools import product

    stride, padding, dilation = (case.setting(name) for name in ("stride", "padding", "dilation"))
    along = []
    for out, extent, k in zip(place, case.x[2:], case.w[2:], strict=True):
        if case.transposed:
            reached = [(tap, divmod(out + padding - tap * dilation, stride)) for tap in range(k)]
            sources = [(tap, at) for tap, (at, rest) in reached if rest == 0]
        else:
            sources = [(tap, out * stride - padding + tap * dilation) for tap in range(k)]
        along.append([(tap, at) for tap, at in sources if 0 <= at < extent])
    for pairs in product(*along):
        yield tuple(tap for tap, _ in pairs), tuple(at for _, at in pairs)
