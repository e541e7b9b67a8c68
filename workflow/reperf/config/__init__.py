"""What a report holds: the one definition of the configuration.

The check before a workflow starts, the JSON Schema and docs/configuration.md are all made from
these models.
"""

from reperf.config.data import Data
from reperf.config.parallelism import Parallel
from reperf.config.report import Report, load_report
from reperf.config.run import Cell, Run, runs_of
from reperf.config.site import Cluster, Container, Engine, SiteEnvironment
from reperf.config.suite import Entry, LogSource, Suite, Window
from reperf.config.words import topology_shape

__all__ = ["Cell", "Cluster", "Container", "Data", "Engine", "Entry", "LogSource", "Parallel"]
__all__ += ["Report", "Run", "SiteEnvironment", "Suite", "Window"]
__all__ += ["load_report", "runs_of", "topology_shape"]
