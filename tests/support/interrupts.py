"""Ctrl-C for tests: sent when a condition holds, and only while the call that it is to interrupt is under way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest


def interrupt(call: Callable[[], object], when: Callable[[], object] = lambda: True, after_s: float = 0.1) -> float:
    """Send this process SIGINT `after_s` seconds after `when()` has come true; `call` must raise KeyboardInterrupt.

    Seconds from the signal to the exception. However late a loaded machine makes it, it never comes behind the call.
    """
    ended, sent_s = threading.Event(), [0.0]

    def press() -> None:
        while not when():
            if ended.wait(0.005):
                return
        if not ended.wait(after_s):
            sent_s[0] = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        try:
            presser.start()
            call()
        finally:
            raised_s = time.monotonic()
            ended.set()
            presser.join()
    return raised_s - sent_s[0]
