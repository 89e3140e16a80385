# shellcheck shell=bash
# Shared by the scripts of the servers; sourced, not run. The caller sets NAME,
# DEFAULT_PORT and the functions install_server, server_version, init_data,
# server_command and client_command, then calls stack_main "$@". STOP_SIGNAL and
# answers may be replaced.
#
# One server is one folder D:
#   D/data     the data folder          D/server.log  what the server says
#   D/sock     its socket               D/pid         "PID STARTTIME PORT SOCKET"
# STARTTIME is field 22 of /proc/PID/stat: a pid that came back as another
# process is never taken for ours, so stop ends what start began and nothing else.

set -euo pipefail

STACK=${DATALINK_STACK:-/var/cache/datalink-stack}
STOP_SIGNAL=TERM

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }
die() { say "$*"; exit 1; }

usage() {
	cat >&2 <<USAGE
usage: $NAME.sh COMMAND [--dir D] [--port P] [-- OPTION...]
  install   put the server program in place (skipped when it is there)
  installed exit code 0 when it is in place
  start     start a server on 127.0.0.1; options after -- go to the server
  stop      end the server that start began in this folder
  status    print its KEY=value lines; exit code 3 when it does not run
  sql       run the client as the administrator; SQL on stdin, options after -- go to the client
  --dir D   folder of this server (default $STACK/run/$NAME-PORT)
  --port P  port (default $DEFAULT_PORT; 0 takes a free one)
USAGE
	exit 2
}

# apt_install PACKAGE...: the package lists are refreshed only when they turn out
# to be missing or stale.
apt_install() {
	[ "$(id -u)" = 0 ] || die "install needs root to run apt-get"
	local apt=(apt-get -y -q -o DPkg::Lock::Timeout=600 --no-install-recommends install)
	export DEBIAN_FRONTEND=noninteractive
	"${apt[@]}" "$@" >&2 || { apt-get -q update >&2 && "${apt[@]}" "$@" >&2; }
}

# debian_mirror: the URI of the Debian archive that this machine itself uses, in
# either form of apt's sources. Only an entry whose suite is the machine's own
# codename counts, which leaves out security updates and foreign repositories.
debian_mirror() {
	if [ -n "${DATALINK_DEBIAN_MIRROR:-}" ]; then
		printf '%s\n' "$DATALINK_DEBIAN_MIRROR"
		return
	fi
	local codename
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk -v c="$codename" '
		function flush(  i, n, s) {
			n = split(suites, s, " ")
			for (i = 1; i <= n; i++) if (s[i] == c && uri != "") { print uri; found = 1; exit }
			uri = ""; suites = ""
		}
		/^[ \t]*$/ || /^Types:/ { flush() }
		/^URIs:/ { uri = $2 }
		/^Suites:/ { sub(/^Suites:[ \t]*/, ""); suites = $0 }
		END { if (!found) flush() }' | grep . && return
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk -v c="$codename" '
		$1 == "deb" { sub(/\[[^]]*\]/, ""); if ($3 == c) { print $2; exit } }' | grep . && return
	die "no Debian archive for \"$codename\" found in /etc/apt; set DATALINK_DEBIAN_MIRROR to its URI"
}

# with_lock FILE COMMAND...: one holder at a time. A child that outlives the command
# must be started with 9>&-, or it keeps the lock.
with_lock() {
	local file=$1
	shift
	mkdir -p "$(dirname "$file")"
	(
		flock -w 900 9 || die "could not get the lock $file within 900 s"
		"$@"
	) 9>"$file"
}

start_time() { # start_time PID: field 22, counted after the closing bracket of the name
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	[ "$1" != Z ] || return 1
	printf '%s\n' "${20}"
}

# answers: whether CLIENT reaches the server.
answers() { "${CLIENT[@]}" -e 'DO 1'; }

# load_pid sets PID, PORT and SOCKET from D/pid; false when that process is gone.
load_pid() {
	local began
	[ -s "$DIR/pid" ] || return 1
	read -r PID began PORT SOCKET <"$DIR/pid"
	[ "$(start_time "$PID")" = "$began" ]
}

print_facts() {
	printf 'host=127.0.0.1\nport=%s\nsocket=%q\npid=%s\ndatadir=%q\nversion=%s\n' \
		"$PORT" "$SOCKET" "$PID" "$DIR/data" "$(server_version)"
	more_facts
}

# more_facts may be replaced: what else a server's facts are.
more_facts() { :; }

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() { # below the range that the kernel hands out for outgoing connections
	local p _
	for _ in $(seq 50); do
		p=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		port_is_free "$p" && { printf '%s\n' "$p"; return; }
	done
	die "no free port found"
}

ensure_installed() {
	is_installed && return
	with_lock "$STACK/$NAME.lock" install_once
}
install_once() { is_installed || install_server; }

