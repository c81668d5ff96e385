"""What a memory is: plain values, and the checks of what callers give.

Nothing here reads a file, a clock or a random source.
"""
