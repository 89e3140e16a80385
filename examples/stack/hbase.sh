#!/usr/bin/env bash
# HBase 2.6 in one Java process: master, region servers and a ZooKeeper of its own.
# The jars come by Maven from one dependency, with the Java client among them.
#
#   port             RPC of the master             regionservers  taken freely by each
#   zookeeper        host:port of its ZooKeeper    lib, conf      class path of Java programs
#
# Options after -- of start are NAME=VALUE for hbase-site.xml, or --regionservers N
# and --heap SIZE.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=hbase
DEFAULT_PORT=16000
VERSION=${DATALINK_HBASE_VERSION:-2.6.4-hadoop3}
LIB=$STACK/hbase-$VERSION/lib
# SIGTERM ends the ZooKeeper first and then waits for it; acknowledged rows are in
# the log files, so SIGKILL loses none.
STOP_SIGNAL=KILL
START_SECONDS=240
OWN_OPTIONS=1 # options of start are not the process's

is_installed() { [ -e "$STACK/hbase-$VERSION/.complete" ] && find_java; }

# find_java sets JAVA to that of a JDK 17: later ones lack what Hadoop calls, and
# test programs run from source.
find_java() {
	local java
	for java in ${DATALINK_JAVA:+"$DATALINK_JAVA"} /usr/lib/jvm/java-17-*/bin/java /usr/lib/jvm/*17*/bin/java "$(command -v java || true)"; do
		[ -x "$java" ] && [ -x "$(dirname "$(readlink -f "$java")")/javac" ] && "$java" -version 2>&1 | grep -q 'version "17' && JAVA=$java && return 0
	done
	return 1
}

install_server() {
	find_java || apt_install openjdk-17-jdk-headless
	find_java || die "no Java 17 found; set DATALINK_JAVA to its java"
	command -v mvn >/dev/null || apt_install maven
	local dir=$STACK/hbase-$VERSION
	rm -rf "$dir"
	mkdir -p "$dir"
	cat >"$dir/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>stack</groupId><artifactId>hbase</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.hbase</groupId><artifactId>hbase-server</artifactId><version>$VERSION</version></dependency></dependencies>
</project>
POM
	say "fetching HBase $VERSION by Maven into $LIB (about 120 MB)"
	JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$JAVA")")") mvn -B -ntp -q -f "$dir/pom.xml" dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$LIB" >"$STACK/hbase-install.log" 2>&1 ||
		{ tail -20 "$STACK/hbase-install.log" >&2; die "maven ended with an error; see $STACK/hbase-install.log"; }
	touch "$dir/.complete"
}

server_version() { printf '%s\n' "$VERSION"; }

init_data() { mkdir -p "$DIR/conf"; }

property() { printf '<property><name>%s</name><value>%s</value></property>\n' "$1" "$2"; }

# server_command OPTION...: the ZooKeeper keeps its port over a restart, so that
# clients find the cluster again.
server_command() {
	local servers=1 heap=384m zk option extra=()
	while [ $# -gt 0 ]; do
		case $1 in
		--regionservers) servers=$2; shift 2 ;;
		--heap) heap=$2; shift 2 ;;
		*=*) extra+=("$1"); shift ;;
		*) die "option $1: want NAME=VALUE, --regionservers N or --heap SIZE" ;;
		esac
	done
	find_java || die "no Java 17 found; set DATALINK_JAVA to its java"
	[ -s "$DIR/zookeeper.port" ] || free_port >"$DIR/zookeeper.port"
	zk=$(cat "$DIR/zookeeper.port")
	mkdir -p "$DIR/conf" "$DIR/data"
	{
		printf '<configuration>\n'
		property hbase.cluster.distributed false
		property hbase.rootdir "file://$DIR/data/root"
		property hbase.tmp.dir "$DIR/data/tmp"
		property hbase.unsafe.stream.capability.enforce false
		property hbase.wal.provider filesystem
		property hbase.zookeeper.quorum 127.0.0.1
		property hbase.zookeeper.property.clientPort "$zk"
		property hbase.zookeeper.property.dataDir "$DIR/data/zk"
		property hbase.master.ipc.address 127.0.0.1
		property hbase.regionserver.ipc.address 127.0.0.1
		property hbase.master.hostname localhost
		property hbase.unsafe.regionserver.hostname localhost
		property hbase.master.port "$PORT"
		property hbase.regionserver.port 0
		property hbase.master.info.port -1
		property hbase.regionserver.info.port -1
		property hbase.master.wait.on.regionservers.maxtostart "$servers"
		property hbase.regionserver.msginterval 100
		property replication.source.sleepforretries 100
		property hbase.regionserver.handler.count 20
		property hbase.localcluster.assign.random.ports false
		property hbase.procedure.remote.dispatcher.delay.msec 20
		for option in ${extra[@]+"${extra[@]}"}; do property "${option%%=*}" "${option#*=}"; done
		printf '</configuration>\n'
	} >"$DIR/conf/hbase-site.xml"
	cat >"$DIR/conf/log4j.properties" <<'LOG'
log4j.rootLogger=WARN,console
log4j.logger.org.apache.hadoop.hbase.master.HMaster=INFO
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n
LOG
	: >"$DIR/server.log"
	SERVER=("$JAVA" "-Xmx$heap" -XX:+UseSerialGC -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true)
	for option in java.lang java.util.concurrent java.nio sun.nio.ch; do
		SERVER+=(--add-opens "java.base/$option=ALL-UNNAMED")
	done
	SERVER+=(-cp "$DIR/conf:$LIB/*" org.apache.hadoop.hbase.master.HMaster start "--localRegionServers=$servers")
}

answers() { grep -q 'Master has completed initialization' "$DIR/server.log"; }

more_facts() { printf 'zookeeper=127.0.0.1:%s\nlib=%q\nconf=%q\njava=%q\n' "$(cat "$DIR/zookeeper.port")" "$LIB" "$DIR/conf" "$(find_java && printf '%s' "$JAVA")"; }

client_command() { CLIENT=(sh -c 'echo "hbase: no SQL here; run Java programs with the class path of lib and conf" >&2; exit 2'); }

stack_main "$@"
