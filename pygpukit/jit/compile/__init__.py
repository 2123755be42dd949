"""From a source to an image: NVRTC, or the compiler of the simulated device."""
