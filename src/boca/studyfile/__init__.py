"""Studies as files, for the command `boca run`: TOML in, everything that a run needs out."""

from boca.studyfile.file import STRATEGIES, Powers, StudyFile, load

__all__ = ["STRATEGIES", "Powers", "StudyFile", "load"]
