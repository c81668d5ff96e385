"""The way in for notebooks and scripts: simulations as objects that answer."""
