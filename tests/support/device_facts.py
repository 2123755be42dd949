"""Other facts of the current device, as choices of kernels see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

from pygpukit.core import choices, device

Facts: TypeAlias = Callable[..., None]  # the fixture `facts`


@contextmanager
def having(**facts: Any) -> Iterator[None]:
    """Within it the current device has these facts (fields of device.Facts), and choices are made anew."""
    changed = device.current()._replace(**facts)
    choices.forget()
    try:
        with patch.object(device, "current", lambda: changed):
            yield
    finally:
        choices.forget()
