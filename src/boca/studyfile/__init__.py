"""Studies as files, for the command `boca run`: from TOML to everything that a run needs."""

from boca.studyfile.file import STRATEGIES, Powers, StudyFile, load

__all__ = ["STRATEGIES", "Powers", "StudyFile", "load"]
