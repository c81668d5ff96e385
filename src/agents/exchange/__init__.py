"""Memories on their way in and out of a bank: files of rows, and mem0 stores of others."""
