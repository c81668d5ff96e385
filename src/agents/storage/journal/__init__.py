"""The SQLite file that is the truth."""
