"""Runs a Ray cluster of two nodes with one CPU each until standard input is closed.

Prints its address.
"""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    try:
        print(cluster.address, flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()
