"""Operations on sound under the older project's names."""
