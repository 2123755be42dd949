"""An error as a notebook shows it: the lines of the user's own code, without the frames inside this package."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import cast

_OURS = str(Path(__file__).parents[1]) + os.sep


def rendered(error: BaseException) -> list[str]:
    """The lines that IPython shows of an error, in the user's mode; with every frame in its mode Verbose."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return traceback.format_exception(error)
    own = error.__traceback__ if shell.InteractiveTB.mode == "Verbose" else users(error.__traceback__)
    lines = shell.InteractiveTB.structured_traceback(type(error), error, own, tb_offset=0)
    return cast("list[str]", lines)


def users(whole: TracebackType | None) -> TracebackType | None:
    """The traceback without frames of this package and of IPython; the whole one where nothing else is left."""
    kept: TracebackType | None = None
    for frame in reversed(_each(whole)):
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) and "/IPython/" not in file.replace("\\", "/"):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept or whole


def _each(whole: TracebackType | None) -> list[TracebackType]:
    frames = []
    while whole is not None:
        frames.append(whole)
        whole = whole.tb_next
    return frames
