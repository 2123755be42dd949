"""Tokenizers: text to token ids and back, chat templates, and what a tokenizer file may cost."""
