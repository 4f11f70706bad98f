"""Speech to work on: one plain table of utterances, whatever the corpus looked like on disk."""

from voxrisk.corpus.audio import read_audio, write_audio
from voxrisk.corpus.reading import read_corpus
from voxrisk.corpus.table import Utterance, file_name, write_corpus

__all__ = ["Utterance", "file_name", "read_audio", "read_corpus", "write_audio", "write_corpus"]
