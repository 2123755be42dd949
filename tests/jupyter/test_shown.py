"""In a real ipykernel: a view is open while something shows it, and is let go of when its cell has run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("anywidget")
from kernel_client import Page, kernel

SETTING = """
import gc, weakref
import ipywidgets
from ipywidgets.widgets.widget import _instances
from pygpukit.jupyter.widgets import MemoryWidget
ipywidgets.Widget.close_all()
made = []
def memory():
    view = gp.dashboard.memory()
    made.append(weakref.ref(view))
    return view
def counted():
    '''Views that are open, all that ipywidgets has open, and views that there are.'''
    gc.collect()
    views = [one for one in _instances.values() if isinstance(one, MemoryWidget)]
    return len(views), len(_instances), sum(one() is not None for one in made)
"""


@pytest.fixture(scope="module")
def kernel_page() -> Iterator[Page]:
    with kernel() as made:
        yield made


@pytest.fixture
def page(kernel_page: Page) -> Page:
    """The kernel without any view, and no variable left from the test before."""
    kernel_page.run("%reset -f\nimport pygpukit as gp")
    kernel_page.run(SETTING)
    return kernel_page


def counted(page: Page) -> tuple[int, int, int]:
    views, widgets, alive = eval(page.text(page.run("print(counted())")))
    return views, widgets, alive


def model(page: Page, number: str) -> str:
    (output,) = page.outputs(number)
    return str(output["data"]["application/vnd.jupyter.widget-view+json"]["model_id"])


def closed(page: Page) -> set[str]:
    """Ids of the models that the page was told to close."""
    return {message["content"]["comm_id"] for _, message in page.said if message["msg_type"] == "comm_close"}


def test_a_hundred_runs_of_a_cell_leave_one_view(page: Page) -> None:
    models = [model(page, page.run("display(memory())", "a")) for _ in range(100)]
    assert counted(page) == (1, 2, 1), "the view and its layout"
    assert set(models[:-1]) <= closed(page) and models[-1] not in closed(page)


def test_a_cell_that_shows_none_any_more_leaves_none(page: Page) -> None:
    page.run("display(memory())", "a")
    page.run("raise RuntimeError", "a")
    assert counted(page) == (0, 0, 0)


def test_a_view_that_is_shown_again_stays_open(page: Page) -> None:
    page.run("view = memory()", "a")
    first = model(page, page.run("view", "b"))
    assert model(page, page.run("view", "b")) == first not in closed(page)


def test_a_view_that_another_cell_shows_stays_open_until_that_runs_again(page: Page) -> None:
    page.run("view = memory()\ndisplay(view)", "a")
    page.run("display(view)", "b")
    page.run("del view", "a")
    assert counted(page) == (1, 2, 1)
    page.run("pass", "b")
    assert counted(page) == (0, 0, 0)


def test_a_view_in_a_container_stays_open(page: Page) -> None:
    page.run("view = memory()\ndisplay(view)", "a")
    page.run("box = ipywidgets.HBox([view])", "b")
    page.run("box", "a")
    assert counted(page)[0] == 1


def test_a_view_in_an_output_widget_stays_open(page: Page) -> None:
    page.run("out = ipywidgets.Output()\nout", "a")
    page.run("with out: display(memory())", "b")
    page.run("pass", "b")
    assert counted(page)[0] == 1


def test_a_view_that_an_output_widget_shows_too_stays_open(page: Page) -> None:
    page.run("out = ipywidgets.Output()\nview = memory()\ndisplay(view)", "a")
    page.run("with out: display(view)", "b")
    page.run("pass", "a")
    assert counted(page)[0] == 1


def test_a_view_that_was_appended_to_an_output_widget_stays_open(page: Page) -> None:
    page.run("out = ipywidgets.Output()\nout.append_stdout('a line')\nout.append_display_data(memory())", "a")
    page.run("pass", "a")
    assert counted(page)[0] == 1
    page.run("out.outputs = ()\ndisplay(made[0]())", "a")
    page.run("pass", "a")
    assert counted(page)[0] == 0


def test_a_layout_that_another_widget_has_stays_open(page: Page) -> None:
    page.run("text = ipywidgets.Label()\nview = memory()\nview.layout = text.layout\ndisplay(view)", "a")
    page.run("pass", "a")
    assert counted(page)[0] == 0
    assert page.text(page.run("print(text.layout.comm is not None)")) == "True\n"


def test_widgets_whose_children_are_something_else_are_passed_over(page: Page) -> None:
    page.run(
        "import numpy, traitlets\nclass Odd(ipywidgets.Widget): children = traitlets.Any(numpy.ones(3))\n"
        "odd, other = Odd(), Odd(children=3)\ndisplay(memory())",
        "a",
    )
    assert page.text(page.run("pass", "a")) == ""
    assert counted(page)[0] == 0


def test_a_view_that_was_closed_by_hand_stays_closed(page: Page) -> None:
    page.run("view = memory()\ndisplay(view)", "a")
    page.run("view.close()", "a")
    assert page.text(page.run("print(view.comm)")) == "None\n"


def test_a_thread_that_shows_a_view_waits_while_a_cell_looks_for_its_own(page: Page) -> None:
    page.run(
        """
import threading
from pygpukit.jupyter.widgets import shown
view, waited, is_shown = memory(), [], shown._is_shown
def look(gone):
    showing = threading.Thread(target=shown.note, args=(view,))
    showing.start()
    showing.join(0.2)
    waited.append(showing.is_alive())
    return is_shown(gone)
""",
        "a",
    )
    page.run("display(memory())", "b")
    page.run("shown._is_shown = look", "b")
    assert page.text(page.run("shown._is_shown = is_shown\nprint(waited)")) == "[True]\n"


def test_a_view_that_was_closed_is_shown_again(page: Page) -> None:
    page.run("view = memory()", "a")
    first = model(page, page.run("view", "b"))
    page.run("pass", "b")
    assert counted(page) == (0, 0, 1)
    assert model(page, page.run("view", "c")) == first
    assert counted(page) == (1, 2, 1)
    opened = [m for _, m in page.said if m["msg_type"] == "comm_open" and m["content"]["comm_id"] == first]
    assert len(opened) == 2
    state: dict[str, Any] = opened[-1]["content"]["data"]["state"]
    assert "export" in state["_esm"] and state["layout"].startswith("IPY_MODEL_")


def test_a_closed_view_opens_for_a_container(page: Page) -> None:
    page.run("view = memory()\nview.close()\nbox = ipywidgets.HBox([view])", "a")
    assert page.outputs(page.run("box", "b"))[0]["data"]["text/plain"]
    assert counted(page)[0] == 1


def test_without_an_id_of_the_cell_views_stay(page: Page) -> None:
    for _ in range(3):
        page.run("display(memory())")
    assert counted(page)[0] == 3


def test_a_cell_that_runs_other_code_keeps_what_it_shows(page: Page) -> None:
    """What a cell has run inside ends before it does."""
    page.run("view = memory()", "a")
    first = model(page, page.run("view", "b"))
    again = page.run("get_ipython().run_cell('pass')\nview", "b")
    assert model(page, again) == first not in closed(page)


def test_equal_cells_show_equal_pictures(page: Page) -> None:
    page.run("kept = gp.ones(1 << 20)")
    cell = "display(gp.dashboard.memory(), gp.dashboard.scheduler(), gp.dashboard.device())"
    first, second = (page.outputs(page.run(cell, "a")) for _ in range(2))
    assert len(first) == 3
    assert [one["data"]["text/html"] for one in first] == [one["data"]["text/html"] for one in second]
