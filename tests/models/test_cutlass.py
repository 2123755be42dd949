"""`pygpukit get cutlass`: what is fetched, checked, unpacked and left alone. PyPI is played here."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from test_fetch import play_pypi

from pygpukit import cli, doctor
from pygpukit.core.errors import ModelNotFoundError
from pygpukit.jit.cutlass import place
from pygpukit.models import cutlass, pypi
from pygpukit.models.catalogue import Entry, File, Part

NAME = f"nvidia_cutlass-{place.VERSION}-py3-none-any.whl"
HEADERS = "cutlass_library/source/include/"
CONTENTS = {
    f"{HEADERS}cute/tensor.hpp": b"// tensor",
    f"{HEADERS}cutlass/arch/mma.h": b"// mma",
    f"nvidia_cutlass-{place.VERSION}.dist-info/licenses/LICENSE.txt": b"as you like",
    "cutlass_library/generator.py": b"raise SystemExit('run')",
    "cutlass_library/source/examples/main.cu": b"int main() {}",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the headers come into; PyPI does not answer unless a test says so."""
    monkeypatch.setenv("PYGPUKIT_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(pypi, "find_spec", lambda name: None)
    return tmp_path / "models" / "cutlass"


def wheel(path: Path, monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes] = CONTENTS) -> Path:
    """A wheel of that content, which from now on is the one that is meant."""
    path.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    data = (path / NAME).read_bytes()
    package = f"nvidia-cutlass=={place.VERSION}"
    file = File(NAME, len(data), hashlib.sha256(data).hexdigest(), (Part(package, ""),))
    monkeypatch.setattr(cutlass, "_WHEEL", file)
    monkeypatch.setattr(cutlass, "ENTRY", Entry("cutlass", "headers", "BSD-3-Clause", (file,)))
    return path / NAME


def played(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_pypi(monkeypatch, f"shutil.copy({str(path)!r}, dest)")


def test_headers_and_licence_alone_are_unpacked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played(wheel(tmp_path / "index", monkeypatch), monkeypatch)
    assert place.include() is None and "pygpukit get cutlass" in place.missing()
    assert cli.main(["get", "cutlass"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() == str(folder / place.VERSION)
    assert "from PyPI" in err and "BSD-3-Clause" in err and str(folder) in err
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        f"{place.VERSION}/include/cute/tensor.hpp": b"// tensor",
        f"{place.VERSION}/include/cutlass/arch/mma.h": b"// mma",
        f"{place.VERSION}/LICENSE.txt": b"as you like",
    }
    assert place.include() == folder / place.VERSION / "include" and not place.missing()
    monkeypatch.setattr(pypi, "find_spec", lambda name: None)
    assert cli.main(["get", "cutlass"]) == 0  # nothing is asked any more
    assert "from PyPI" not in capsys.readouterr().err


def test_a_wheel_that_somebody_put_there_needs_no_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(folder, monkeypatch)
    assert (cutlass.get() / "include" / "cute" / "tensor.hpp").read_bytes() == b"// tensor"


def test_without_a_network_it_says_what_to_put_where(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["get", "cutlass"]) == 1
    err = capsys.readouterr().err
    assert f"pip download --no-deps nvidia-cutlass=={place.VERSION}" in err
    assert f"put {NAME} (6440597 bytes" in err and f"into {folder} and run pygpukit get cutlass again" in err
    assert not [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("place_of_damage", [0, -30])
def test_another_file_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place_of_damage: int
) -> None:
    path = wheel(tmp_path / "index", monkeypatch)
    data = bytearray(path.read_bytes())
    data[place_of_damage] ^= 1
    path.write_bytes(data)
    played(path, monkeypatch)
    with pytest.raises(ModelNotFoundError, match="its SHA-256 is"):
        cutlass.get()
    path.write_bytes(data[:-1])
    with pytest.raises(ModelNotFoundError, match="bytes, but"):
        cutlass.get()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["../x.h", "a/../../x.h", "/x.h", "a\\..\\x.h", "c:x.h", "./x.h"])
def test_a_path_that_leads_out_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    played(wheel(tmp_path / "index", monkeypatch, {**CONTENTS, HEADERS + name: b"out"}), monkeypatch)
    with pytest.raises(ModelNotFoundError, match="leads out of its folder"):
        cutlass.get()
    assert not list(folder.iterdir())
    assert not list(tmp_path.rglob("x.h"))


def test_what_it_unpacks_is_bounded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutlass, "_MAX_BYTES", 1000)
    played(wheel(tmp_path / "index", monkeypatch, {HEADERS + "cute/a.hpp": bytes(1001)}), monkeypatch)
    with pytest.raises(ModelNotFoundError, match="has 1 headers of"):
        cutlass.get()
    assert not list(folder.iterdir())


def test_get_takes_a_model_s_name_too(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["get", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path)
    assert cli.main(["get", "cutlas"]) == 1
    said = capsys.readouterr().err
    assert "cutlas is neither" in said and "cutlass fetches the headers" in said


def test_doctor_says_whether_they_are_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(line.startswith("CUTLASS ") and "pygpukit get cutlass" in line for line in doctor.report())
    wheel(folder, monkeypatch)
    cutlass.get()
    assert any(line.startswith("CUTLASS ") and str(folder / place.VERSION) in line for line in doctor.report())
