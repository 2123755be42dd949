"""Names that other libraries' arrays have for what ours call otherwise: who asks for one is told ours."""

from __future__ import annotations

from typing import NoReturn

_HOST = dict.fromkeys(
    ("numpy", "cpu", "get", "asnumpy", "copy_to_host", "tonumpy"), "to_numpy() copies an array to the host"
)
_DEVICE = dict.fromkeys(("cuda", "gpu"), "an array is on the device already")
_OTHERS = {
    "detach": "there are no gradients to leave out",
    "view_as": "reshape() gives another shape, view(dtype) another type",
    "unsqueeze": "expand_dims(), or x[:, None]",
    "type": "astype() converts, dtype says which type it is",
    "half": 'astype("float16")',
    "double": 'astype("float64")',
    "long": 'astype("int64")',
}
_OURS = {**_HOST, **_DEVICE, **_OTHERS}


def refuse(array: object, name: str) -> NoReturn:
    """Raises AttributeError with our name for it, or the nearest there is."""
    text = f"GPUArray has no attribute {name!r}"
    if name in _OURS:
        text += f"; {_OURS[name]}"
    elif not name.startswith("_"):
        from pygpukit.core.text import nearest

        text += f"; {nearest(name, [one for one in dir(type(array)) if not one.startswith('_')])}".rstrip("; ")
    raise AttributeError(text, name=name, obj=array)
