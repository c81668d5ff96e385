# For type checkers, which do not follow the package to the folder agents.
from agents.simulation import *
from agents.simulation import __all__ as __all__
