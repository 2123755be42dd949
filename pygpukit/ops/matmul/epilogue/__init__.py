"""What comes after the sums of a product: scale, bias, activation, residual, conversion."""
