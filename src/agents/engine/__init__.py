"""The parts of an open bank at work."""
