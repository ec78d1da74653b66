"""A Ray cluster of two machines in one, for as long as standard input is open.

Run by a Python that has ray: `python ray_cluster.py CPUS FOLDER`.  It prints a line of JSON:
`{"address", "head": PID, "nodes": [PID, PID]}`, with the process ids of raylets.
"""

import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ray.cluster_utils import Cluster


def main(cpus: str, folder: str) -> None:
    # Ray writes the address of the cluster there, and expects the folder.
    Path(tempfile.gettempdir(), "ray").mkdir(exist_ok=True)
    memory = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    head = {"num_cpus": 0, "temp_dir": folder, **memory}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=int(cpus), **memory) for _ in range(2)]
    head_pid, *pids = (
        each.all_processes["raylet"][0].process.pid for each in (cluster.head_node, *nodes)
    )
    found = {"address": cluster.address, "head": head_pid, "nodes": pids}
    print(json.dumps(found), flush=True)
    sys.stdin.read()
    with suppress(Exception):  # a test may have killed a part of it
        cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
