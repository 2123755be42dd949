"""Textures and surfaces: arrays as kernels read them through the device's filters, and write them by place."""

from pygpukit.textures.surface import Surface
from pygpukit.textures.texture import Texture

__all__ = ["Surface", "Texture"]
