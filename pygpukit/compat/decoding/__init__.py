"""Decoding by hand: the documented strategies, whose caller gives tokens and positions, over the engine's steps."""
