"""Saving and loading: models as files that are safe to open."""
