"""The plugins of this environment: entry points, read without importing them, and loading one by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any

from pygpukit._core import __version__
from pygpukit.core.errors import InvalidSpecError, PluginError
from pygpukit.core.text import nearest

GROUPS = ("pygpukit.ops", "pygpukit.models", "pygpukit.backends", "pygpukit.policies")


@dataclass(frozen=True)
class Plugin:
    """A plugin by its entry point. distribution: name and version of what was installed; value: "module:attribute";
    problem: why it cannot be used, "" as far as is known without loading it."""

    name: str
    group: str
    distribution: str
    value: str
    problem: str = ""
    entry: EntryPoint | None = field(default=None, repr=False, compare=False)

    def load(self) -> Any:
        """The object that the entry point names. Raises PluginError where it cannot be imported."""
        if self.entry is None or self.problem:
            raise self.error(self.problem)
        try:
            return self.entry.load()
        except Exception as error:
            raise self.error(f"it cannot be imported: {type(error).__name__}: {error}") from error

    def error(self, what: str) -> PluginError:
        """An error that names this plugin."""
        return PluginError(
            f"plugin {self.name!r} ({self.group}) of {self.distribution}: {what}", self.name, self.distribution
        )


def _own(name: str, group: str, value: str) -> Plugin:
    return Plugin(name, group, f"pygpukit {__version__}", value, entry=EntryPoint(name, value, group))


OWN = (_own("triton", "pygpukit.backends", "pygpukit.triton.backend:BACKEND"),)


def plugins(group: str | None = None) -> list[Plugin]:
    """The plugins that are installed, by group and name; nothing of them is imported.

    Parameters
    ----------
    group : str, optional
        One of `gp.plugins.GROUPS`; all of them by default.

    Returns
    -------
    list of Plugin
        `name`, `group`, `distribution` ("name version"), `value` ("module:attribute") and `problem`: a distribution
        whose metadata cannot be read, or two plugins of one name, say so here and raise when they are used.

    Raises
    ------
    InvalidSpecError
        For another group.

    Examples
    --------
    >>> gp.plugins.list("pygpukit.policies")
    []
    """
    if group is not None and group not in GROUPS:
        raise InvalidSpecError(f"group={group!r} is unknown; give one of {', '.join(GROUPS)}", "group")
    every = [*OWN, *(plugin for one in distributions() for plugin in _of(one))]
    every = [plugin for plugin in every if group in (None, plugin.group)]
    every = sorted(dict.fromkeys(every), key=lambda one: (GROUPS.index(one.group), one.name, one.distribution))
    return [_unique(plugin, every) for plugin in every]


def plugin(group: str, name: str) -> Plugin | None:
    """The plugin of that group and name, None where there is none. Raises PluginError for one that cannot be used."""
    known = next((one for one in plugins(group) if one.name == name), None)
    if known is not None and known.problem:
        raise known.error(known.problem)
    return known


def unknown(name: object, known: Sequence[str], what: str, field: str) -> InvalidSpecError:
    """The error for a name that nothing has, with those that there are."""
    meant = nearest(name, known) if isinstance(name, str) and known else ""
    there = f"{meant}there are {', '.join(map(repr, known))}" if known else "none is installed"
    return InvalidSpecError(f"{field}={name!r}: no such {what}; {there}", field)


def _of(one: Distribution) -> list[Plugin]:
    """The plugins of a distribution; none of one whose metadata cannot be read."""
    try:
        own = [entry for entry in one.entry_points if entry.group in GROUPS]
        title = f"{one.metadata['Name']} {one.version}" if own else ""
        return [Plugin(entry.name, entry.group, title, entry.value, entry=entry) for entry in own]
    except Exception:  # files of strangers: whatever is wrong with them, it is not a plugin
        return []


def _unique(plugin: Plugin, every: Sequence[Plugin]) -> Plugin:
    same = [one for one in every if (one.group, one.name) == (plugin.group, plugin.name)]
    if len(same) == 1:
        return plugin
    others = ", ".join(one.distribution for one in same)
    problem = f"{len(same)} plugins have this name, of {others}; uninstall all but one"
    return Plugin(plugin.name, plugin.group, plugin.distribution, plugin.value, problem, plugin.entry)
