"""replace(): operations of plugins in the place of built-in ones, for this process or a block."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace as changed
from importlib import import_module
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.text import nearest
from pygpukit.ops import names
from pygpukit.ops.prepared import Exchange, exchange_of
from pygpukit.plugins.entries import Plugin, plugin, plugins, unknown
from pygpukit.plugins.operation import Backend, Operation

Choice = str | Mapping[str, str | Operation]
_lock = threading.Lock()
_active: dict[str, Operation] = {}


class Replacement:
    """Operations that stand in for built-in ones until restore(), or until the end of its `with` block."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self.operations = dict(operations)
        self._restored = False

    def restore(self) -> None:
        """Put the built-in operations back; nothing the second time."""
        with _lock:
            if not self._restored:
                self._restored = True
                for name in self.operations:
                    _exchange(name)(None)
                    _active.pop(name, None)

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def __repr__(self) -> str:
        state = "restored" if self._restored else "active"
        return f"<Replacement, {state}: {', '.join(f'{name} by {one}' for name, one in self.operations.items())}>"


def replace(choice: Choice) -> Replacement:
    """Put operations of plugins in the place of built-in ones, for all threads of this process.

    Whoever calls the operation, the package itself too, gets the plugin's from then on; graphs keep what they captured.
    A language model's norms are part of its kernels: `gp.llm.load(..., replace=...)` replaces those.

    Parameters
    ----------
    choice : str or mapping
        The name of a plugin of the group `pygpukit.ops` or `pygpukit.backends`; or {operation: name of a plugin, or an
        Operation}.

    Returns
    -------
    Replacement
        `operations`, `restore()`; as a `with` block it restores at the end.

    Raises
    ------
    InvalidSpecError
        For an unknown plugin or operation, and for an operation that is replaced already.
    PluginError
        For a plugin that cannot be loaded, or cannot be used on this device.

    Examples
    --------
    >>> halves = gp.plugins.Operation("softmax", lambda x, axis=-1, *, out=None: gp.full_like(x, 0.5), 1.0)
    >>> with gp.plugins.replace({"softmax": halves}):
    ...     gp.softmax(gp.arange(2.0)).to_numpy().tolist()
    [0.5, 0.5]
    """
    operations = resolved(choice)
    setters = {name: _exchange(name) for name in operations}
    with _lock:
        for name in operations:
            if name in _active:
                raise InvalidSpecError(f"{name} is replaced already, by {_active[name]}; restore that first", "choice")
        for name, operation in operations.items():
            setters[name](operation.instead_of)
            _active[name] = operation
    return Replacement(operations)


def active() -> dict[str, Operation]:
    """The operations that replace built-in ones in this process now, by the names of these."""
    with _lock:
        return dict(_active)


def replaceable() -> list[str]:
    """The names of the built-in operations that a plugin can replace in a process.

    Returns
    -------
    list of str
        In the order of the alphabet.

    Examples
    --------
    >>> "rmsnorm" in gp.plugins.replaceable()
    True
    """
    return sorted(
        name for name, module in names.every().items() if exchange_of(getattr(import_module(module), name)) is not None
    )


def resolved(choice: Choice) -> dict[str, Operation]:
    """The operations that are meant, by the names of those that they replace. Raises as replace()."""
    if isinstance(choice, str):
        return _by_name(choice)
    if not isinstance(choice, Mapping):
        raise InvalidSpecError(f"choice={choice!r}; give the name of a plugin, or {{operation: plugin}}", "choice")
    return {name: _for(name, one) for name, one in choice.items()}


def _for(name: str, one: str | Operation) -> Operation:
    if isinstance(one, Operation):
        if one.replaces != name:
            raise InvalidSpecError(f"{one.name!r} replaces {one.replaces}, not {name!r}", "choice")
        return one
    operations = _by_name(one)
    if name not in operations:
        raise InvalidSpecError(f"plugin {one!r} replaces {', '.join(operations)}, not {name!r}", "choice")
    return operations[name]


def _by_name(name: str) -> dict[str, Operation]:
    if (one := plugin("pygpukit.ops", name)) is not None:
        operation = as_operation(one)
        return {operation.replaces: operation}
    if (one := plugin("pygpukit.backends", name)) is not None:
        return backend_operations(_expected(one, Backend), one)
    raise unknown(
        name, [one.name for one in (*plugins("pygpukit.ops"), *plugins("pygpukit.backends"))], "plugin", "choice"
    )


def as_operation(one: Plugin) -> Operation:
    """The operation of a plugin, with its names. Raises PluginError."""
    return changed(_expected(one, Operation), name=one.name, distribution=one.distribution)


def backend_operations(backend: Backend, one: Plugin) -> dict[str, Operation]:
    """The operations of a backend, with its names. Raises PluginError where it cannot be used."""
    try:
        problem = backend.available()
    except Exception as error:
        raise one.error(f"available() raised {type(error).__name__}: {error}") from error
    if problem:
        raise one.error(problem)
    return {
        operation.replaces: changed(operation, name=one.name, distribution=one.distribution)
        for operation in backend.operations
    }


def _expected(one: Plugin, kind: type[Any]) -> Any:
    value = one.load()
    if not isinstance(value, kind):
        raise one.error(f"{one.value} is a {type(value).__name__}; it must be a gp.plugins.{kind.__name__}")
    return value


def _exchange(name: str) -> Exchange:
    home = names.every().get(name)
    if home is None:
        raise InvalidSpecError(f"no operation is called {name!r}; {nearest(name, replaceable())}see "
                               "gp.plugins.replaceable()", "choice")  # fmt: skip
    exchange = exchange_of(getattr(import_module(home), name))
    if exchange is None:
        raise InvalidSpecError(f"{name} cannot be replaced; gp.plugins.replaceable() has those that can", "choice")
    return exchange
