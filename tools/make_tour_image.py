"""Draws the tour's picture, notebooks/data/valley.npy: a night valley, 384 x 512 grey levels, the same on every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

HEIGHT, WIDTH, HORIZON = 384, 512, 268
TARGET = Path(__file__).resolve().parent.parent / "notebooks" / "data" / "valley.npy"

Picture = np.ndarray


def ridge(rng: np.random.Generator, roughness: float) -> Picture:
    """A mountain line from -1 to 1 over the width: octaves of interpolated random heights."""
    x = np.linspace(0, 1, WIDTH)
    line = np.zeros(WIDTH)
    for octave in range(7):
        points = 2 ** (octave + 1) + 1
        line += roughness**octave * np.interp(x, np.linspace(0, 1, points), rng.uniform(-1, 1, points))
    return line / np.abs(line).max()


def draw() -> Picture:
    """The picture as floats from 0 to 1."""
    rng = np.random.default_rng(1969)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    picture = 0.06 + 0.32 * (y / HORIZON) ** 1.7  # the sky brightens towards the horizon

    for _ in range(260):  # stars, most of them faint
        row, column = rng.integers(0, HORIZON), rng.integers(0, WIDTH)
        picture[row, column] += 0.75 * rng.random() ** 3

    moon_x, moon_y, radius = 372.0, 78.0, 40.0
    distance = np.hypot(x - moon_x, y - moon_y)
    picture += 0.22 * np.exp(-np.maximum(distance - radius, 0) / 38)  # its halo
    disc = np.clip(radius - distance + 0.5, 0, 1)
    face = 0.93 - 0.12 * (distance / radius) ** 2
    for _ in range(26):
        angle, reach, size = rng.uniform(0, 2 * np.pi), 34 * rng.random() ** 0.5, rng.uniform(2, 9)
        crater = np.hypot(x - moon_x - reach * np.cos(angle), y - moon_y - reach * np.sin(angle))
        face += -0.10 * np.exp(-((crater / size) ** 2)) + 0.07 * np.exp(-(((crater - size) / 1.6) ** 2))
    picture = picture * (1 - disc) + face * disc

    for depth, (base, height, shade) in enumerate([(214, 46, 0.30), (238, 38, 0.21), (260, 26, 0.12)]):
        top = base - height * ridge(rng, 0.52 + 0.05 * depth)
        inside = np.clip(y - top + 0.5, 0, 1)
        snow = np.clip(1 - (y - top) / (height * 0.55), 0, 1) * (0.42 - 0.15 * depth)
        grain = 0.05 * (rng.random((HEIGHT, WIDTH)) - 0.5)
        picture = picture * (1 - inside) + (shade + snow + grain) * inside

    below = np.arange(HORIZON, HEIGHT)
    for row in below:  # the lake mirrors what is above it, shaken by ripples that widen towards us
        depth = row - HORIZON
        source = max(HORIZON - 1 - int(depth * 1.9), 0)
        shift = np.sin(x[row] / 9 + row * 0.9) * depth * 0.05 + np.sin(row * 2.3) * depth * 0.03
        columns = np.clip(x[row] + shift, 0, WIDTH - 1).astype(int)
        gleam = 0.05 * np.sin(row * 1.7 + np.sin(x[row] / 23) * 2)
        picture[row] = 0.72 * picture[source, columns] + 0.03 + gleam * (0.3 + depth / len(below))
    return np.clip(picture, 0, 1)


def main() -> None:
    levels = np.round(draw() * 255).astype(np.uint8)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.save(TARGET, levels)
    print(
        f"{TARGET.name}: {levels.shape[1]} x {levels.shape[0]}, mean {levels.mean():.2f}, {TARGET.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
