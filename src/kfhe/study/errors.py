"""What goes wrong in a study and is for the user to fix."""


class StudyError(Exception):
    """A study can't go on: the message says what was found, where, and what to do."""


class NoTargetError(StudyError):
    """Nobody has said which column of a table is to be learnt, and it isn't certain: the user has to."""
