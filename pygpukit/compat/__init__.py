"""Names that exist only for the older public project: aliases, import paths, and what is refused with a reason."""
