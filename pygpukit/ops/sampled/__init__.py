"""Functions known at samples: interpolation, gradients, integrals, convolutions, polynomials, as NumPy's functions."""
