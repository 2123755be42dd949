"""Products on the tensor cores of SM 9.0 by kernels of their own: wgmma and TMA."""
