"""Ranks of a group as worker processes."""
