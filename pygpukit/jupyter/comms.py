"""Comms that answer without the shell's events, where the page asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def answer_quietly(comm: Any, answer: Callable[[Any], None]) -> None:
    """Take a comm's messages, as `comm.on_msg(answer)` does, but without the shell's pre_execute and post_execute.

    Every other comm fires both around each message, also from a subshell while a cell runs. matplotlib takes the second
    for the end of that cell: it shows and closes the figures on which the cell still draws.
    """
    comm.handle_msg = answer


def keep_reply_route(comm: Any) -> None:
    """Let what a page sends on a comm be answered while a cell runs, whoever publishes on it.

    ipykernel 7.4 sends a comm's messages to the shell that last published on it, which for a sampler thread is the busy
    main shell. This comm keeps to the subshell that the page asked for, as with 7.3.
    """
    comm._reply_subshell_for = lambda _data, asked_for: asked_for
