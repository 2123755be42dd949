"""Operation: a function in the place of a built-in operation, with its numeric family; Backend: several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError, PluginError

if TYPE_CHECKING:
    import numpy as np

    Call = tuple[tuple[Any, ...], Mapping[str, Any]]

Numerics = Literal["exact", "rounded"] | float
_running: ContextVar[frozenset[str]] = ContextVar("running", default=frozenset())


def _available() -> str:
    return ""


@dataclass(frozen=True)
class Operation:
    """A function that stands in for the built-in operation `replaces`.

    Parameters
    ----------
    replaces : str
        Name of the built-in operation: `gp.plugins.replaceable()` has those that can be.
    function : callable
        Takes what the built-in one takes and gives what it gives, with its shape and dtype. It launches on the current
        stream, and may call the built-in operation by its usual name.
    numerics : "exact", "rounded" or float
        Its numeric family, which `gp.plugins.check()` holds it to: the built-in one's bits; each element at most one
        unit in the last place away; or a bound of the difference, relative to the largest element.
    calls : callable, optional
        Of a numpy.random.Generator: calls (args, kwargs) to compare on, where the package knows none or too simple
        ones.

    Raises
    ------
    InvalidSpecError
        For another family, or a function that cannot be called.

    Examples
    --------
    >>> twice = gp.plugins.Operation("softmax", lambda x, axis=-1, *, out=None: gp.softmax(x, axis, out=out), "exact")
    >>> with gp.plugins.replace({"softmax": twice}):
    ...     gp.softmax(gp.zeros(2)).to_numpy().tolist()
    [0.5, 0.5]
    """

    replaces: str
    function: Callable[..., Any]
    numerics: Numerics
    calls: Callable[[np.random.Generator], Iterable[Call]] | None = None
    name: str = ""
    distribution: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.replaces, str) or not callable(self.function):
            raise InvalidSpecError(
                f"Operation: replaces={self.replaces!r} and function={self.function!r}; give a name and a function",
                "function",
            )
        bound = isinstance(self.numerics, float) and math.isfinite(self.numerics) and self.numerics > 0
        if not bound and self.numerics not in ("exact", "rounded"):
            raise InvalidSpecError(
                f"Operation: numerics={self.numerics!r}; give 'exact', 'rounded' or a bound of the relative difference "
                "such as 1e-5",
                "numerics",
            )
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def family(self) -> str:
        """The numeric family in words."""
        if isinstance(self.numerics, float):
            return f"other bits, at most {self.numerics:g} apart"
        return "the same bits" if self.numerics == "exact" else "the same rounding, at most 1 ulp apart"

    def __str__(self) -> str:
        return f"{self.name}{f' of {self.distribution}' if self.distribution else ''} ({self.family})"

    def instead_of(self, built_in: Callable[..., Any]) -> Callable[..., Any]:
        """The function that runs in the place of the built-in one, which runs where the plugin itself calls it."""

        def run(*args: Any, **kwargs: Any) -> Any:
            if self.replaces in _running.get():
                return built_in(*args, **kwargs)
            for one in (*args, *kwargs.values()):
                if isinstance(one, native.ArrayBase):
                    _ = one.device_ptr  # a prepared call around this one is not kept: it would not ask the plugin again
            return self(*args, **kwargs)

        return run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function. Raises PluginError, which names the plugin, with what it raised as the cause."""
        token = _running.set(_running.get() | {self.replaces})
        before = native.enter_plugin(self.name)
        try:
            result = self.function(*args, **kwargs)
        except PluginError:
            raise
        except Exception as error:
            raise self.error(f"{type(error).__name__}: {error}") from error
        finally:
            native.leave_plugin(before)
            _running.reset(token)
        out = kwargs.get("out")
        if not isinstance(result, native.ArrayBase):
            raise self.error(f"it gave {type(result).__name__}, and {self.replaces} gives an array")
        if out is not None and result is not out:
            raise self.error("it gave another array than out=")
        return result

    def error(self, what: str) -> PluginError:
        """An error that names the plugin."""
        origin = f" of {self.distribution}" if self.distribution else ""
        return PluginError(
            f"plugin {self.name!r}{origin}, in the place of {self.replaces}: {what}",
            self.name,
            self.distribution,
            self.replaces,
        )


@dataclass(frozen=True)
class Backend:
    """Operations that are replaced together. available: why they cannot be used on the current device, "" where they
    can."""

    operations: tuple[Operation, ...]
    available: Callable[[], str] = _available
    name: str = ""
