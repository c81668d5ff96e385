"""What decides: pure functions over plain values."""
