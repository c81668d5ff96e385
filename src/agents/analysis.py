"""What a population knows: see docs/howto/analyse.md."""

from .simulation.analysis.spread import Spread as Spread
from .simulation.analysis.study import Study as Study
from .simulation.runs.study import study as study

__all__ = ["Spread", "Study", "study"]
