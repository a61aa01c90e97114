#!/bin/sh
# Builds Azkaban's solo server from a checkout of its source and runs it on loopback, for
# test_azkaban_conformance.py: no Azkaban comes from a package registry, and its own build wants
# Gradle 5 and Node 8. Left out: Rest.li, the pages' style and scripts, job types of Hadoop.
#   git clone https://github.com/azkaban/azkaban ~/azkaban
#   tests/azkaban/real_server.sh ~/azkaban /tmp/azkaban 18081 &
#   SUBMARINE_TEST_AZKABAN=http://azkaban:azkaban@127.0.0.1:18081 pytest tests/local/workflows/test_azkaban_conformance.py
# Jobs find the `submarine` of PATH. Wants JDK 17 and Maven. Changes nothing in the checkout.
set -eu
source=$1 target=$2 port=$3
here=$(cd "$(dirname "$0")" && pwd)
parts="az-core azkaban-spi azkaban-db cached-http-filesystem azkaban-common azkaban-web-server
  azkaban-exec-server azkaban-hadoop-security-plugin az-hadoop-jobtype-plugin
  az-flow-trigger-dependency-plugin azkaban-solo-server"

build() {
  mkdir -p "$target/java" "$target/classes"
  mvn -B -q -f "$here/real_server_pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$target/lib"
  rm -f "$target"/lib/asm-[1-6]*.jar "$target"/lib/asm-3*.jar  # older than the engine's own
  path=
  for part in $parts; do
    mkdir -p "$target/java/$part"
    cp -r "$source/$part/src/main/java/." "$target/java/$part"
    path=$path:$target/java/$part
    [ ! -d "$source/$part/src/main/resources" ] || cp -r "$source/$part/src/main/resources/." "$target/classes"
  done
  # Rest.li is in no public registry any more; of a hash that a newer library has, any other will do.
  web=$target/java/azkaban-web-server
  sed -i -e '/RestliServlet;/d' -e '/ServletHolder restliHolder/,/restli\/\*/d' \
    "$web/azkaban/webapp/AzkabanWebServer.java"
  mkdir -p "$web/com/linkedin/jersey/api/uri"
  cat > "$web/com/linkedin/jersey/api/uri/UriTemplate.java" <<'JAVA'
package com.linkedin.jersey.api.uri;

public class UriTemplate {
  public UriTemplate(String text) {}

  public boolean match(CharSequence uri, java.util.Map<String, String> found) { return false; }

  public String createURI(String... values) { return ""; }
}
JAVA
  sed -i 's/MurmurHash3.hash32x86(/java.util.Arrays.hashCode(/' \
    "$target/java/azkaban-common/azkaban/executor/container/ContainerImplUtils.java"
  sed -i 's/^    connector.setPort(port);/&\n    connector.setHost("127.0.0.1");/' \
    "$target/java/azkaban-common/azkaban/server/JettyServerUtils.java"
  for part in $parts; do
    case $part in *plugin | cached*) ;; *) find "$target/java/$part" -name '*.java' ;; esac
  done > "$target/files"
  javac -nowarn -source 8 -target 8 -proc:none -encoding UTF-8 -d "$target/classes" \
    -cp "$target/lib/*" -sourcepath "$path" "@$target/files" 2> "$target/javac.log" ||
    { grep -A 4 error "$target/javac.log" >&2; exit 1; }
  touch "$target/built"
}

[ -e "$target/built" ] || build
home=$target/solo
mkdir -p "$home/conf" "$home/plugins/jobtypes" "$home/web" "$home/projects" "$home/tmp"
cp -r "$source/azkaban-db/src/main/sql" "$home"
cp "$source"/azkaban-solo-server/src/main/resources/conf/* "$home/conf"
cp "$source/azkaban-solo-server/src/main/resources/commonprivate.properties" "$home/plugins/jobtypes"
sed -i -e "s/^jetty.port=.*/jetty.port=$port/" -e "s/^executor.port=.*/executor.port=$((port + 1))/" \
  -e 's#America/Los_Angeles#UTC#' -e 's/ramp.enabled=true/ramp.enabled=false/' "$home/conf/azkaban.properties"
cd "$home"
exec java -Xmx512M --add-opens java.base/java.lang=ALL-UNNAMED -Djava.io.tmpdir="$home/tmp" \
  -Dexecutorport=$((port + 1)) -Dserverpath="$home" -cp "$target/classes:$target/lib/*" \
  azkaban.soloserver.AzkabanSingleServer -conf conf
