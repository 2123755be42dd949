"""Models over several devices: which numbers each has, its part of a model, and the parts as one network."""
