"""Names of other libraries' arrays: none of them is there, and the error says what is."""

from __future__ import annotations

import pytest

import pygpukit as gp


@pytest.mark.parametrize("name", ["numpy", "cpu", "get", "asnumpy", "copy_to_host"])
def test_the_way_to_the_host_is_named(name: str) -> None:
    x = gp.ones(3)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match=rf"GPUArray has no attribute '{name}'; to_numpy\(\)"):
        getattr(x, name)()


@pytest.mark.parametrize(("name", "meant"), [("reshpe", "reshape"), ("to_nupmy", "to_numpy"), ("stirdes", "strides")])
def test_a_misspelt_name_gets_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean {meant}"):
        getattr(gp.ones(3), name)


def test_protocols_that_are_not_there_stay_absent() -> None:
    x = gp.ones(3)
    for name in ("__cuda_fastrace__", "_repr_png_", "__jax_array__", "xyzzy"):
        assert not hasattr(x, name)
    with pytest.raises(AttributeError, match=r"^GPUArray has no attribute 'xyzzy'$"):
        _ = x.xyzzy  # type: ignore[attr-defined]
