"""Images in the cache of units that read files: by the manifests under the unit's key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pygpukit import _core
from pygpukit.jit.cache import manifest
from pygpukit.jit.cache.image import Image
from pygpukit.jit.cache.lookup import find, store
from pygpukit.jit.cache.store import keep, kernel_cache

_MAGIC = b"pygpukit manifest 1\n"
_VARIANTS = 16  # states of the headers whose images are kept


def find_by_files(key: bytes, parts: dict[str, str], folders: Mapping[str, Path], stored: bool = False) -> Image | None:
    """The image of a unit whose files are as one of its manifests says."""
    for variant in _variants(key, stored):
        if not _moved(variant, folders) and not any(manifest.differences(variant["files"], folders)):
            match = find(bytes.fromhex(variant["key"]), parts, stored)
            if match is not None:
                return replace(match, parts=parts | {"files": _summary(variant["files"])})
    return None


def reason_by_files(key: bytes, folders: Mapping[str, Path]) -> str:
    """Why no manifest under the key holds, told of the one that comes nearest; "" where there is none."""
    reasons: list[list[str]] = [
        _moved(one, folders) or [*manifest.differences(one["files"], folders)] for one in _variants(key, False)
    ]
    if not reasons:
        return ""
    nearest = min(reasons, key=lambda one: len(one))
    return ", ".join(nearest) or "its entry was evicted, expired or damaged"


def store_by_files(key: bytes, image: Image, files: manifest.Files, folders: Mapping[str, Path]) -> Image:
    """Keep the image of a unit that has read files, and the manifest of these. Under the key's lock."""
    fixed = manifest.names_its_place(files, folders)
    places = {name: str(folder.resolve()) for name, folder in folders.items()} if fixed else {}
    image_key = _core.KernelCache.digest([b"files", key, json.dumps([files, places], sort_keys=True).encode()])
    variant = {"key": image_key.hex(), "files": files, "folders": places}
    others = [one for one in _variants(key, stored=True) if one["key"] != variant["key"]]
    keep(_manifest_key(key), _MAGIC + json.dumps([variant, *others][:_VARIANTS]).encode())
    return replace(store(image_key, image), parts=image.parts | {"files": _summary(files)})


def _variants(key: bytes, stored: bool) -> list[dict[str, Any]]:
    """Latest first."""
    entry = kernel_cache().get(_manifest_key(key), stored)
    if entry is None or not entry[0].startswith(_MAGIC):
        return []
    return list(json.loads(entry[0][len(_MAGIC) :]))


def _manifest_key(key: bytes) -> bytes:
    return _core.KernelCache.digest([b"manifest", key])


def _moved(variant: Mapping[str, Any], folders: Mapping[str, Path]) -> list[str]:
    """A header that may put its path into the image holds in its own folder only."""
    moved = any(str(folders[name].resolve()) != place for name, place in variant["folders"].items())
    return ["the headers lie in another folder, and one of them uses __FILE__ or assert()"] if moved else []


def _summary(files: manifest.Files) -> str:
    read = [state for state in files.values() if state not in (manifest.ABSENT, manifest.PRESENT)]
    digest = _core.KernelCache.digest([json.dumps(files, sort_keys=True).encode()])[:8].hex()
    return f"{len(read)} read, {len(files) - len(read)} looked for, {digest}"
