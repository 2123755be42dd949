"""Matrix products under the older project's names."""
