"""The documented names of language models."""

from __future__ import annotations

import pytest

import pygpukit as gp
from _pygpukit_rust import llm as rust


def test_every_name_is_there() -> None:
    for name in gp.llm.__all__:
        assert getattr(gp.llm, name) is not None


def test_what_there_never_was_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = gp.llm.Nothing
    for name in rust.__all__:
        assert getattr(rust, name) is getattr(gp.llm, name)
