"""The default file system: HDFS, a view of it, or another one, which is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_data.remote import ClientConfiguration, hdfs_clients
from submarine_jobs.backends.yarn.cluster import (
    HadoopConf,
    Identity,
    default_file_system,
    write_properties,
)
from submarine_jobs.backends.yarn.driver.process import write_overlay
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import Profile

TABLE = "fs.viewfs.mounttable.sub"
VIEW = {
    "fs.defaultFS": "viewfs://sub/",
    f"{TABLE}.link./user": "hdfs://nn1:8020/home",
    f"{TABLE}.link./data": "hdfs://nn1:8020/data",
    f"{TABLE}.link./other": "hdfs://nn2:8020/other",
    "dfs.namenode.http-address": "nn1:50070",
}


def conf_of(tmp_path: Path, settings: dict[str, str]) -> HadoopConf:
    (tmp_path / "core-site.xml").write_bytes(write_properties(settings))
    return HadoopConf(tmp_path)


def test_a_view_has_the_job_directories_where_it_links_the_homes(tmp_path: Path) -> None:
    conf = conf_of(tmp_path, VIEW)
    assert (conf.default_fs, conf.webhdfs) == ("hdfs://nn1:8020", ["http://nn1:50070"])
    identity = Identity(Profile(), conf)
    storage = default_file_system(Profile(), conf, identity)
    paths = {
        "/user/ada/submarine": "/home/ada/submarine",
        "viewfs://sub/data/x": "/data/x",
        "viewfs:///data/x": "/data/x",
        "hdfs://nn1:8020/data/x": "/data/x",
        "/other/x": None,
        "viewfs://sub/other/x": None,
        "/elsewhere": "/elsewhere",
    }
    assert {uri: storage.path_of(uri) for uri in paths} == paths
    overlay = HadoopConf(write_overlay(conf, tmp_path / "overlay", 20))
    assert overlay.get("fs.defaultFS") == "hdfs://nn1:8020"
    assert overlay.get("dfs.user.home.dir.prefix") == "/home"


def test_programs_find_the_web_address_of_a_view(tmp_path: Path) -> None:
    configuration = ClientConfiguration(hdfs_clients(conf_of(tmp_path, VIEW).properties))
    place = configuration.place("viewfs:///data/x")
    assert (place.service, place.urls, place.path) == (
        "hdfs://nn1:8020",
        ("http://nn1:50070",),
        "/data/x",
    )


def test_a_fallback_serves_the_homes(tmp_path: Path) -> None:
    conf = conf_of(
        tmp_path,
        {"fs.defaultFS": "viewfs://sub", f"{TABLE}.linkFallback": "hdfs://nn3:8020/"},
    )
    assert conf.default_fs == "hdfs://nn3:8020"
    assert conf.default_changes["dfs.user.home.dir.prefix"] == "/user"


@pytest.mark.parametrize("links", [{}, {f"{TABLE}.link./user": "s3a://bucket/user"}])
def test_a_view_without_homes_in_hdfs_is_refused(tmp_path: Path, links: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as error:
        _ = conf_of(tmp_path, {"fs.defaultFS": "viewfs://sub", **links}).default_fs
    assert str(error.value) == (
        f"fs.defaultFS in {tmp_path}/core-site.xml is viewfs://sub, and its mount table links "
        "/user to no hdfs:// address. Add fs.viewfs.mounttable.sub.link./user."
    )


@pytest.mark.parametrize("url", ["s3a://bucket", "abfs://c@a.example", "file:///", "wasb://c@a"])
def test_another_file_system_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as error:
        _ = conf_of(tmp_path, {"fs.defaultFS": url}).default_fs
    assert str(error.value) == (
        f"fs.defaultFS in {tmp_path}/core-site.xml is {url.rstrip('/')}. Submarine needs an HDFS "
        "there, such as hdfs://namenode:8020."
    )
