"""Studies as files, for the command `boca run`: from TOML to everything that a run needs."""

from boca.studyfile.file import Powers, StudyFile, load

__all__ = ["Powers", "StudyFile", "load"]
