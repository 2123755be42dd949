"""CUTLASS and CuTe in kernels: where their headers lie, and how NVRTC and the simulated device's compiler read them."""
