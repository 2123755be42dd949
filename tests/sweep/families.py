"""All families of the sweep: those that the modules of this folder have in their FAMILIES. Between them they have every
source of the catalogue."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import sweep
from sweep.engine import Family

_MODULES = sorted(module.name for module in iter_modules(sweep.__path__) if module.name not in ("engine", "families"))
FAMILIES: tuple[Family, ...] = tuple(family for name in _MODULES for family in import_module(f"sweep.{name}").FAMILIES)
