"""Cases: kernels that read textures and write surfaces."""

from __future__ import annotations

import numpy as np

from corpus.case import ROUNDING, Array, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator
FILTER = "a filter's fractions have 8 bits, which devices round in their own ways; the reference has them exact"
HEIGHT, WIDTH = 19, 27
SIZE = 32


def _size(**more: object) -> Values:
    return {"width": WIDTH, "height": HEIGHT, **more}


def _between(values: Array, axis: int, at: Array) -> Array:
    """Values at places between elements along an axis, the outermost ones beyond them."""
    low = np.floor(at).astype(int)
    part = (at - low).reshape([-1 if one == axis else 1 for one in range(values.ndim)])
    most = values.shape[axis] - 1
    first, second = (values.take(np.clip(low + step, 0, most), axis).astype(float) for step in (0, 1))
    return first * (1 - part) + second * part


def _zoom_reference(image, width, height, scale, **_):
    rows = _between(image, 0, (np.arange(height) + 0.5) / scale - 0.5)
    return {"out": _between(rows, 1, (np.arange(width) + 0.5) / scale - 0.5)}


def _resample_reference(volume, width, height, depth, **_):
    out = _between(_between(volume, 0, np.arange(depth) / 2), 1, np.arange(height) / 2)
    return {"out": _between(out, 2, np.arange(width) / 2)}


LINEAR = {"filter": "linear"}
CASES += [
    Case(
        "tex_zoom", (7, 5), (8, 8),
        lambda rng: {"image": floats(rng, 11, 15), "out": blank((38, 52), "float32"), "width": 52, "height": 38,
                     "scale": 3.5},
        _zoom_reference, textures={"image": LINEAR}, exact=False, tolerance=1 / 128, reason=FILTER,
    ),
    Case(
        "tex_curve", 4, 64,
        lambda rng: {"table": floats(rng, 33), "x": rng.uniform(-0.2, 1.2, 200).astype(np.float32),
                     "out": blank(200, "float32"), "points": 33, "n": 200},
        lambda table, x, **_: {"out": np.interp(x.astype(float) * 32, np.arange(33), table)},
        textures={"table": LINEAR}, exact=False, tolerance=1 / 128, reason=FILTER,
    ),
    Case(
        "tex_resample", (1, 9, 7), 16,
        lambda rng: {"volume": floats(rng, 4, 5, 6), "out": blank((7, 9, 11), "float32"), "width": 11, "height": 9,
                     "depth": 7},
        _resample_reference, textures={"volume": LINEAR}, exact=False, tolerance=1 / 128, reason=FILTER,
    ),
    Case(
        "tex_rotate", (3, 4), (8, 8),
        lambda rng: {"image": integers(rng, -9999, 9999, HEIGHT, WIDTH), "out": blank((WIDTH, HEIGHT), "int32"),
                     **_size()},
        lambda image, **_: {"out": np.rot90(image)}, textures={"image": {}},
    ),
    Case(
        "tex_torus", (4, 4), (9, 9),
        lambda rng: {"image": integers(rng, 0, 65536, SIZE, SIZE, dtype="uint16"),
                     "out": blank((SIZE, SIZE), "uint16"), "size": SIZE, "dx": int(rng.integers(-70, 70)), "dy": 41},
        lambda image, dx, dy, **_: {"out": np.roll(image, (-dy, -dx), (0, 1))},
        textures={"image": {"address": "wrap", "normalized": True}},
    ),
    Case(
        "tex_box", (4, 3), (8, 8),
        lambda rng: {"image": integers(rng, 0, 256, HEIGHT, WIDTH, dtype="uint8"),
                     "out": blank((HEIGHT, WIDTH), "int32"), **_size()},
        lambda image, **_: {"out": sum(
            np.pad(image.astype(int), 1)[dy : dy + HEIGHT, dx : dx + WIDTH] for dy in range(3) for dx in range(3)
        )},
        textures={"image": {"address": "border"}},
    ),
    Case(
        "tex_slices", (4, 3), (8, 8),
        lambda rng: {"volume": floats(rng, 6, HEIGHT, WIDTH), "out": blank((HEIGHT, WIDTH), "float32"),
                     **_size(depth=6)},
        lambda volume, **_: {"out": volume.max(0)}, textures={"volume": {}},
    ),
    Case(
        "tex_layers", (2, HEIGHT), 16,
        lambda rng: {"stack": integers(rng, -99, 99, 5, HEIGHT, WIDTH), "weights": integers(rng, -9, 9, 5),
                     "out": blank((HEIGHT, WIDTH), "int32"), **_size(layers=5)},
        lambda stack, weights, **_: {"out": np.tensordot(weights, stack, 1)}, textures={"stack": {"layered": True}},
    ),
    Case(
        "tex_pool", (2, 2), (8, 8),
        lambda rng: {"image": floats(rng, 22, 26), "out": blank((11, 13), "float32"), "width": 13, "height": 11},
        lambda image, **_: {"out": image.reshape(11, 2, 13, 2).max((1, 3))}, textures={"image": {}},
    ),
    Case(
        "tex_grey", (4, 3), (8, 8),
        lambda rng: {"image": integers(rng, 0, 256, HEIGHT, WIDTH, 4, dtype="uint8"),
                     "out": blank((HEIGHT, WIDTH), "float32"), **_size()},
        lambda image, **_: {"out": image[..., :3] @ np.array([0.25, 0.5, 0.25]) / 255},
        textures={"image": {"channels": 4, "read": "normalized"}}, exact=False, tolerance=1e-6, reason=ROUNDING,
    ),
    Case(
        "tex_pitched", (4, 3), (8, 8),
        lambda rng: {"matrix": floats(rng, HEIGHT, WIDTH), "out": blank((WIDTH, HEIGHT), "float32"), **_size()},
        lambda matrix, **_: {"out": matrix.T}, textures={"matrix": {"layout": "pitched"}},
    ),
]  # fmt: skip


