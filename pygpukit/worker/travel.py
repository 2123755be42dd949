"""Values that cross to a worker: a tree of plain JSON values, and the arrays it refers to by place.

Numbers, strings, booleans, None and lists stand for themselves; everything else is an object with one key, its kind.
Values are rebuilt, never unpickled: what comes from a worker can only be data. What goes to it may be code too
(travel_code.py): the worker runs what this process says anyway, and there is nothing between them but a socket pair.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._core import native
from ..core.dtypes import DataType

if TYPE_CHECKING:
    import numpy as np

Array = Any  # a GPUArray; the compiled type is not known to the type checker
_PLAIN = (type(None), bool, int, float, str)
_REMEDY = "give arrays, numbers, strings, bytes, lists, tuples, sets and dictionaries of these"


class Sender:
    """Encodes values; collects their arrays, each once. Raises TypeError naming what cannot travel, and why."""

    def __init__(self, remedy: str = _REMEDY) -> None:
        self.arrays: list[tuple[str, Array]] = []
        self.hosts: list[np.ndarray[Any, Any]] = []
        self.remedy = remedy
        self._places: dict[int, int] = {}  # of arrays, by id: they live as long as this does
        self._open: set[int] = set()  # containers under way, by id

    def encode(self, what: str, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            return self._items(what, value)
        if kind is tuple:
            return {"tuple": self._items(what, value)}
        if kind in (set, frozenset):
            return {kind.__name__: self._items(what, list(value))}
        if kind is dict:
            keys, values = self._items(f"a key of {what}", list(value)), self._within(what, value, self._values)
            return {"dict": [keys, values]}
        if kind in (bytes, bytearray):
            return {kind.__name__: base64.b64encode(value).decode()}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if isinstance(value, native.ArrayBase):
            if not value.size:
                return {"empty": [list(value.shape), value.dtype.name]}
            return {"array": self._place(value, self.arrays, (what, value))}
        if isinstance(value, DataType):
            return {"dtype": value.name}
        if kind.__module__.partition(".")[0] == "numpy" or hasattr(value, "__array_interface__"):
            return self._numpy(what, value)
        return self.other(what, value)

    def other(self, what: str, value: Any) -> Any:
        """A value that is no data."""
        raise TypeError(f"{what} is a {type(value).__name__}, which cannot travel between processes; {self.remedy}")

    def _place(self, value: Any, places: list[Any], entry: Any) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(places)
            places.append(entry)
        return self._places[id(value)]

    def _numpy(self, what: str, value: Any) -> Any:
        import numpy as np

        if isinstance(value, np.dtype):
            return {"npdtype": value.str}
        if not isinstance(value, (np.ndarray, np.generic)) or type(value) is np.ma.MaskedArray:
            return self.other(what, value)
        if value.dtype.hasobject or value.dtype.fields is not None:
            raise TypeError(f"{what} is a NumPy array of {value.dtype}, whose elements are no numbers; {self.remedy}")
        if isinstance(value, np.generic):
            return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
        return {"numpy": self._place(value, self.hosts, value)}

    def _items(self, what: str, values: Sequence[Any]) -> list[Any]:
        return self._within(what, values, lambda w, vs: [self.encode(f"{w}[{i}]", v) for i, v in enumerate(vs)])

    def _values(self, what: str, values: dict[Any, Any]) -> list[Any]:
        return [self.encode(f"{what}[{key!r}]", value) for key, value in values.items()]

    def _within(self, what: str, value: Any, encode: Callable[[str, Any], list[Any]]) -> list[Any]:
        if id(value) in self._open:
            raise TypeError(f"{what} contains itself")
        self._open.add(id(value))
        try:
            return encode(what, value)
        finally:
            self._open.remove(id(value))


class Receiver:
    """Decodes what a Sender encoded, over arrays that came beside it. Raises ValueError for what is none of it."""

    def __init__(self, arrays: Sequence[Array], hosts: Sequence[np.ndarray[Any, Any]]) -> None:
        self.arrays, self.hosts = arrays, hosts

    def decode(self, item: Any) -> Any:
        if isinstance(item, list):
            return [self.decode(one) for one in item]
        if not isinstance(item, dict):
            return item
        if len(item) != 1:
            raise ValueError(f"{sorted(item)[:3]} is no value: it has {len(item)} kinds")
        ((kind, content),) = item.items()
        return self._data(kind, content)

    def _data(self, kind: str, content: Any) -> Any:
        match kind:
            case "tuple":
                return tuple(self.decode(content))
            case "set":
                return set(self.decode(content))
            case "frozenset":
                return frozenset(self.decode(content))
            case "dict":
                keys, values = self.decode(content)
                return dict(zip(keys, values, strict=True))
            case "bytes":
                return base64.b64decode(content)
            case "bytearray":
                return bytearray(base64.b64decode(content))
            case "complex":
                return complex(*content)
            case "array":
                return self.arrays[content]
            case "empty":
                return native.empty(tuple(content[0]), content[1])
            case "numpy":
                return self.hosts[content]
            case "dtype":
                return DataType.from_string(content)
            case "npdtype" | "scalar":
                import numpy as np

                if kind == "npdtype":
                    return np.dtype(content)
                return np.frombuffer(base64.b64decode(content[1]), np.dtype(content[0]))[0]
        return self.other(kind, content)

    def other(self, kind: str, content: Any) -> Any:
        """A kind that is no data."""
        raise ValueError(f"a value of kind {kind!r} has no place here")
