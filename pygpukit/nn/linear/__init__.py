"""Products with a weight: dense, or in blocks of few bits a value as a file stores it."""
