"""Options of ``run`` on data, environment, cluster and flow."""

from __future__ import annotations

import click

from submarine_jobs.commands.grammar import (
    backend_option,
    complete_jobs,
    complete_queues,
    option,
    profile_option,
)
from submarine_jobs.commands.run.option_types import (
    ARCHIVE,
    CONF,
    ENV,
    FILE,
    INPUT,
    INTERFACE,
    KEEP,
    LOCALIZATION,
    PARAM,
    PYTHON_ENV,
    QUICKLINK,
    RETURN,
    WITH,
    count,
    place,
    together,
)
from submarine_runtime.protocol.coordinator_config import RESTORE_POLICIES

DATA = together(
    [
        option(
            "--input",
            "inputs",
            type=INPUT,
            metavar="NAME=URI[:shard[=ROLES]]",
            multiple=True,
            heading="Data",
            help="Fetch it before the start; :shard shares it out over training tasks; repeatable.",
        ),
        option("--input_path", metavar="URI", heading="Data", help="Input; fills %input_path%."),
        option(
            "--checkpoint_path",
            metavar="URI",
            heading="Data",
            help="Restore checkpoints from here and keep them here; fills %checkpoint_path%.",
        ),
        option(
            "--saved_model_path", metavar="URI", heading="Data", help="Fills %saved_model_path%."
        ),
        option(
            "--resume",
            metavar="JOB",
            heading="Data",
            shell_complete=complete_jobs,
            help="Begin with the newest checkpoint of that job.",
        ),
        option(
            "--restore",
            type=click.Choice(RESTORE_POLICIES),
            heading="Data",
            help="Rule for the restore point of several tasks; see docs/data.md [auto].",
        ),
        option(
            "--param",
            type=PARAM,
            metavar="NAME=VALUE",
            multiple=True,
            heading="Data",
            help="Parameter of the program, JSON or text; repeatable.",
        ),
        option(
            "--file",
            type=FILE,
            metavar="SRC[:TARGET]",
            multiple=True,
            heading="Data",
            help="Bring a file or directory along; repeatable.",
        ),
        option(
            "--archive",
            type=ARCHIVE,
            metavar="SRC[:DIR]",
            multiple=True,
            heading="Data",
            help="Bring an archive along and unpack it; repeatable.",
        ),
        option(
            "--localization",
            type=LOCALIZATION,
            metavar="SRC:TARGET[:rw]",
            multiple=True,
            heading="Data",
            help="As --file, in Submarine's words; with :rw a copy to change; repeatable.",
        ),
        option(
            "--with",
            "with_names",
            type=WITH,
            metavar="NAMES",
            multiple=True,
            heading="Data",
            help="Send the values of these variables: x,y.",
        ),
        option(
            "--return",
            "return_names",
            type=RETURN,
            metavar="NAMES",
            multiple=True,
            heading="Data",
            help="Bring these variables of the program back: acc,history.",
        ),
        option(
            "--return-all-ranks",
            is_flag=True,
            heading="Data",
            help="Bring them back from every rank, not only from rank 0.",
        ),
        option(
            "--keep",
            type=KEEP,
            metavar="PATTERN",
            multiple=True,
            heading="Data",
            help="Save these files of the working directory: 'runs/*'; repeatable.",
        ),
    ]
)

ENVIRONMENT = together(
    [
        option(
            "--python-env",
            type=PYTHON_ENV,
            metavar="ENV",
            heading="Environment",
            help="Python on the nodes: host, path:DIR, auto, archive:URI or docker:IMAGE [host].",
        ),
        option(
            "--docker_image", metavar="IMAGE", heading="Environment", help="Image of all tasks."
        ),
        option(
            "--env",
            type=ENV,
            metavar="K=V",
            multiple=True,
            heading="Environment",
            help="Environment variable of the program; repeatable.",
        ),
    ]
)

CLUSTER = together(
    [
        option(
            "--queue",
            metavar="QUEUE",
            heading="Cluster",
            help="Queue [the profile's].",
            shell_complete=complete_queues,
        ),
        option(
            "--priority",
            type=count("The priority"),
            metavar="N",
            heading="Cluster",
            help="Priority within the queue, the higher the sooner [the queue's].",
        ),
        option(
            "--node-label",
            type=place("a node label"),
            metavar="LABEL",
            heading="Cluster",
            help="Only on nodes with this label.",
        ),
        option(
            "--node",
            "nodes",
            type=place("a node"),
            metavar="NODE",
            multiple=True,
            heading="Cluster",
            help="Only on this node; repeatable.",
        ),
        option(
            "--rack",
            "racks",
            type=place("a rack"),
            metavar="RACK",
            multiple=True,
            heading="Cluster",
            help="Only in this rack; repeatable.",
        ),
        option(
            "--spread", is_flag=True, heading="Cluster", help="Put tasks of a role on many nodes."
        ),
        option(
            "--avoid-node",
            "avoid_nodes",
            type=place("a node"),
            metavar="NODE",
            multiple=True,
            heading="Cluster",
            help="Not on this node; repeatable.",
        ),
        option(
            "--network-interface",
            type=INTERFACE,
            metavar="IF",
            heading="Cluster",
            help="Interface that tasks talk over: eth0, ib0 [found out on each node].",
        ),
        profile_option,
        backend_option,
        option(
            "--conf",
            type=CONF,
            metavar="K=V",
            multiple=True,
            heading="Cluster",
            help="Setting of the profile for this run; repeatable.",
        ),
        option(
            "--quicklink",
            type=QUICKLINK,
            metavar="LABEL=URL",
            multiple=True,
            heading="Cluster",
            help="Link shown with the job; worker-0 stands for its host; repeatable.",
        ),
    ]
)

FLOW = together(
    [
        option(
            "--wait",
            aliases=("--wait_job_finish",),
            is_flag=True,
            heading="Flow",
            help="Stay until the job has ended, showing its log.",
        ),
        option(
            "--on-interrupt",
            type=click.Choice(("detach", "cancel")),
            default="detach",
            heading="Flow",
            help="What Ctrl-C does to a job that is waited for [detach], or to the jobs of a "
            "notebook that is executed [cancel; detach with --run-id].",
        ),
        option("--dry-run", is_flag=True, heading="Flow", help="Check and show, submit nothing."),
        option(
            "--force",
            is_flag=True,
            heading="Flow",
            help="Go on in spite of what the checks found.",
        ),
        option("--verbose", is_flag=True, heading="Flow", help="Say each step."),
    ]
)
