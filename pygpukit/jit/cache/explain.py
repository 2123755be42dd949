"""explain(): why a kernel was compiled, or where it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.jit.cache.store import folder

if TYPE_CHECKING:
    from pygpukit.jit.cache.image import Image
    from pygpukit.jit.launch.kernel import JITKernel


def explain(kernel: JITKernel | Image) -> str:
    """Why the kernel was compiled, or where it was found, and what its cache key is made of. Text of a few lines."""
    image: Image = kernel if not hasattr(kernel, "compiled") else kernel.compiled
    head = {
        "memory": "found in this process's cache",
        "disk": f"found in {folder()}",
        "compiled": "compiled: the cache had no entry with this key",
        "uncached": "compiled and not cached",
    }[image.origin]
    lines = [f"{head}; {image.reason}" if image.reason else head]
    lines += [f"  {label}: {part}" for label, part in image.parts.items()]
    if image.changed:
        lines.append(f"the unit of this name compiled before differs in: {', '.join(image.changed)}")
    return "\n".join(lines)
