"""Tensors of files that are larger than the device, by the documented classes: the loader, and strategies by layer."""
