"""Films the workbench in a browser: `python tools/make_recording.py [--out FILE.gif]` makes docs/images/workbench.gif

Films the browser test extension/ui-tests/lab/recording.spec.ts (`npm ci` in extension/ first; JupyterLab and the lab
extension beside the Python that runs this, or beside PYGPUKIT_PYTHON) and puts its frames together with Pillow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / "docs/images/workbench.gif"
FRAME_MS = 250
LAST_MS = 3000  # to be read before it begins again
COLOURS = 192
MAX_BYTES = 2 << 20


def film(folder: Path) -> list[Path]:
    """The frames, in order."""
    environment = {**os.environ, "PYGPUKIT_FRAMES": str(folder)}
    environment.setdefault("PYGPUKIT_PYTHON", sys.executable)
    command = ["npx", "playwright", "test", "--config", "ui-tests/playwright.config.ts", "lab/recording.spec.ts"]
    subprocess.run(command, cwd=ROOT / "extension", env=environment, check=True)
    return sorted(folder.glob("*.png"))


def assemble(frames: list[Path], out: Path) -> int:
    """One GIF with one palette, so that what did not change costs nothing; frames that are equal become one."""
    pictures = [Image.open(path).convert("RGB") for path in frames]
    sample = Image.new("RGB", (pictures[0].width, 3 * pictures[0].height))
    for place, picture in enumerate((pictures[0], pictures[len(pictures) // 2], pictures[-1])):
        sample.paste(picture, (0, place * picture.height))
    palette = sample.quantize(COLOURS, dither=Image.Dither.NONE)
    kept: list[Image.Image] = []
    durations: list[int] = []
    for picture in (one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures):
        if kept and picture.tobytes() == kept[-1].tobytes():
            durations[-1] += FRAME_MS
        else:
            kept.append(picture)
            durations.append(FRAME_MS)
    durations[-1] = LAST_MS
    kept[0].save(out, save_all=True, append_images=kept[1:], duration=durations, loop=0, optimize=True, disposal=1)
    return out.stat().st_size


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT)
    parser.add_argument("--frames", type=Path, help="keep the frames in this folder, or use those that it has")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.frames or Path(temporary)
        frames = sorted(folder.glob("*.png")) or film(folder)
        size = assemble(frames, options.out.resolve())
    print(f"{options.out}: {len(frames)} frames, {size} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"{size} bytes are more than {MAX_BYTES}: film less, or with fewer colours")


if __name__ == "__main__":
    main(sys.argv[1:])
