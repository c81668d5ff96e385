"""Worlds, policies and the loop between them; runs that stop, resume, replay and branch."""
