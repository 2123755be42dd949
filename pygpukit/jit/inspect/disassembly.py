"""PTX and SASS of a kernel, as text and line by line with the source line that each comes from."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pygpukit.core.errors import GPUError
from pygpukit.core.extras import install_command
from pygpukit.jit import toolchain
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile.compiler import compile_source

if TYPE_CHECKING:
    from pygpukit.jit.launch.kernel import JITKernel

_LINE_INFO = "-lineinfo"
_SASS_PLACE = re.compile(r'\s*//## File "(?P<file>.*)", line (?P<line>\d+)')
_PTX_FILE = re.compile(r'\s*\.file\s+(?P<number>\d+)\s+"(?P<file>[^"]*)"')
_PTX_PLACE = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+\d+(?:.*\binlined_at\s+(?P<at_file>\d+)\s+(?P<at_line>\d+))?"
)
_PADDING = re.compile(r"\s*(?:/\*\w+\*/\s*NOP\s*;|\.L_x_\d+:|)\s*")


class Line(NamedTuple):
    """One line of PTX or SASS. line: of the unit's source, counted from 1; 0 where none is known."""

    line: int
    text: str


def sass(kernel: JITKernel) -> str:
    """The kernel's machine code, by nvdisasm. Raises GPUError that says what to install, or why it cannot be had."""
    image = kernel.unit.image
    return "\n".join(one.text for one in _sass(image, kernel.unit.symbol(kernel.signature), kernel.unit.name))


def sass_lines(kernel: JITKernel, arch: str | None = None) -> list[Line]:
    """The kernel's machine code with source lines: compiled again with line information, which changes no instruction.

    arch: compile for this architecture ("sm_90a"); a kernel of the simulated device needs one. The image comes from the
    cache where it is there. Raises GPUError (no nvdisasm: what to install) and as compile_source().
    """
    image = _with_lines(kernel, arch)
    return _sass(image, image.symbol(kernel.signature.expression or kernel.signature.name), kernel.unit.name)


def ptx_lines(kernel: JITKernel, arch: str | None = None) -> list[Line]:
    """The kernel's PTX with source lines; of a function that was inlined from a header, the line that calls it.

    arch and errors as for sass_lines(); needs no nvdisasm.
    """
    image = _with_lines(kernel, arch)
    lines = image.ptx.splitlines()
    files = {one["number"]: one["file"] for one in map(_PTX_FILE.match, lines) if one}
    ours = {number for number, file in files.items() if _is_unit(file, kernel.unit.name)}
    out: list[Line] = []
    line = 0
    for text in _entry(lines, image.symbol(kernel.signature.expression or kernel.signature.name)):
        if place := _PTX_PLACE.match(text):
            places = ((place["file"], place["line"]), (place["at_file"], place["at_line"]))
            line = next((int(number) for file, number in places if file in ours), 0)
        elif text.strip():
            out.append(Line(line, text))
    return out


def _with_lines(kernel: JITKernel, arch: str | None) -> Image:
    arguments = kernel.unit.arguments()
    if arch is None and kernel.unit.image.kind == "sim":
        raise GPUError(f"{kernel.name} is compiled for the simulated device; give an architecture, such as 'sm_90a'")
    if _LINE_INFO not in arguments["options"]:
        arguments["options"] = [*arguments["options"], _LINE_INFO]
    return compile_source(kernel.source, **{**arguments, "arch": arch or kernel.unit.image.arch})


def _sass(image: Image, symbol: str, unit: str) -> list[Line]:
    """The lines of one kernel's section, without the padding behind its last instruction."""
    title = f".text.{symbol}:"
    lines = disassembled(image)
    if title not in lines:
        raise GPUError(f"nvdisasm shows no code of {symbol} in the image for {image.arch}")
    start = lines.index(title) + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("//---")), len(lines))
    while end > start and _PADDING.fullmatch(lines[end - 1]):
        end -= 1
    return list(_placed(lines[start:end], unit))


def _placed(lines: Iterable[str], unit: str) -> Iterable[Line]:
    line = 0
    for text in lines:
        if place := _SASS_PLACE.match(text):
            line = int(place["line"]) if _is_unit(place["file"], unit) else 0
        elif text.strip():
            yield Line(line, text)


def disassembled(image: Image) -> list[str]:
    """All machine code of an image, by nvdisasm. Raises GPUError as sass()."""
    program = toolchain.nvdisasm()
    if program is None:
        raise GPUError(f"showing SASS needs the program nvdisasm; install it with: {install_command('inspect')}")
    if not image.image:
        raise GPUError(f"an image for {image.arch} has PTX only; SASS needs a real architecture, such as sm_90a")
    with tempfile.TemporaryDirectory(prefix="pygpukit-sass-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(image.image)
        command = [str(program), "--print-code", "--print-line-info", str(file)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=toolchain.environment(program),
        )
    if done.returncode != 0:
        words = "\n".join(said.strip() for said in (done.stderr, done.stdout) if said.strip())
        raise GPUError(f"{program} failed: {words or f'exit code {done.returncode}'}")
    return done.stdout.splitlines()


def _entry(lines: Sequence[str], symbol: str) -> Sequence[str]:
    """The lines of one kernel, from its .entry to the closing brace."""
    head = re.compile(rf"\.(?:visible|weak|extern)?.*\.entry {re.escape(symbol)}\(")
    start = next((at for at, text in enumerate(lines) if head.search(text)), len(lines))
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("}")), len(lines) - 1)
    return lines[start : end + 1]


def _is_unit(file: str, unit: str) -> bool:
    """NVRTC puts the current folder before the unit's name."""
    return file == unit or file.endswith("/" + unit)
