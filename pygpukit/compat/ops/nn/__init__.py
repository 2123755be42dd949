"""Operations of neural networks under the older project's names."""
