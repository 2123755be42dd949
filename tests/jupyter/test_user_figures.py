"""In a real ipykernel: what a page asks while a cell draws leaves the cell's figures alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib_inline")
import ipykernel
from kernel_client import Page, kernel, of, until_there

pytestmark = pytest.mark.skipif(
    int(ipykernel.__version__.split(".")[0]) < 7, reason="before ipykernel 7 a page is answered between cells only"
)

SETUP = """
%matplotlib inline
import matplotlib.pyplot as plt
from pygpukit.jupyter.widgets import SchedulerWidget
fired, view = [], SchedulerWidget()
get_ipython().events.register("pre_execute", lambda: fired.append("pre"))
get_ipython().events.register("post_execute", lambda: fired.append("post"))
print(view.model_id)
"""
DRAW = """
fired.clear()
figure, axis = plt.subplots()
axis.plot([1, 2, 3])
{wait}
assert plt.get_fignums() == [figure.number], "the figure is open"
assert fired == [], fired
axis.set_title("drawn to the end")
plt.show()
"""
Ask = Callable[[Page, str], object]
ASKS: dict[str, Ask] = {
    **{
        name: lambda page, _model, name=name: page.request(name, {})
        for name in ("status", "snapshot", "trim", "nonsense")
    },
    "a view's own comm": lambda page, model: page.press(model, "controls"),
}


@pytest.fixture(scope="module")
def drawing() -> Iterator[tuple[Page, str]]:
    with kernel() as page:
        page.open_control()
        yield page, page.text(page.run(SETUP)).strip()


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_a_figure_survives_a_message_that_is_answered_while_its_cell_draws(
    drawing: tuple[Page, str], ask: Ask, tmp_path: Path
) -> None:
    page, model = drawing
    said = len(page.said)
    number = page.begin(DRAW.format(wait=until_there(tmp_path / "go")))
    for _ in range(2):  # the second is answered when all that belongs to the first has been done
        ask(page, model)
    assert page.busy(number), "answered while the cell ran"
    (tmp_path / "go").touch()
    page.finish(number)
    pictures = [message for _, message in page.said[said:] if "image/png" in message["content"].get("data", {})]
    assert len(pictures) == 1 and of(pictures[0], number), page.outputs(number)
    assert [one for one in page.outputs(number) if "ename" in one] == []
