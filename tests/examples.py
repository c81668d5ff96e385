"""How many examples a law is tried with that says so itself."""

import os


def examples(most: int) -> int:
    """``most`` of them, and a fifth of that where no profile asks for a thorough look."""
    return most if "HYPOTHESIS_PROFILE" in os.environ else max(5, most // 5)
