"""Images kept: in memory, on disk, and who finds them again."""
