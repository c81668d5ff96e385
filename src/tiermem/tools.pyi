# For type checkers, which do not follow the package to the folder agents.
from agents.tools import *
from agents.tools import __all__ as __all__
