"""Settings, ports, configuration, downloads and commands of the minicluster, without Hadoop."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from submarine_jobs.backends.yarn.cluster import read_properties
from submarine_jobs.commands import complete
from submarine_jobs.frontends import Frontend
from submarine_minicluster import Minicluster, MiniclusterError, Settings
from submarine_minicluster.cli import minicluster
from submarine_minicluster.hadoop import (
    HUB,
    QUEUES,
    USERS,
    capacity_scheduler,
    ensure_certificates,
    jars,
    maven,
    password,
    port_names,
    refresh_tickets,
    resourcemanager,
    write_configuration,
    write_kerberos,
)
from submarine_minicluster.hadoop.daemons import last_errors, remove_old_sequence_numbers
from submarine_minicluster.layout import Layout
from submarine_minicluster.lifecycle import choose_settings
from submarine_minicluster.machine import check_host_name, choose_ports, is_free_port, java
from submarine_minicluster.settings import SavedCluster, parse_memory


@pytest.fixture(autouse=True)
def own_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("text", "megabytes"), [("8G", 8192), ("8192M", 8192), ("512", 512), ("1 gib", 1024)]
)
def test_parse_memory(text, megabytes):
    assert parse_memory(text) == megabytes


@pytest.mark.parametrize("text", ["", "8T", "-1G", "8.5G", "many"])
def test_invalid_memory_is_rejected(text):
    with pytest.raises(MiniclusterError, match="Write 8G"):
        parse_memory(text)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "x" * 42, "a b", "a\n"])
def test_invalid_names_are_rejected(name):
    with pytest.raises(MiniclusterError, match="is not a valid name"):
        Minicluster(name)


@pytest.mark.parametrize(
    "given", [{"hadoop": "2.10.2"}, {"hadoop": "latest"}, {"nodes": 0}, {"gpus": -1}]
)
def test_invalid_settings_are_rejected(given):
    with pytest.raises(MiniclusterError):
        Settings(**given)


def test_other_releases_of_hadoop_are_refused_with_the_list():
    done = CliRunner().invoke(minicluster, ["start", "--hadoop", "3.3.4"])
    assert (done.exit_code, done.output) == (
        1,
        "Error: The minicluster has no Hadoop '3.3.4'. Use one of 3.1.4, 3.2.4, 3.3.6, 3.4.2, "
        "3.5.0.\n",
    )
    words = ["minicluster", "start", "--hadoop", "3.4"]
    assert complete(words, Frontend()) == ["3.4.2"]


def test_saved_settings_are_read_again(tmp_path):
    path = tmp_path / "cluster.json"
    saved = SavedCluster(Settings(gpus=2, nodes=3), "/java", {"rm": 1})
    saved.write(path)
    assert SavedCluster.read(path) == saved
    assert SavedCluster.read(tmp_path / "none.json") is None
    path.write_text("{}")
    with pytest.raises(MiniclusterError, match="does not describe a minicluster"):
        SavedCluster.read(path)


def test_chosen_ports_are_free_and_distinct():
    names = port_names(3)
    first = choose_ports(names, set())
    second = choose_ports(names, set(first.values()))
    assert len(set(first.values()) | set(second.values())) == 2 * len(names)
    with socket.socket() as server:
        server.bind(("127.0.0.1", first["rm"]))
        server.listen()
        assert not is_free_port(first["rm"])
    assert is_free_port(first["rm"])


def test_unresolvable_host_name_is_reported(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "host.invalid")
    with pytest.raises(MiniclusterError, match=r"127\.0\.1\.1 host\.invalid' to /etc/hosts"):
        check_host_name()


def test_configuration_files_are_consistent(tmp_path):
    layout = Layout(tmp_path / "it's & <odd>")
    layout.make()
    chosen = choose_ports(port_names(2), set())
    saved = SavedCluster(Settings(nodes=2, gpus=3), "/java", chosen, ("ada",))
    write_configuration(layout, saved, tmp_path / "lib")

    read = read_site
    client = read(layout.client_conf / "yarn-site.xml")
    server = read(layout.conf("resourcemanager") / "yarn-site.xml")
    assert client.items() <= server.items()
    assert client["yarn.application.classpath"].endswith(str(layout.client_conf))
    nodes = [read(layout.conf(f"nodemanager-{index}") / "yarn-site.xml") for index in (0, 1)]
    assert nodes[0]["yarn.nodemanager.address"] != nodes[1]["yarn.nodemanager.address"]
    for daemon in ("namenode", "datanode", "resourcemanager", "nodemanager-0", "historyserver"):
        policy = read(layout.conf(daemon) / "hadoop-policy.xml")
        served = policy["security.service.authorization.default.acl"]
        assert served == "ada,hdfs,mapred,yarn"
        assert (
            read(layout.conf(daemon) / "core-site.xml")["hadoop.security.authorization"] == "true"
        )
    gpus = read(layout.conf("nodemanager-1") / "node-resources.xml")
    assert gpus == {"yarn.nodemanager.resource-type.yarn.io/gpu": "3"}
    queues = read(layout.conf("resourcemanager") / "capacity-scheduler.xml")
    shares = [int(queues[f"yarn.scheduler.capacity.root.{q}.capacity"]) for q in QUEUES]
    assert sum(shares) == 100
    assert queues["yarn.scheduler.capacity.root.narrow.maximum-am-resource-percent"] == "0.1"


def read_site(path: Path) -> dict[str, str]:
    root = ElementTree.parse(path).getroot()
    return {entry.findtext("name", ""): entry.findtext("value", "") for entry in root}


def secure_layout(tmp_path: Path, **options: Any) -> tuple[Layout, SavedCluster]:
    layout = Layout(tmp_path / "secure")
    layout.make()
    settings = Settings(kerberos=True, **options)
    users = (*USERS, HUB)
    saved = SavedCluster(
        settings, "/java", choose_ports(port_names(1, kerberos=True), set()), users
    )
    write_kerberos(layout, saved)
    write_configuration(layout, saved, tmp_path / "lib")
    return layout, saved


def test_a_secure_cluster_has_one_host_name_and_private_keytabs(tmp_path):
    layout, saved = secure_layout(tmp_path, https=True, token_max_lifetime=150)
    client = {path.stem: read_site(path) for path in layout.client_conf.glob("*.xml")}
    every = {name: value for site in client.values() for name, value in site.items()}
    assert not [name for name in every if "keytab" in name or "spnego" in name]
    assert not [value for value in every.values() if "127.0.0.1" in value]
    assert every["dfs.namenode.kerberos.principal"] == "hdfs/localhost@MINICLUSTER.TEST"
    assert every["dfs.namenode.https-address"] == f"localhost:{saved.ports['namenode-http']}"
    assert every["ssl.client.truststore.location"] == str(layout.truststore)
    assert every["yarn.log.server.url"].startswith("https://localhost:")
    assert {every["dfs.http.policy"], every["yarn.http.policy"]} == {"HTTPS_ONLY"}
    assert "ignore.secure.ports.for.testing" not in every
    namenode = read_site(layout.conf("namenode") / "hdfs-site.xml")
    assert namenode["dfs.namenode.keytab.file"] == str(layout.keytab("hdfs"))
    assert namenode["dfs.namenode.delegation.token.max-lifetime"] == "150000"
    assert namenode["dfs.permissions.enabled"] == "true"
    core = read_site(layout.conf("nodemanager-0") / "core-site.xml")
    assert core["hadoop.proxyuser.hub.users"] == "alice,bob"
    assert core["ipc.client.connect.max.retries"] == "100"
    filters = "hadoop.http.filter.initializers"
    assert core[filters].endswith(".ProxyUserAuthenticationFilterInitializer")
    rm = read_site(layout.conf("resourcemanager") / "core-site.xml")
    assert rm[filters] == "org.apache.hadoop.security.AuthenticationFilterInitializer"
    assert not [name for name in core if "proxyuser.yarn" in name]
    node = read_site(layout.conf("nodemanager-0") / "yarn-site.xml")
    assert node["yarn.nodemanager.env-whitelist"].endswith(",JAVA_TOOL_OPTIONS,KRB5_CONFIG")
    queues = read_site(layout.conf("resourcemanager") / "capacity-scheduler.xml")
    assert queues["yarn.scheduler.capacity.root.acl_administer_queue"] == " "
    assert f"kdc = 127.0.0.1:{saved.ports['kdc']}\n" in layout.krb5_conf.read_text()
    assert layout.principals.stat().st_mode & 0o777 == 0o600


def test_a_secure_cluster_without_https_has_http_addresses(tmp_path):
    layout, saved = secure_layout(tmp_path, proxy_user_privileges=True)
    hdfs = read_site(layout.client_conf / "hdfs-site.xml")
    assert hdfs["dfs.namenode.http-address"] == f"localhost:{saved.ports['namenode-http']}"
    assert hdfs["ignore.secure.ports.for.testing"] == "true"
    assert hdfs["dfs.http.policy"] == "HTTP_ONLY"
    assert not (layout.client_conf / "ssl-client.xml").exists()
    core = read_site(layout.conf("resourcemanager") / "core-site.xml")
    assert core["hadoop.proxyuser.yarn.users"] == "*"
    rm = read_site(layout.conf("resourcemanager") / "yarn-site.xml")
    assert rm["yarn.resourcemanager.proxy-user-privileges.enabled"] == "true"


@pytest.mark.parametrize("secure", [False, True])
def test_a_cluster_with_high_availability_has_two_of_a_kind(tmp_path, secure):
    layout = Layout(tmp_path / "ha")
    layout.make()
    settings = Settings(ha=True, kerberos=secure, https=secure)
    ports = choose_ports(port_names(1, kerberos=secure, ha=True), set())
    saved = SavedCluster(settings, "/java", ports, (*USERS, HUB))
    if secure:
        write_kerberos(layout, saved)
    write_configuration(layout, saved, tmp_path / "lib")
    client = {path.stem: read_site(path) for path in layout.client_conf.glob("*.xml")}
    hdfs, yarn = client["hdfs-site"], client["yarn-site"]
    assert client["core-site"]["fs.defaultFS"] == "hdfs://minicluster"
    assert hdfs["dfs.ha.namenodes.minicluster"] == "nn1,nn2"
    word, web = ("https", "webapp.https") if secure else ("http", "webapp")
    host, rm = settings.host, "yarn.resourcemanager"
    second = hdfs[f"dfs.namenode.{word}-address.minicluster.nn2"]
    assert second == f"{host}:{ports['namenode-2-http']}"
    assert yarn[f"{rm}.{web}.address.rm1"] == f"{host}:{ports['rm-http']}"
    assert yarn[f"{rm}.resource-tracker.address.rm2"] == f"{host}:{ports['rm-2-tracker']}"
    # A name without an id would be that of one daemon only.
    alone = {f"{rm}.address", f"{rm}.hostname", "dfs.namenode.rpc-address"}
    assert not alone & {*hdfs, *yarn}
    assert not {f"{rm}.ha.id", "dfs.ha.namenode.id"} & {*hdfs, *yarn}
    for number, suffix in ((1, ""), (2, "-2")):
        own = read_site(layout.conf(f"namenode{suffix}") / "hdfs-site.xml")
        assert own["dfs.ha.namenode.id"] == f"nn{number}"
        assert own["dfs.namenode.name.dir"] == f"file://{layout.data(f'namenode{suffix}')}"
        own = read_site(layout.conf(f"resourcemanager{suffix}") / "yarn-site.xml")
        assert own[f"{rm}.ha.id"] == f"rm{number}"
    assert read_site(layout.conf("nodemanager-0") / "hdfs-site.xml").items() >= {
        (name, value) for name, value in hdfs.items() if "minicluster" in name
    }


def test_only_the_highest_sequence_number_of_tokens_is_kept(tmp_path):
    folder = tmp_path / "FSRMStateRoot" / "RMDTSecretManagerRoot"
    remove_old_sequence_numbers(tmp_path)  # before the first start
    folder.mkdir(parents=True)
    kept = {"RMDTSequenceNumber_12", ".RMDTSequenceNumber_12.crc", "RMDelegationToken_9"}
    for name in (*kept, "RMDTSequenceNumber_9", ".RMDTSequenceNumber_9.crc"):
        (folder / name).touch()
    remove_old_sequence_numbers(tmp_path)
    assert {path.name for path in folder.iterdir()} == kept


def test_a_failover_requires_high_availability(tmp_path):
    cluster = Minicluster("plain")
    cluster.layout.make()
    SavedCluster(Settings(), "/java").write(cluster.layout.cluster_file)
    words = ["failover", "namenode", "--name", "plain"]
    refused = CliRunner().invoke(minicluster, words)
    assert refused.exit_code == 1
    assert "'plain' has no high availability" in refused.output
    with pytest.raises(MiniclusterError, match="was created without high availability"):
        choose_settings("plain", cluster.saved, Settings(ha=True), running=False)
    with pytest.raises(MiniclusterError, match=r"'datanode' never has a standby. Use nam"):
        cluster.active("datanode")
    ports = choose_ports(port_names(1, ha=True), set())
    SavedCluster(Settings(ha=True), "/java", ports).write(cluster.layout.cluster_file)
    stopped = CliRunner().invoke(minicluster, words)
    assert stopped.exit_code == 1
    assert "No standby namenode of minicluster 'plain' answers." in stopped.output


def test_passwords_are_random_and_kept(tmp_path):
    layout, saved = secure_layout(tmp_path)
    first = [password(layout, user) for user in (*USERS, HUB)]
    assert len(set(first)) == 3
    assert all(len(one) >= 16 for one in first)
    saved.users = (*saved.users, "ada")
    write_kerberos(layout, saved)
    assert [password(layout, user) for user in (*USERS, HUB)] == first
    assert password(layout, "ada") not in first
    with pytest.raises(MiniclusterError, match=r"no Kerberos user 'eve'. Use one of .*bob.*ada"):
        password(layout, "eve")


@pytest.mark.slow
def test_certificates_name_the_host_and_are_kept(tmp_path):
    layout, _ = secure_layout(tmp_path, https=True)
    ensure_certificates(layout, "localhost")
    (authority,) = x509.load_pem_x509_certificates(layout.ca.read_bytes())
    _, server, others = pkcs12.load_key_and_certificates(layout.keystore.read_bytes(), b"changeit")
    assert server is not None
    server.verify_directly_issued_by(authority)
    assert others == [authority]
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    before = layout.keystore.read_bytes()
    ensure_certificates(layout, "localhost")
    assert layout.keystore.read_bytes() == before


def test_options_that_require_kerberos_are_rejected_without_it():
    for wrong in (
        {"https": True},
        {"token_max_lifetime": 60},
        {"proxy_user_privileges": True},
        {"protection": "privacy"},
    ):
        with pytest.raises(MiniclusterError, match=r"require Kerberos \(--kerberos\)"):
            Settings(**wrong)
    with pytest.raises(MiniclusterError, match="The protection 'none' is not one of"):
        Settings(kerberos=True, protection="none")
    with pytest.raises(MiniclusterError, match="ticket_lifetime is 1"):
        Settings(kerberos=True, ticket_lifetime=1)


def test_a_cluster_keeps_its_authentication(tmp_path):
    old = SavedCluster(Settings(), "/java")
    with pytest.raises(MiniclusterError, match="was created without Kerberos"):
        choose_settings("x", old, Settings(kerberos=True), running=False)


def test_a_java_without_compiler_is_reported(tmp_path):
    with pytest.raises(MiniclusterError, match=r"/nowhere/bin/javac does not exist. Install a JDK"):
        jars.ensure_kdc("3.5.0", JAVA, print)
    assert not jars.kdc_dir("3.5.0").exists()


@pytest.mark.slow
def test_a_missing_kdc_is_reported(tmp_path):
    layout, saved = secure_layout(tmp_path)
    with pytest.raises(MiniclusterError, match="Kerberos gave no ticket: Cannot contact any KDC"):
        refresh_tickets(layout, saved, "alice")


def test_start_shows_the_users_of_a_secure_cluster(tmp_path, monkeypatch):
    def start(self: Minicluster, settings: Settings, progress: object) -> None:
        self.layout.make()
        ports = choose_ports(port_names(1, kerberos=True), set())
        saved = SavedCluster(settings, "/java", ports, (*USERS, HUB))
        saved.write(self.layout.cluster_file)
        write_kerberos(self.layout, saved)

    monkeypatch.setattr(Minicluster, "start", start)
    words = ["start", "--name", "safe", "--kerberos", "--https"]
    started = CliRunner().invoke(minicluster, words)
    assert started.exit_code == 0, started.output
    assert "does not verify" not in started.stderr
    cluster = Minicluster("safe")
    assert 'eval "$(submarine minicluster env --name safe --user alice)"' in started.stdout
    assert cluster.password("bob") in started.stdout
    assert str(cluster.keytab("hub")) in started.stdout
    assert str(cluster.ca) in started.stdout
    exports = CliRunner().invoke(minicluster, ["env", "--name", "safe"]).output
    assert f"export KRB5_CONFIG={cluster.layout.krb5_conf}\n" in exports
    assert "KRB5CCNAME" not in exports
    daemons = json.loads(
        CliRunner().invoke(minicluster, ["status", "--name", "safe", "--json"]).output
    )["daemons"]
    assert daemons[0]["name"] == "kdc"
    assert cluster.url("namenode").startswith("https://localhost:")


def test_a_user_of_a_cluster_without_kerberos_has_no_ticket():
    cluster = Minicluster("plain")
    cluster.layout.make()
    SavedCluster(Settings(), "/java").write(cluster.layout.cluster_file)
    with pytest.raises(MiniclusterError, match=r"has no Kerberos: .*HADOOP_USER_NAME"):
        cluster.env("alice")


def fake_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_old_or_missing_java_is_reported(tmp_path, monkeypatch):
    old = fake_program(
        tmp_path / "old" / "bin" / "java", "echo 'openjdk version \"1.8.0_392\"' >&2"
    )
    monkeypatch.setattr(java, "_candidates", lambda: [old.parent.parent, tmp_path / "none"])
    with pytest.raises(MiniclusterError, match=r"^Java 8 in .*/old is too old .*openjdk-17") as e:
        java.find_java()
    assert "\n" not in str(e.value)
    monkeypatch.setattr(java, "_candidates", lambda: [tmp_path / "none"])
    with pytest.raises(MiniclusterError, match=r"^No Java was found"):
        java.find_java()
    new = fake_program(tmp_path / "new" / "bin" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setattr(java, "_candidates", lambda: [old.parent.parent, new.parent.parent])
    assert java.find_java().major == 21


def test_a_named_java_has_any_version_up_to_a_maximum(tmp_path):
    old = fake_program(tmp_path / "old" / "bin" / "java", "echo 'java version \"1.8.0_392\"' >&2")
    new = fake_program(tmp_path / "new" / "bin" / "java", "echo 'openjdk version \"11.0.1\"' >&2")
    (tmp_path / "new" / "lib").mkdir()
    (tmp_path / "new" / "lib" / "modules").touch()
    found = java.java_at(old.parent.parent, maximum=8)
    assert (found.major, found.has_modules) == (8, False)
    found = java.java_at(new.parent.parent)
    assert (found.major, found.has_modules) == (11, True)
    with pytest.raises(MiniclusterError, match=r"^Java 11 in .*/new is too new .* Java 8\.$"):
        java.java_at(new.parent.parent, maximum=8)
    with pytest.raises(MiniclusterError, match=r"^.*/none has no Java that runs"):
        java.java_at(tmp_path / "none")


def test_an_older_hdfs_is_one_of_the_known_without_kerberos():
    settings = Settings(hadoop="3.1.4", hdfs="2.10.2", java="/old")
    assert settings.describe().startswith("Hadoop 3.1.4 with HDFS 2.10.2, 1 node")
    assert settings.describe().endswith(", Java /old")
    with pytest.raises(MiniclusterError, match=r"^The minicluster has no HDFS '2\.9\.1'"):
        Settings(hdfs="2.9.1")
    for more in ("kerberos", "ha", "encryption_zones"):
        other: dict[str, Any] = {more: True}
        with pytest.raises(MiniclusterError, match=r"^Another release of HDFS and another Java"):
            replace(settings, **other)
    old = SavedCluster(settings, "/new")
    with pytest.raises(MiniclusterError, match=r"written by Hadoop 3\.1\.4 with HDFS 2\.10\.2"):
        choose_settings("one", old, Settings(hadoop="3.1.4"), running=False)


JAVA = java.Java(Path("/nowhere"), 17)


def test_missing_or_failing_maven_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(
        MiniclusterError, match=r"^Maven \(mvn\), which downloads Hadoop 3\.5\.0, is not on PATH"
    ):
        jars.ensure_jars("3.5.0", JAVA, print)
    script = f'echo x >>"{tmp_path}/calls"; echo "[ERROR] Could not find artifact 3.9.9"; exit 1'
    fake_program(tmp_path / "bin" / "mvn", script)
    with pytest.raises(
        MiniclusterError, match=r"could not download Hadoop 3\.9\.9: Could not find"
    ):
        jars.ensure_jars("3.9.9", JAVA, print)
    assert not jars.lib_dir("3.9.9").exists()
    assert (tmp_path / "calls").read_text() == "x\n", "a missing artifact is requested once"


def test_maven_is_run_again_after_a_failed_download(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(maven, "PAUSE", 0.0)
    script = 'for a; do case "$a" in -DoutputDirectory=*) d=${a#*=};; esac; done\n'
    script += f'echo x >>"{tmp_path}/calls"; test "$(wc -l <"{tmp_path}/calls")" -ge "$ENOUGH" ||\n'
    script += '  { echo "[ERROR] Could not transfer artifact: Connection reset"; exit 1; }\n'
    script += 'mkdir "$d"; echo >"$d/a.jar"'
    fake_program(tmp_path / "bin" / "mvn", script)
    monkeypatch.setenv("ENOUGH", "9")
    with pytest.raises(MiniclusterError, match=r"^Maven could not download it: Could not transfer"):
        maven.copy_jars("it", tmp_path / "pom.xml", tmp_path / "lib", JAVA, (), print)
    assert (tmp_path / "calls").read_text() == "x\n" * maven.ATTEMPTS
    (tmp_path / "calls").unlink()
    monkeypatch.setenv("ENOUGH", "2")
    said: list[str] = []
    maven.copy_jars("it", tmp_path / "pom.xml", tmp_path / "lib", JAVA, (), said.append)
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["a.jar"]
    (again,) = said
    assert again.endswith("trying again in 0 s: Could not transfer artifact: Connection reset")


def test_full_disk_is_reported(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr("submarine_minicluster.hadoop.jars.shutil.disk_usage", lambda path: usage)
    with pytest.raises(MiniclusterError, match=r"has 1 MB free .*needs 600 MB"):
        jars.check_disk(tmp_path, 600 << 20)


@pytest.mark.slow
def test_parallel_downloads_run_maven_once(tmp_path, monkeypatch):
    script = 'for a; do case "$a" in -DoutputDirectory=*) d=${a#*=};; esac; done\n'
    script += f'echo x >>"{tmp_path}/calls"; /bin/sleep 0.3; /bin/mkdir "$d"; echo >"$d/a.jar"'
    fake_program(tmp_path / "bin" / "mvn", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found: list[Path] = []
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(jars.ensure_jars("3.5.0", JAVA, said.append)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [jars.lib_dir("3.5.0")] * 2
    assert [path.name for path in found[0].iterdir()] == ["a.jar"]
    assert (tmp_path / "calls").read_text() == "x\n"


def test_last_errors_of_a_log_are_quoted_without_the_stack(tmp_path):
    log = tmp_path / "daemon.log"
    log.write_text(
        "2026 INFO all is well\n2026 ERROR cannot start\njava.net.BindException: in use\n"
        "\tat java.base/sun.nio.ch.Net.bind0(Native Method)\n2026 INFO goodbye\n"
    )
    assert last_errors(log) == ["2026 ERROR cannot start", "java.net.BindException: in use"]
    log.write_text("only\nwords\n")
    assert last_errors(log, tmp_path / "absent") == ["only", "words"]


def test_commands_on_a_cluster_that_was_never_started():
    runner = CliRunner()
    for command in ("status", "env", "logs"):
        result = runner.invoke(minicluster, [command, "--name", "absent"])
        assert result.exit_code == 1
        assert "There is no minicluster 'absent'." in result.output
        assert "`submarine minicluster start --name absent`" in result.output
    assert "was not running" in runner.invoke(minicluster, ["stop", "--name", "absent"]).output
    refused = runner.invoke(minicluster, ["start", "--memory", "lots"])
    assert refused.exit_code == 1
    assert "Write 8G" in refused.output


def test_status_of_a_stopped_cluster():
    cluster = Minicluster("asleep")
    cluster.layout.make()
    chosen = choose_ports(port_names(1), set())
    SavedCluster(Settings(), "/java", chosen).write(cluster.layout.cluster_file)
    result = CliRunner().invoke(minicluster, ["status", "--name", "asleep", "--json"])
    document = json.loads(result.output)
    assert document["state"] == "stopped"
    assert document["default_fs"] == f"hdfs://127.0.0.1:{chosen['namenode']}"
    assert [daemon["running"] for daemon in document["daemons"]] == [False] * 5
    exports = CliRunner().invoke(minicluster, ["env", "--name", "asleep"]).output
    assert f"export HADOOP_CONF_DIR={cluster.layout.client_conf}\n" in exports
    assert exports.endswith(':"$PATH"\n')


def test_labels_preemption_and_expiry_are_configured(tmp_path: Path) -> None:
    settings = Settings(nodes=2, preemption=True, labels=("fast=1",), node_expiry=5)
    assert settings.node_labels == [("fast", 1)]
    path = tmp_path / "cluster.json"
    SavedCluster(settings, "/java").write(path)
    again = SavedCluster.read(path)
    assert again is not None
    assert again.settings == settings
    rm = resourcemanager(Layout(tmp_path), settings)
    assert rm["yarn.nm.liveness-monitor.expiry-interval-ms"] == "5000"
    assert rm["yarn.resourcemanager.scheduler.monitor.enable"] == "true"
    assert rm["yarn.node-labels.enabled"] == "true"
    plain = resourcemanager(Layout(tmp_path), Settings())
    assert not {key for key in plain if "preemption" in key or "node-labels" in key}
    queues = capacity_scheduler(settings)
    shares = [v for k, v in queues.items() if k.endswith(".fast.capacity") and ".root.a" not in k]
    assert sum(map(int, shares)) == 100
    for wrong in ("fast", "fast=2", "=1", "a b=0"):
        with pytest.raises(MiniclusterError, match="is not a label"):
            Settings(nodes=2, labels=(wrong,))


def test_properties_replace_those_of_clients_and_daemons(tmp_path: Path) -> None:
    properties = ("dfs.replication=a=b", "yarn.acl.enable=", "fs.trash.interval=<7>")
    settings = Settings(kerberos=True, https=True, properties=properties)
    assert settings.describe().endswith(f", {' '.join(properties)}")
    path = tmp_path / "cluster.json"
    SavedCluster(settings, "/java").write(path)
    again = SavedCluster.read(path)
    assert again is not None
    assert again.settings == settings
    layout = Layout(tmp_path)
    ports = choose_ports(port_names(1), set())
    write_configuration(layout, SavedCluster(settings, "/java", ports), tmp_path)
    for directory in (layout.client_conf, layout.conf("namenode"), layout.conf("nodemanager-0")):
        assert read_properties(directory / "hdfs-site.xml")["dfs.replication"] == "a=b"
        assert read_properties(directory / "yarn-site.xml")["yarn.acl.enable"] == ""
        core = read_properties(directory / "core-site.xml")
        assert core["fs.trash.interval"] == "<7>"
        assert "dfs.replication" not in core
    for wrong in ("dfs.replication", "=1", "a b=c"):
        with pytest.raises(MiniclusterError, match="is not a property of Hadoop"):
            Settings(properties=(wrong,))


def test_start_warns_of_simple_authentication(monkeypatch):
    monkeypatch.setattr(Minicluster, "start", lambda self, settings, progress: None)
    started = CliRunner().invoke(minicluster, ["start", "--name", "absent"])
    assert started.exit_code == 0
    assert "Hadoop does not verify the user name that a client gives" in started.stderr
    assert "Ready (Hadoop 3.5.0" in started.stdout


def test_configuration_files_are_replaced_atomically(tmp_path: Path) -> None:
    """Daemons reload their files while they run, and end if a file is incomplete."""
    layout = Layout(tmp_path / "cluster")
    layout.make()
    saved = SavedCluster(Settings(), "/java", choose_ports(port_names(1), set()), ())
    write_configuration(layout, saved, tmp_path / "lib")
    files = sorted(layout.root.rglob("*.xml"))
    assert layout.client_conf / "core-site.xml" in files
    before = {file: file.read_bytes() for file in files}
    with ExitStack() as stack:
        opened = {file: stack.enter_context(file.open("rb")) for file in files}
        write_configuration(layout, saved, tmp_path / "lib")
        for file, stream in opened.items():
            assert stream.read() == before[file]
            assert os.fstat(stream.fileno()).st_ino != file.stat().st_ino
