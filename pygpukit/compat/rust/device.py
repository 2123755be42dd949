"""Devices: what they can do."""

from pygpukit.core.capabilities import DeviceCapabilities, KernelType

__all__ = ["DeviceCapabilities", "KernelType"]
