"""Checks a built wheel: what must be inside, what must not, and its size.

    python tools/check_wheel.py FILE.whl [ARCHITECTURE ...] [--part K/N]

Pre-compiled kernels may be missing, where a wheel was built without NVRTC; if they are there, they must be
complete, for all architectures or for those that are named; with --part that part, as compile_kernels.py has it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from compile_kernels import ARCHITECTURES, part

LIMIT_BYTES = 9_000_000  # without the pre-compiled kernels; a third of it is notebooks with their pictures

REQUIRED = (
    r"pygpukit/__init__\.py",
    r"pygpukit/py\.typed",
    r"pygpukit/__init__\.pyi",
    r"pygpukit/ops/__init__\.pyi",
    r"pygpukit/_core\.pyi",
    r"pygpukit/_core\.[^/]+\.(so|pyd)",
    r"_pygpukit_rust/__init__\.py",
    r"pygpukit/compat/rust/scheduler\.py",
    r"pygpukit/kernels/include/[^/]+\.cuh",
    r"pygpukit/kernels/needed\.json",
    r"pygpukit/llm/passage\.txt",
    r"pygpukit/program/include/(cub|thrust)/[^/]+\.h",
    r"pygpukit/ops/.*[^/]+\.cu",
    r"pygpukit/jupyter/widgets/static/[^/]+\.js",
    r"[^/]+\.data/data/share/jupyter/labextensions/pygpukit/package\.json",
    r"[^/]+\.data/data/share/jupyter/labextensions/pygpukit/static/[^/]+\.js",
    r"[^/]+\.data/data/share/jupyter/labextensions/pygpukit/schemas/pygpukit/editor\.json",
    r"[^/]+\.data/data/share/jupyter/nbconvert/templates/pygpukit/index\.html\.j2",
    r"[^/]+\.data/data/share/pygpukit/notebooks/00_tour\.ipynb",
    r"[^/]+\.data/data/share/pygpukit/notebooks/data/valley\.npy",
    r"[^/]+\.dist-info/licenses/LICENSE",
    r"[^/]+\.dist-info/entry_points\.txt",
)
FORBIDDEN = (
    r"tests/.*",
    r".*\.(pyc|map|rs|cpp|whl|tsbuildinfo)",
    r"(?!pygpukit/program/include/).*\.h",  # but for those that programs include
    r".*node_modules/.*",
    r".*lib(cuda|nvrtc|cublas)[^/]*\.so.*",
    r".*/\.ipynb_checkpoints/.*",
    r"[^/]+\.data/data/etc/.*",  # a server's configuration
)
# A script may not fetch anything at run time; a namespace is a name, not a download.
ADDRESS = re.compile(rb"https?://[^\s\"'`\\)]+")
# Nothing is fetched from these: names of XML, and what marked's error text and notices of licences say.
NAMES = (
    b"http://www.w3.org/",
    b"https://github.com/markedjs/marked.",
    b"https://github.com/babel/babel/blob/main/packages/babel-helpers/LICENSE",
)


def problems(path: Path) -> list[str]:
    """Everything that is wrong with the wheel, one sentence each."""
    sentences = []
    with zipfile.ZipFile(path) as wheel:
        bundled = wheel.getinfo(BUNDLE).compress_size if BUNDLE in wheel.namelist() else 0
    size = path.stat().st_size - bundled
    if size > LIMIT_BYTES:
        sentences.append(f"{size} bytes without pre-compiled kernels; the limit is {LIMIT_BYTES}")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for pattern in REQUIRED:
            if not any(re.fullmatch(pattern, name) for name in names):
                sentences.append(f"nothing matches {pattern}")
        for pattern in FORBIDDEN:
            sentences += [f"{name} does not belong in it" for name in names if re.fullmatch(pattern, name)]
        for name in names:
            if name.endswith((".js", ".css")):
                for address in ADDRESS.findall(wheel.read(name)):
                    if not address.startswith(NAMES):
                        sentences.append(f"{name} names the address {address.decode(errors='replace')}")
    return sentences


BUNDLE = "pygpukit/kernels/kernels.bundle"


def bundle_problems(
    path: Path, architectures: Sequence[str] = ARCHITECTURES, of_units: slice | None = None
) -> list[str]:
    """The kernels of those units that the wheel lacks pre-compiled, one sentence each; none if it has no such file."""
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
        if BUNDLE not in wheel.namelist():
            return []
        from pygpukit.kernels import (
            bundle,  # a wheel without the file can be checked where the package is not installed
        )
        from pygpukit.kernels.registry import catalogue

        try:
            return [
                f"{BUNDLE} lacks {one}; run tools/compile_kernels.py --bundle before building"
                for one in bundle.missing(
                    Path(wheel.extract(BUNDLE, folder)), architectures, list(catalogue())[of_units or slice(None)]
                )
            ]
        except ValueError as damage:
            return [str(damage)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check a built wheel.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("architectures", nargs="*")
    parser.add_argument("--part", type=part, metavar="K/N", help="of the pre-compiled kernels")
    arguments = parser.parse_args(argv)
    path: Path = arguments.wheel
    sentences = problems(path) + bundle_problems(path, arguments.architectures or ARCHITECTURES, arguments.part)
    for problem in sentences:
        print(f"{path.name}: {problem}", file=sys.stderr)
    with zipfile.ZipFile(path) as wheel:
        kernels = wheel.getinfo(BUNDLE).file_size / 1e6 if BUNDLE in wheel.namelist() else 0
        print(
            f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(wheel.namelist())} files, "
            + (f"pre-compiled kernels {kernels:.2f} MB" if kernels else "no pre-compiled kernels")
        )
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
