"""Stored pages become columns in memory."""

from pyparq.runtime.lazy_import import load_later

load_later(__name__, "chunk_pages")
