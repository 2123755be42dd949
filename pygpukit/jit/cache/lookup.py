"""Images in the cache: a plain unit's, under its key. Those of units that read files: lookup_files.py."""

from __future__ import annotations

from dataclasses import replace

from pygpukit.jit.cache.image import Image, from_bytes
from pygpukit.jit.cache.store import keep, kernel_cache


def find(key: bytes, parts: dict[str, str], stored: bool = False) -> Image | None:
    """The image of a plain unit. `stored`: look past this process's memory."""
    entry = kernel_cache().get(key, stored)
    if entry is None:
        return None
    payload, origin = entry
    try:
        return from_bytes(payload, key, origin, parts)
    except (ValueError, KeyError):  # written by something else: a miss
        kernel_cache().remove(key)
        return None


def store(key: bytes, image: Image) -> Image:
    """Keep a plain unit's image; the image as it is found from now on."""
    image = replace(image, key=key)
    keep(key, image.to_bytes())
    return image
