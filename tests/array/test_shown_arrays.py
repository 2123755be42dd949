"""How arrays print and draw: the text is NumPy's, a constant is said in words, matplotlib takes arrays."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")

EXTENTS = [1, 2, 3, 5, 6, 7, 8, 12, 40, 700]


def text_of(a: np.ndarray) -> str:  # type: ignore[type-arg]
    return "GPUArray(" + np.array2string(a, separator=", ", prefix="GPUArray(") + ","


def test_the_values_printed_are_those_that_numpy_prints() -> None:
    rng = np.random.default_rng(0)
    for turn in range(60):
        shape = tuple(rng.choice(EXTENTS, rng.integers(1, 5)))
        if np.prod(shape) > 100_000:
            continue
        a = rng.standard_normal(shape).astype("float32") if turn % 2 else rng.integers(0, 1000, shape)
        assert repr(gp.from_numpy(a)).startswith(text_of(a)), shape
        assert repr(gp.from_numpy(a).T).startswith(text_of(a.T)), shape


@pytest.mark.parametrize("options", [{"threshold": 10}, {"edgeitems": 1, "threshold": 20}, {"threshold": 5000}])
def test_numpys_print_options_are_kept(options: dict[str, int]) -> None:
    a = np.arange(2000).reshape(2, 1000)
    with np.printoptions(**options):
        assert repr(gp.from_numpy(a)).startswith(text_of(a))
        assert repr(gp.from_numpy(a[0, :15])).startswith(text_of(a[0, :15]))


def test_a_summary_of_many_axes_is_bounded() -> None:
    assert repr(gp.zeros((7,) * 6, "int8")).count("0") < 5000
    assert repr(gp.zeros((2,) * 14, "int8")).startswith("GPUArray(...")


@pytest.mark.parametrize("value", [0.0, 1.5, -3e30])
@pytest.mark.parametrize("shape", [(8, 8), (2, 30, 50), (40,)])
def test_a_constant_is_said_not_coloured(value: float, shape: tuple[int, ...]) -> None:
    page = gp.full(shape, value)._repr_html_()
    assert f"{value:.4g} everywhere" in page and "<img" not in page


def test_rounding_errors_are_no_picture_and_differences_and_missing_values_are() -> None:
    a = np.full((8, 8), 0.1)
    a[3, 3] += 1e-12
    assert "about 0.1 everywhere" in gp.from_numpy(a)._repr_html_()
    for value in (np.nan, np.inf, 0.2):
        a[3, 3] = value
        page = gp.from_numpy(a)._repr_html_()
        assert "<img" in page and "everywhere" not in page


def test_matplotlib_draws_arrays() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    x = gp.array([[1.0, 2.0], [3.0, 4.0]])
    axes = Figure().subplots()
    image = axes.imshow(x)
    assert image.get_array().tolist() == x.tolist()
    assert axes.imshow(x.astype("bfloat16")).get_array().tolist() == x.tolist()
    assert axes.plot(x[0])[0].get_ydata().tolist() == [1, 2]
    assert axes.scatter(x[0], x[1]).get_offsets().tolist() == [[1, 3], [2, 4]]
    axes.hist(x[0])
    axes.pcolormesh(x)


def test_all_others_still_ask_first() -> None:
    x = gp.ones(3)
    for call in (np.asarray, np.array, np.ma.masked_invalid, lambda y: np.zeros(3) + np.asarray(y)):
        with pytest.raises(TypeError, match="to_numpy"):
            call(x)
