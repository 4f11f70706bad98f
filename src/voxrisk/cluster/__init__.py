"""Ray behind :mod:`voxrisk.shards`: the same stages, on every machine of a cluster.

Ray places the workers, starts others where a machine is lost, and moves what they need. A worker is
a process (a Ray actor) that lives through the whole command, so a model is loaded once in each.
What is here hands out the items, gives an item of a lost worker to another one, and puts results
into the order of the items. Workers write their results to files themselves, as they do on one
machine, so all machines must see the same folders under the same names: this is looked at before
the first item is done.

``engines`` reads what was asked for, ``crew`` has the workers of a command, ``turn`` brings one
stage to them, ``worker`` is what runs on the other machines, ``gang`` is for processes that need
each other: a training.
"""

from voxrisk.cluster.crew import Crew
from voxrisk.cluster.engines import Cluster, read_engine
from voxrisk.cluster.worker import machine

__all__ = ["Cluster", "Crew", "machine", "read_engine"]
