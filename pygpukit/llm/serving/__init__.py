"""A model behind OpenAI's protocol, for programs on this machine."""
