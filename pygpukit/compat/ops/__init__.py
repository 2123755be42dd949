"""Operations under the older project's names; ops/names.py finds them here as it does in ops/."""
