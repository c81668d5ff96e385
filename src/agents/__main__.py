"""``python -m tiermem`` is the command ``tiermem``."""

from .interfaces.cli.app import main

if __name__ == "__main__":
    main()
