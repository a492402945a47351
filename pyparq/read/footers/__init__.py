"""What the end of a file says: schema, column chunks, statistics."""

from pyparq.runtime.lazy_import import load_later

load_later(__name__, "metadata")