def _edges_reference(image, **_):
    padded = np.pad(image.astype(int), 1, "symmetric")
    across = padded[:, 2:] - padded[:, :-2]
    return {"out": across[:-2] + 2 * across[1:-1] + across[2:]}


def _sparse(rng: Rng) -> Values:
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 50))]).astype(np.int32)
    count = int(starts[-1])
    return {
        "starts": starts, "columns": integers(rng, 0, 70, max(count, 1)), "values": integers(rng, -9, 9, max(count, 1)),
        "vector": integers(rng, -99, 99, 70), "out": blank(50, "int32"), "rows": 50,
    }  # fmt: skip


def _sparse_reference(starts, columns, values, vector, **_):
    products = np.concatenate([[0], np.cumsum(values * vector[columns])])
    return {"out": products[starts[1:]] - products[starts[:-1]]}


def _sky(rng: Rng) -> Values:
    # The middles of elements, of faces of 8 by 8 elements.
    face, column, row = integers(rng, 0, 6, 90), integers(rng, 0, 8, 90), integers(rng, 0, 8, 90)
    s, t, one = (2 * column - 7) / 8, (2 * row - 7) / 8, np.ones(90)
    corners = [(one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one)]
    directions = np.array([np.stack(corner, 1) for corner in corners])[face, np.arange(90)]
    return {"sky": floats(rng, 6, 8, 8), "directions": directions.astype(np.float32), "out": blank(90, "float32"),
            "n": 90}  # fmt: skip


def _sky_reference(sky, directions, **_):
    axis = np.abs(directions).argmax(1)
    negative = directions[np.arange(90), axis] < 0
    x, y, z = directions.T
    s = np.choose(2 * axis + negative, [-z, z, x, x, x, -x])
    t = np.choose(2 * axis + negative, [-y, -y, z, -z, -y, -y])
    return {"out": sky[2 * axis + negative, (4 * t + 4).astype(int), (4 * s + 4).astype(int)]}


