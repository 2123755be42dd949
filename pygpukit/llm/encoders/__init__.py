"""Encoders: models that make vectors of texts, and what their folders say of it."""
