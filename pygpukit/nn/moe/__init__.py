"""Mixtures of experts: a router picks a few feed-forward layers for each row."""
