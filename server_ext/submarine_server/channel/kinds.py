"""The kinds of subscription that there are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from submarine_server.channel.feed import Feed
from submarine_server.channel.job_feed import JobFeed
from submarine_server.channel.jobs_feed import JobsFeed
from submarine_server.channel.log_feed import LogFeed
from submarine_server.channel.metrics_feed import MetricsFeed
from submarine_server.channel.starts_feed import StartsFeed
from submarine_server.channel.workflow_feed import WorkflowFeed

KINDS: Mapping[str, type[Feed]] = MappingProxyType(
    {
        feed.kind: feed
        for feed in (JobsFeed, JobFeed, LogFeed, MetricsFeed, StartsFeed, WorkflowFeed)
    }
)
