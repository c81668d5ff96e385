"""What agents tell each other: memories, corrections, and what is written on boards of groups."""