def _levels_reference(image, out, size, **_):
    out = out.copy()
    for level in range(6):
        out[level, : image.size] = image.ravel()
        image = (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]) / 4 if level < 5 else image
    return {"out": out}


CASES += [
    Case(
        "tex_edges", (4, 4), (9, 9),
        lambda rng: {"image": integers(rng, -999, 999, SIZE, SIZE, dtype="int16"), "out": blank((SIZE, SIZE), "int32"),
                     "size": SIZE},
        _edges_reference, textures={"image": {"address": "mirror", "normalized": True}},
    ),
    Case("tex_sparse", 2, 32, _sparse, _sparse_reference, textures={"vector": {"layout": "linear"}}),
    Case("tex_sky", 3, 32, _sky, _sky_reference, textures={"sky": {"cubemap": True}}),
    Case(
        "tex_levels", 6, 64,
        lambda rng: {"image": floats(rng, SIZE, SIZE), "out": np.zeros((6, SIZE * SIZE), "float32"), "size": SIZE},
        _levels_reference, textures={"image": {"mipmaps": "mean", "normalized": True}}, exact=False, tolerance=1e-6,
        reason=ROUNDING,
    ),
]  # fmt: skip


def _life_reference(now, **_):
    padded = np.pad(now.astype(int), 1)
    around = sum(padded[dy : dy + HEIGHT, dx : dx + WIDTH] for dy in range(3) for dx in range(3))
    return {"next": (around == 3) | ((now == 1) & (around == 4))}


def _volume_reference(volume, **_):
    return {"out": np.concatenate([volume[1:], volume[-1:]]) - volume}


CASES += [
    Case(
        "surf_transpose", (4, 3), (8, 8),
        lambda rng: {"from": integers(rng, -9999, 9999, HEIGHT, WIDTH), "to": blank((WIDTH, HEIGHT), "int32"),
                     **_size()},
        lambda **values: {"to": values["from"].T}, surfaces={"from": {}, "to": {}},
    ),
    Case(
        "surf_life", (4, 3), (8, 8),
        lambda rng: {"now": integers(rng, 0, 2, HEIGHT, WIDTH, dtype="uint8"), "next": blank((HEIGHT, WIDTH), "uint8"),
                     **_size()},
        _life_reference, surfaces={"now": {}, "next": {}},
    ),
    Case(
        "surf_volume", (2, HEIGHT, 5), 16,
        lambda rng: {"volume": integers(rng, -999, 999, 5, HEIGHT, WIDTH, dtype="int16"),
                     "out": blank((5, HEIGHT, WIDTH), "int16"), **_size(depth=5)},
        _volume_reference, surfaces={"volume": {}},
    ),
    Case(
        "surf_layers", (2, HEIGHT, 3), 16,
        lambda rng: {"from": floats(rng, 3, HEIGHT, WIDTH, 2), "to": blank((3, HEIGHT, WIDTH, 2), "float32"),
                     "width": WIDTH, "layers": 3},
        lambda **values: {"to": np.roll(values["from"], 1, 0)[..., ::-1]},
        surfaces={"from": {"layered": True, "channels": 2}, "to": {"layered": True, "channels": 2}},
    ),
]  # fmt: skip


def _medians(image: Array, **_: object) -> dict[str, Array]:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1, "edge"), (3, 3))
    return {"out": np.median(windows, axis=(2, 3))}


CASES += [
    Case(
        "tex_median", (4, 3), (8, 8),
        lambda rng: {"image": integers(rng, 0, 256, HEIGHT, WIDTH, dtype="uint8"),
                     "out": blank((HEIGHT, WIDTH), "uint8"), **_size()},
        _medians, textures={"image": {"address": "clamp"}},
    ),
    Case(
        "surf_row_sums", 3, 8,
        lambda rng: {"image": integers(rng, -999, 999, HEIGHT, WIDTH), **_size()},
        lambda image, **_: {"image": image.cumsum(1)}, surfaces={"image": {}},
    ),
]  # fmt: skip
