#!/usr/bin/env bash
# ZooKeeper 3.8, the release that Debian 12 has: the library with a Java 17, without
# the packages that would start a service.
#
# Options after -- of start are lines of zoo.cfg (tickTime=500), or options of Java
# where they begin with -D or -X. A server with myid=N and server.N=HOST:PEER:ELECTION
# lines is a member of an ensemble: start returns when it listens, which is before
# the ensemble has a quorum.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=zookeeper
DEFAULT_PORT=12181
JARS=/usr/share/java
# The manifest of zookeeper.jar leaves out what TLS needs of netty.
CLASSES=$JARS/zookeeper.jar:$JARS/slf4j-simple.jar:$JARS/netty-codec.jar:$JARS/netty-resolver.jar:$JARS/netty-transport-native-unix-common.jar

find_java() { # Java 17 where there are several; any other else
	JAVA=$(compgen -G '/usr/lib/jvm/java-17-openjdk-*/bin/java' | head -1) || JAVA=$(command -v java)
	[ -n "$JAVA" ]
}

is_installed() { find_java && [ -e "$JARS/zookeeper.jar" ] && [ -e "$JARS/slf4j-simple.jar" ]; }

install_server() { apt_install libzookeeper-java libslf4j-java openjdk-17-jre-headless; }

server_version() { dpkg-query -W -f '${Version}\n' libzookeeper-java | cut -d- -f1; }

init_data() { :; }

run_server() { # run_server DIR PORT OPTION...
	local dir=$1 port=$2 option java=()
	shift 2
	{
		printf 'dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n' "$dir/data" "$port"
		printf 'tickTime=500\ninitLimit=20\nsyncLimit=5\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,srvr,mntr,cons\n'
		for option in "$@"; do
			case $option in
			-*) java+=("$option") ;;
			myid=*) printf '%s\n' "${option#myid=}" >"$dir/data/myid" ;;
			*) printf '%s\n' "$option" ;;
			esac
		done
	} >"$dir/zoo.cfg.new"
	mv "$dir/zoo.cfg.new" "$dir/zoo.cfg"
	find_java
	exec "$JAVA" -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
		-Dorg.slf4j.simpleLogger.showDateTime=true "${java[@]}" -cp "$CLASSES" \
		org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg"
}

server_command() {
	SOCKET=''
	SERVER=("$(readlink -f "$0")" run-server "$DIR" "$PORT")
}

# client_command runs ZooKeeper's own shell: zookeeper.sh sql --dir D -- get /path
client_command() {
	find_java
	CLIENT=("$JAVA" -Xmx64m -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error
		-cp "$CLASSES" org.apache.zookeeper.ZooKeeperMain -server "127.0.0.1:$PORT")
}

word() { # word COMMAND: the answer to a four-letter word
	exec 3<>"/dev/tcp/127.0.0.1/$PORT" || return 1
	printf '%s' "$1" >&3
	timeout 2 cat <&3
	exec 3>&-
}

answers() {
	if grep -q '^server\.' "$DIR/zoo.cfg"; then
		[ "$(word ruok)" = imok ]
	else
		word srvr | grep -q '^Mode:'
	fi
} 2>/dev/null

if [ "${1:-}" = run-server ]; then
	shift
	run_server "$@"
fi
stack_main "$@"
