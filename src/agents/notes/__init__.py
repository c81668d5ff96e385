"""Markdown notes that an agent keeps beside its memories: plain files, cut into chunks."""
