"""What a memory is and how it is ranked.

Pure rules over plain values: nothing here reads a file, a clock or a random source.
"""
