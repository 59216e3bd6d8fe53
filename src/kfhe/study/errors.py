"""Errors in a study that the user can fix."""


class StudyError(Exception):
    """A study can't continue. The message says what was found, where, and what to do."""


class NoTargetError(StudyError):
    """The target of a table is unknown, so the user has to give it."""
