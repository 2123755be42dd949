"""The Hugging Face cache and hub, through `huggingface_hub` where it is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from pygpukit.core.errors import ModelFileError, ModelNotFoundError
from pygpukit.core.extras import install_command
from pygpukit.core.progress import Progress
from pygpukit.models.catalogue import Entry, File, Hub

_PATIENCE_S = 5


def fetch(entry: Entry, progress: bool) -> Path:
    """The folder of the hub's cache with a model's files, fetched where they are not there yet.

    Raises ModelNotFoundError where the library is missing, the hub does not answer or has other files.
    """
    if entry.hub is None:
        raise ModelNotFoundError("the hub is not known to have these files")
    if find_spec("huggingface_hub") is None:
        raise ModelNotFoundError(f"huggingface_hub is not installed: {install_command('models')}")
    with Progress(f"checking {entry.name}", entry.bytes, progress) as bar:
        paths = [_cached(entry.hub, file, bar) for file in entry.files]
    for place, file in enumerate(entry.files):
        if paths[place] is None:
            paths[place] = _download(entry.hub, file)
    folders = {
        path.parents[file.name.count("/")] for path, file in zip(paths, entry.files, strict=True) if path is not None
    }
    if len(folders) != 1:
        raise ModelNotFoundError(
            f"its cache has the files at several revisions: {', '.join(map(str, sorted(folders)))}"
        )
    return folders.pop()


def _cached(hub: Hub, file: File, bar: Progress) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    from pygpukit.models.fetch import check

    path = try_to_load_from_cache(hub.repository, file.name, revision=hub.revision)
    if not isinstance(path, str) or not Path(path).is_file():
        return None
    try:
        check(Path(path), file, bar)
    except ModelFileError as error:
        raise ModelNotFoundError(f"its cache has another file: {error}") from None
    return Path(path)


def _download(hub: Hub, file: File) -> Path:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url

    from pygpukit.models.fetch import check

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        raise ModelNotFoundError(f"{file.name} is not in its cache, and HF_HUB_OFFLINE is set")
    try:
        metadata = get_hf_file_metadata(
            hf_hub_url(hub.repository, file.name, revision=hub.revision), timeout=_PATIENCE_S
        )
        if metadata.size not in (None, file.bytes):
            raise ModelNotFoundError(f"{hub.repository} has another {file.name}, of {metadata.size} bytes")
        path = Path(hf_hub_download(hub.repository, file.name, revision=hub.revision, etag_timeout=_PATIENCE_S))
    except ModelNotFoundError:
        raise
    except Exception as error:  # of whatever the library uses for HTTP, which has changed over its versions
        first = str(error).partition("\n")[0]
        raise ModelNotFoundError(f"{hub.repository} could not be reached ({type(error).__name__}: {first})") from None
    try:
        check(path, file)
    except ModelFileError as error:
        raise ModelNotFoundError(f"{hub.repository} has another file: {error}") from None
    return path
