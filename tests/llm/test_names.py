"""The documented names of language models: there, or refused by name."""

from __future__ import annotations

import pytest

import pygpukit as gp
from _pygpukit_rust import llm as rust
from pygpukit.compat import refused


def test_every_name_is_there() -> None:
    for name in gp.llm.__all__:
        assert getattr(gp.llm, name) is not None


def test_what_has_something_in_its_place_says_what() -> None:
    assert not set(refused.LLM_INSTEAD) & set(gp.llm.__all__)
    for name, what in refused.LLM_INSTEAD.items():
        with pytest.raises(AttributeError) as error:
            getattr(gp.llm, name)
        assert what in str(error.value)


def test_what_comes_later_is_refused_by_name() -> None:
    assert not set(refused.LLM_LATER) & set(gp.llm.__all__)
    for name, what in refused.LLM_LATER.items():
        with pytest.raises(AttributeError, match=f"{name} is not there yet: {what}"):
            getattr(gp.llm, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = gp.llm.Nothing
    for name in ("LazyModelLoader", "TensorState", "PoolStats"):
        with pytest.raises(AttributeError, match=f"{name} is not there yet"):
            getattr(rust, name)
    assert rust.SafeTensorsFile is gp.llm.SafeTensorsFile and rust.Tokenizer is gp.llm.Tokenizer
