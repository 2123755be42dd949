"""A template for plugins of pygpukit: one module for each kind of entry point."""
