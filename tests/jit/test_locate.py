"""Where the cache goes."""

from __future__ import annotations

import os

import pytest

from pygpukit.core.errors import InvalidSpecError
from pygpukit.jit import locate


def test_a_cache_of_an_unknown_user_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", "~nosuchuser/kernels")
    with pytest.raises(InvalidSpecError, match=r"=~nosuchuser/kernels: there is no home .*full path"):
        locate.cache_directory()


@pytest.mark.skipif(os.name == "nt", reason="HOME is not asked on Windows")
def test_an_empty_home_is_not_the_present_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    for name in ("PYGPUKIT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "")
    assert locate.cache_directory().is_relative_to(pwd.getpwuid(os.getuid()).pw_dir)

    def nobody(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(InvalidSpecError, match=r"HOME is not set .* set PYGPUKIT_CACHE_DIR"):
        locate.cache_directory()