start_locked() {
	if load_pid; then
		say "already running in $DIR"
		print_facts
		return
	fi
	[ "$PORT" != 0 ] || PORT=$(free_port)
	local n=0 # a process that was just killed may not be gone altogether
	until port_is_free "$PORT" || [ $((n += 1)) -gt 50 ]; do sleep 0.2; done
	port_is_free "$PORT" || die "port $PORT of 127.0.0.1 is in use; choose another with --port, or --port 0"
	SOCKET=$DIR/sock
	# A socket's path has 107 bytes at most.
	[ ${#SOCKET} -le 100 ] || SOCKET=/tmp/datalink-$NAME-$(printf '%s' "$DIR" | cksum | cut -d' ' -f1).sock
	if [ ! -e "$DIR/data.ready" ]; then
		rm -rf "$DIR/data"
		mkdir -p "$DIR/data"
		init_data >"$DIR/init.log" 2>&1 || {
			say "the data folder could not be made: $(grep -im3 error "$DIR/init.log" | tr '\n' ' '); once more"
			rm -rf "$DIR/data"
			mkdir -p "$DIR/data"
			init_data >"$DIR/init.log" 2>&1 || { tail -20 "$DIR/init.log" >&2; die "the data folder could not be made; see $DIR/init.log"; }
		}
		touch "$DIR/data.ready"
	fi
	# What a killed server left: its pid in there may be a zombie or another process by now.
	rm -f "$SOCKET" "$SOCKET.lock"
	server_command "$@"
	[ -z "${OWN_OPTIONS:-}" ] || set --
	# Its own session: a Ctrl-C in the terminal of the caller is not meant for it.
	setsid "${SERVER[@]}" "$@" </dev/null >>"$DIR/server.log" 2>&1 9>&- &
	PID=$!
	disown "$PID"
	printf '%s %s %s %s\n' "$PID" "$(start_time "$PID")" "$PORT" "$SOCKET" >"$DIR/pid" ||
		die "the server ended at once; see $DIR/server.log"
	local _
	for _ in $(seq "${START_SECONDS:-60}0"); do
		load_pid || { tail -20 "$DIR/server.log" >&2; rm -f "$DIR/pid"; die "the server ended while starting; see $DIR/server.log"; }
		client_command
		if answers >/dev/null 2>&1; then
			print_facts
			return
		fi
		sleep 0.1
	done
	stop_locked
	die "no answer within ${START_SECONDS:-60} s; see $DIR/server.log"
}

stop_locked() {
	load_pid || { say "not running in $DIR"; rm -f "$DIR/pid"; return 0; }
	local _
	kill "-$STOP_SIGNAL" "$PID"
	for _ in $(seq 600); do
		load_pid || { rm -f "$DIR/pid"; return 0; }
		sleep 0.1
	done
	say "pid $PID did not end within 60 s of SIG$STOP_SIGNAL: SIGKILL"
	kill -KILL "$PID"
	while load_pid; do sleep 0.1; done
	rm -f "$DIR/pid"
}

stack_main() {
	[ $# -gt 0 ] || usage
	local command=$1
	shift
	DIR='' PORT=$DEFAULT_PORT
	while [ $# -gt 0 ]; do
		case $1 in
		--dir) [ $# -ge 2 ] || usage; DIR=$2; shift 2 ;;
		--port) [ $# -ge 2 ] || usage; PORT=$2; shift 2 ;;
		--) shift; break ;;
		*) usage ;;
		esac
	done
	case $PORT in '' | *[!0-9]*) usage ;; esac
	if [ -z "$DIR" ]; then
		[ "$PORT" != 0 ] || die "--port 0 needs --dir"
		DIR=$STACK/run/$NAME-$PORT
	fi
	DIR=$(realpath -m -- "$DIR")
	case $command in
	install)
		ensure_installed
		say "$(server_version) is in place"
		;;
	installed)
		is_installed || { say "not installed"; return 1; }
		;;
	start)
		ensure_installed
		mkdir -p "$DIR"
		with_lock "$DIR/lock" start_locked "$@"
		;;
	stop)
		[ -d "$DIR" ] || { say "not running in $DIR"; return 0; }
		with_lock "$DIR/lock" stop_locked
		;;
	status)
		load_pid || { say "not running in $DIR"; return 3; }
		print_facts
		;;
	sql)
		load_pid || die "not running in $DIR"
		client_command
		exec "${CLIENT[@]}" "$@"
		;;
	*) usage ;;
	esac
}

# unpack_root SUITE PACKAGES SIZE puts a root folder of another release of Debian
# with these packages at $ROOT; SIZE is in megabytes.
unpack_root() {
	command -v debootstrap >/dev/null || apt_install debootstrap
	local mirror part=$ROOT.part log=$STACK/$NAME-install.log
	mirror=$(debian_mirror)
	say "unpacking ${2%%,*} of Debian $1 into $ROOT (about $3 MB)"
	rm -rf "$part"
	debootstrap --variant=minbase --include="$2" "$1" "$part" "$mirror" >"$log" 2>&1 ||
		{ tail -20 "$log" >&2; die "debootstrap ended with an error; see $log"; }
	rm -rf "$part"/var/cache/apt/archives/*.deb "$part"/var/lib/apt/lists/* "$part"/usr/share/{doc,man,locale}
	touch "$part/.complete"
	rm -rf "$ROOT"
	mv "$part" "$ROOT"
}

# run_in_root sets RUN to the words before the path of a program of $ROOT.
run_in_root() {
	local loader triplet
	loader=$(compgen -G "$ROOT/usr/lib*/ld-linux-*.so.*" | head -1)
	[ -n "$loader" ] || die "no dynamic loader found in $ROOT"
	triplet=$(basename "$(dirname "$(compgen -G "$ROOT/usr/lib/*-linux-gnu*/libc.so.6" | head -1)")")
	RUN=("$loader" --library-path "$ROOT/usr/lib/$triplet:$ROOT/usr/lib")
}
