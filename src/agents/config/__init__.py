"""Settings, and where they come from."""

from .load import load_settings

__all__ = ["load_settings"]
