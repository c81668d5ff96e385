"""The tick loop."""
