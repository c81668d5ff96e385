"""The ways in. Thin: they translate, and nothing more."""
