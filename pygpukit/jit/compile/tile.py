"""CUDA Tile C++: kernels written on whole tiles of arrays; NVRTC makes Tile IR of them and tileiras an image.

A tile kernel (`__tile_global__`) says what happens to whole tiles; the compiler chooses threads, tensor cores and bulk
copies. It is launched by its grid alone. Needs NVRTC 13.3 and NVIDIA's tileiras, which the extra `tile` brings.
"""

from __future__ import annotations

from pathlib import Path

from pygpukit.core.errors import CompileError, Diagnostic, NvrtcError, NvrtcErrorCode
from pygpukit.core.extras import install_command
from pygpukit.jit import toolchain
from pygpukit.jit.compile import nvrtc

STANDARD = "--std=c++20"
FLAG = "--enable-tile"
_TIME_LIMIT_S = 300.0


def missing() -> str:
    """Why tile kernels cannot be compiled here, and what to install; "" where they can."""
    if why := nvrtc.missing():
        return why
    used = toolchain.taken()
    if used is not None and used.tileiras is not None:
        return ""
    why = "there is no set of NVRTC and its assembler tileiras" if used is None else used.lacks.get("tileiras", "")
    return f"tile kernels cannot be compiled here, {why}; install what they need with: {install_command('cuda')}"


def require() -> Path:
    """The path of tileiras. Raises NvrtcError that says what to install."""
    assembler = toolchain.tileiras()
    if assembler is None or missing():
        raise NvrtcError(missing(), NvrtcErrorCode.NotLoaded)
    return assembler


def identity() -> bytes:
    """The words that tell one assembler from another in a cache key; "" where there is none."""
    assembler = toolchain.tileiras()
    return b"" if assembler is None else f" tileiras {assembler.stat().st_size}".encode()


def assemble(tile_ir: bytes, arch: str, name: str) -> tuple[bytes, str]:
    """(image, remarks) of a unit's Tile IR for `arch` ("sm_90a"). Raises CompileError with the assembler's words."""
    import subprocess  # and what else only a compile needs
    import tempfile

    program = require()
    with tempfile.TemporaryDirectory(prefix="pygpukit-tile-") as folder:
        source, target = Path(folder, "unit.tileir"), Path(folder, "unit.cubin")
        source.write_bytes(tile_ir)
        # The assembler has no names for the variants of an architecture: it uses what the plain one has of them.
        command = [str(program), f"--gpu-name={arch.rstrip('af')}", "--remarks=all", "-o", str(target), str(source)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIME_LIMIT_S,
                env=toolchain.environment(program),
            )
        except subprocess.TimeoutExpired:
            raise _failed(name, arch, program, f"it had not ended after {_TIME_LIMIT_S:.0f} s") from None
        except OSError as error:
            raise _failed(name, arch, program, str(error)) from None
        if done.returncode or not target.is_file():
            words = [said.strip() for said in (done.stderr, done.stdout) if said.strip()]
            raise _failed(name, arch, program, "\n".join((*words, f"exit code {done.returncode}")))
        return target.read_bytes(), done.stdout + done.stderr


def _failed(name: str, arch: str, program: Path, words: str) -> CompileError:
    message = f"tileiras could not assemble the kernel for {arch}: {words} ({program})"
    return CompileError(f"{name}: {message}", words, [Diagnostic(0, 0, "error", message, name)])
