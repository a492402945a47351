"""Which row groups and pages of a file can match, and which bytes that takes."""

from pyparq.runtime.lazy_import import load_later

load_later(__name__, "bloom_probe", "page_indexes", "prune", "scan_plan")
