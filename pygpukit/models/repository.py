"""A model of the Hugging Face hub by its owner and name: the files that are read, into the hub's own cache."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ModelNotFoundError
from pygpukit.core.extras import install_command
from pygpukit.core.text import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"(?P<repository>[a-zA-Z0-9][\w.-]{0,95}/[\w.-]{1,96})(?::(?P<file>[\w./-]{1,200}))?", re.ASCII)
_PATIENCE_S = 10
_TABLES = (".json", ".jinja", ".txt")  # configuration, tokenizer, chat template
_MODULE = re.compile(r"\d{1,2}_\w{1,32}/config\.json", re.ASCII)  # of sentence-transformers
_TEMPLATE = re.compile(r"additional_chat_templates/\w{1,32}\.jinja", re.ASCII)
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_PICKLES = (".bin", ".pt", ".pth")


def is_name(name: str) -> bool:
    """True for "owner/name", or "owner/name:file" of a repository with several GGUF files."""
    match = _NAME.fullmatch(name)
    return match is not None and ".." not in name


def fetch(name: str, revision: str | None = None, progress: bool = True) -> Path:
    """The folder, or the file, of a model of the hub, downloaded where the hub's cache does not have it.

    name: "Qwen/Qwen2.5-0.5B-Instruct"; "owner/name:Q4_K_M" takes the one GGUF file of that name. revision: a branch, a
    tag or a commit; the main branch by default. The library's own settings count: HF_HOME, HF_TOKEN, HF_ENDPOINT,
    HF_HUB_OFFLINE. Bytes are told before they are downloaded. Raises ModelNotFoundError, which says what to do.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ModelNotFoundError(f"{name!r} is no owner/name of the Hugging Face hub")
    repository, part = match["repository"], match["file"]
    if find_spec("huggingface_hub") is None:
        raise ModelNotFoundError(f"{repository} is on the Hugging Face hub: {install_command('models')}")
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return _cached(repository, revision, part, "HF_HUB_OFFLINE is set, so the hub is not asked")
    try:
        sizes = _sizes(repository, revision)
    except ModelNotFoundError as error:
        return _cached(repository, revision, part, str(error))
    files = choose(sizes, part, repository)
    return _downloaded(repository, revision, files, progress)


def choose(sizes: Mapping[str, int], part: str | None, repository: str) -> dict[str, int]:
    """The files of a repository that make a model that is read, with their bytes.

    part: a part of the name of a GGUF file. Raises ModelNotFoundError where there is no such model, or more than one.
    """
    top = {name: size for name, size in sizes.items() if "/" not in name}
    gguf = sorted(name for name in sizes if name.endswith(".gguf"))
    if part is None:
        weights = [name for name in top if name.endswith(".safetensors")]
        if any(not name.startswith("consolidated") for name in weights):  # Mistral has its weights twice
            weights = [name for name in weights if not name.startswith("consolidated")]
        if not weights and "model.bin" in top and any(name.startswith("vocabulary.") for name in top):
            weights = ["model.bin"]  # of CTranslate2, and no pickle
        if weights:
            names = {*weights, *(name for name in top if name.endswith(_TABLES))}
            modules = [name for name in sizes if "modules.json" in top and _MODULE.fullmatch(name)]
            templates = [name for name in sizes if _TEMPLATE.fullmatch(name)]
            return {name: sizes[name] for name in [*(name for name in top if name in names), *modules, *templates]}
    matching = [name for name in gguf if part is None or part.lower() in name.lower()]
    kinds = {_PART.sub("", name) for name in matching}
    if len(kinds) == 1:
        return {name: sizes[name] for name in matching}
    if gguf:
        listed = ", ".join(dict.fromkeys(Path(_PART.sub("", name)).stem for name in matching or gguf))
        what = "several GGUF files" if part is None else f"{len(kinds) or 'no'} GGUF files with {part!r} in the name"
        raise ModelNotFoundError(f"{repository} has {what}; give {repository}:FILE, one of {listed}")
    pickled = next((name for name in top if name.endswith(_PICKLES)), None)
    has = f"its weights are a pickle ({pickled}), which can run any code" if pickled else "it has no weights"
    raise ModelNotFoundError(f"{repository}: {has}; .safetensors and .gguf files are read")


