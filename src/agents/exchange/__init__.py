"""Import and export of memories: files of rows, and mem0 stores that another program filled."""
