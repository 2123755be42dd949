"""%load_ext pygpukit: magics, completion, cell ledger and control channel enter the shell and leave without a trace."""

from __future__ import annotations

import weakref
from typing import Any

from pygpukit.jupyter import control, views
from pygpukit.jupyter.chat import ChatMagics
from pygpukit.jupyter.completion import cuda_matcher
from pygpukit.jupyter.cutile import CutileMagics
from pygpukit.jupyter.ledger import Ledger
from pygpukit.jupyter.magics import CudaMagics
from pygpukit.jupyter.reports import Reports

_MAGICS = (
    ("cell", "cuda"), ("cell", "cutile"), ("cell", "gpu_profile"), ("cell", "chat"),
    ("line", "gpu"), ("line", "gpu_timing"), ("line", "cuda_reset"),
)  # fmt: skip
_ABSENT = object()

_installed: weakref.WeakKeyDictionary[Any, _Installed] = weakref.WeakKeyDictionary()


class _Installed:
    """The handlers that one shell was given, and those that stood there before."""

    def __init__(self, shell: Any) -> None:
        tables = shell.magics_manager.magics
        self._before = {(kind, name): tables[kind].get(name, _ABSENT) for kind, name in _MAGICS}
        self._ledger = Ledger(shell)
        self._magics = CudaMagics(shell, self._ledger)
        self._cutile = CutileMagics(shell, self._ledger, self._magics)
        self._chat = ChatMagics(shell)
        shell.register_magics(self._magics, self._cutile, self._chat)
        self._ledger.install()
        self._reports = Reports(shell)
        self._reports.install()
        control.serve(self._reports)
        views.install()
        control.install(shell)
        self._matcher = cuda_matcher(self._magics)
        shell.Completer.custom_matchers.append(self._matcher)

    def remove(self, shell: Any) -> None:
        shell.Completer.custom_matchers.remove(self._matcher)
        for magics in (self._magics, self._cutile, self._chat):
            shell.configurables.remove(magics)  # where %config looks; IPython's Magics adds itself
        control.remove(shell)
        control.dismiss(self._reports)
        self._reports.remove()
        self._ledger.remove()
        manager = shell.magics_manager
        for kind in (CudaMagics, CutileMagics, ChatMagics):
            manager.registry.pop(kind.__name__, None)
        for (table, name), before in self._before.items():
            if before is _ABSENT:
                manager.magics[table].pop(name, None)
            else:
                manager.magics[table][name] = before


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext. Prints nothing; loading twice changes nothing."""
    if shell not in _installed:
        _installed[shell] = _Installed(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by %unload_ext and %reload_ext: the shell is as it was before."""
    installed = _installed.pop(shell, None)
    if installed is not None:
        installed.remove(shell)