def _sizes(repository: str, revision: str | None) -> dict[str, int]:
    from huggingface_hub import HfApi, utils

    try:
        info = HfApi().model_info(repository, revision=revision, files_metadata=True, timeout=_PATIENCE_S)
        return {entry.rfilename: entry.size or 0 for entry in info.siblings or ()}
    except utils.GatedRepoError:
        reason = f"asks who reads it: accept its terms at {_address(repository)}, and set HF_TOKEN"
    except utils.RevisionNotFoundError:
        reason = f"has no revision {revision!r}"
    except utils.RepositoryNotFoundError:
        reason = "is not there, or not for everybody: look at its name, and set HF_TOKEN where it is private"
    except Exception as error:  # of whatever the library uses for HTTP, which has changed over its versions
        reason = f"could not be reached ({type(error).__name__}: {str(error).strip().partition(chr(10))[0]})"
    raise ModelNotFoundError(f"{repository} of {_address('')} {reason}")


def _downloaded(repository: str, revision: str | None, files: Mapping[str, int], progress: bool) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    def is_missing(name: str) -> bool:
        return not isinstance(try_to_load_from_cache(repository, name, revision=revision), str)

    missing = {name: size for name, size in files.items() if is_missing(name)}
    if missing and progress:
        count = f"{len(missing)} file{'' if len(missing) == 1 else 's'}"
        size = human_bytes(sum(missing.values()))
        print(f"{repository}: {count}, {size}, from {_address(repository)}", file=sys.stderr)
    paths = []
    try:
        with _bars(progress):
            for name in files:
                paths.append(Path(hf_hub_download(repository, name, revision=revision, etag_timeout=_PATIENCE_S)))
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise ModelNotFoundError(
            f"{repository} could not be downloaded ({type(error).__name__}: {first}); what has come is kept, and the "
            "next call goes on"
        ) from None
    return _opened(paths)


def _cached(repository: str, revision: str | None, part: str | None, reason: str) -> Path:
    """The model as the hub's cache has it. Raises ModelNotFoundError with the reason why nobody else was asked."""
    from huggingface_hub import constants, snapshot_download

    try:
        folder = Path(snapshot_download(repository, revision=revision, local_files_only=True))
        there = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        return _opened([folder / name for name in choose(there, part, repository)])
    except ModelNotFoundError as error:
        reason = f"{reason}; of what its cache has: {error}"
    except Exception:  # it is not there, by errors that have changed over the library's versions
        pass
    option = f" --revision {revision}" if revision else ""
    raise ModelNotFoundError(
        f"{repository} is no path of this machine, not in the Hugging Face cache {constants.HF_HUB_CACHE}, and "
        f"{reason}.\n"
        f"Where there is a network, run: hf download {repository}{option}\n"
        f"Then put the folder models--{repository.replace('/', '--')} of that cache into this one; or put the "
        "model's files into any folder, and give its path."
    )


def _opened(paths: list[Path]) -> Path:
    """The path to open: a GGUF file, the first where there are parts; else the folder."""
    gguf = sorted(path for path in paths if path.suffix == ".gguf")
    return gguf[0] if gguf else paths[0].parent


@contextmanager
def _bars(shown: bool) -> Iterator[None]:
    """The library's progress bars, or none for this while."""
    from huggingface_hub import utils

    hide = not shown and not utils.are_progress_bars_disabled()
    if hide:
        utils.disable_progress_bars()
    try:
        yield
    finally:
        if hide:
            utils.enable_progress_bars()


def _address(repository: str) -> str:
    from huggingface_hub import constants

    endpoint: Any = constants.ENDPOINT
    return f"{endpoint}/{repository}" if repository else str(endpoint).partition("://")[2]
