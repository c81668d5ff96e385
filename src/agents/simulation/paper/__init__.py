"""What goes into a paper: methods text, an ODD protocol, tables and figures of a run or a sweep."""
