"""In a checkout, the package ``tiermem`` is the code of the folder ``agents`` beside this one.

A wheel does not hold this file: the code itself is its folder ``tiermem``. Either way a module has
one name, ``tiermem.…``, whatever else is called ``agents``: see docs/architecture/import-name.md.
"""

import os
import sys
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents import *
    from agents import __all__ as __all__
    from agents import analysis as analysis
    from agents import simulation as simulation
    from agents import tools as tools
else:
    _CODE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "agents")
    __path__.append(_CODE)
    SourceFileLoader(__name__, os.path.join(_CODE, "__init__.py")).exec_module(
        sys.modules[__name__]
    )
