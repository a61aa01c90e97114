"""The core of the cluster's tests, on each release of Hadoop and with two clients.

The tests are those of other modules, which run on the newest release; here they use the clusters
of ``conftest``. ``scripts/hadoop_versions.py`` writes their results into the documentation.
"""

from __future__ import annotations

import subprocess

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import get_json
from tests.cluster.data import test_storage_hdfs
from tests.cluster.data.test_storage_hdfs import (
    place as place,
    storage as storage,
    test_one_winner_among_many as test_one_winner_among_many,
    test_publish_replaces_and_reads_by_offset as test_publish_replaces_and_reads_by_offset,
)
from tests.cluster.jobs import test_core_jobs, test_distributed_yarn
from tests.cluster.jobs.test_core_jobs import (
    finished as finished,
    test_a_secret_reaches_the_tasks_of_a_gang as test_a_secret_reaches_the_tasks_of_a_gang,
    test_cancelled_while_it_waits_for_resources as test_cancelled_while_it_waits_for_resources,
    test_every_ending_has_its_reason as test_every_ending_has_its_reason,
    test_killed_on_the_cluster as test_killed_on_the_cluster,
    test_rerun_needs_the_job_directory_alone as test_rerun_needs_the_job_directory_alone,
    test_two_kernels_submit_at_once as test_two_kernels_submit_at_once,
)
from tests.cluster.versions.conftest import Pair
from tests.cluster.yarn.test_yarn_refusals import (
    test_a_container_beyond_the_maximum as test_a_container_beyond_the_maximum,
    test_a_queue_that_holds_queues as test_a_queue_that_holds_queues,
    test_the_plan_refuses_what_can_never_fit as test_the_plan_refuses_what_can_never_fit,
)

pytestmark = [pytest.mark.cluster, pytest.mark.full]

test_large_files_go_through = test_storage_hdfs.test_large_files_go_through_without_being_held
test_the_resourcemanager_restarts = (
    test_core_jobs.test_the_resourcemanager_restarts_while_the_job_runs
)
test_a_gang_of_two_roles = test_distributed_yarn.test_a_gang_of_two_roles_from_one_application
test_a_master_that_dies = (
    test_distributed_yarn.test_a_master_that_dies_is_started_again_with_the_same_orders
)


@pytest.fixture(scope="session")
def backend(yarn_profile: Profile) -> YarnBackend:
    return YarnBackend(yarn_profile)


def test_cluster_and_client_have_their_releases(
    pair: Pair, minicluster: Minicluster, yarn_profile: Profile
) -> None:
    info = get_json(f"{minicluster.url('resourcemanager')}/ws/v1/cluster/info")["clusterInfo"]
    assert info["hadoopVersion"] == pair.cluster
    query = f"{minicluster.url('namenode')}/jmx?qry="
    namenode = get_json(f"{query}Hadoop:service=NameNode,name=NameNodeInfo")["beans"][0]
    assert namenode["SoftwareVersion"] == (pair.hdfs or pair.cluster)
    java = get_json(f"{query}java.lang:type=Runtime")["beans"][0]["SpecVersion"]
    assert not pair.java or java == {8: "1.8"}.get(pair.java, str(pair.java))
    told = subprocess.run(
        [yarn_profile.settings["yarn_command"], "version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.stdout.splitlines()[0] == f"Hadoop {pair.client}"
