"""Reports: the results of runs and sweeps, as charts and one page."""
