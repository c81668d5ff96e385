"""For whoever writes a world: a world to begin with, and a trial of a finished one."""
