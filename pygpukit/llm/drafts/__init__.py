"""Drafts: where proposals of the next tokens come from."""
