"""A documented path: what is here lives in pygpukit.memory.raw.py."""

from pygpukit.memory.raw import (
    copy_device_to_device_async,
    copy_device_to_device_offset,
    copy_to_device,
    copy_to_device_async,
    get_memory_info,
    synchronize,
)

__all__ = [
    "copy_device_to_device_async",
    "copy_device_to_device_offset",
    "copy_to_device",
    "copy_to_device_async",
    "get_memory_info",
    "synchronize",
]
