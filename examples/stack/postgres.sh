#!/usr/bin/env bash
# PostgreSQL 15, the release that Debian 12 has. The package would make and start a
# cluster of the system; it is told not to. The server refuses root, so it runs as
# the account postgres, which owns the data folder and nothing above it.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=postgres
DEFAULT_PORT=15432
STOP_SIGNAL=INT # "fast": TERM would wait until the last client has left

find_bin() { BIN=$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -1 | xargs -r dirname) && [ -n "$BIN" ]; }

is_installed() { find_bin && [ -x "$BIN/initdb" ] && [ -x "$BIN/psql" ] && id postgres >/dev/null 2>&1; }

install_server() {
	local conf=/etc/postgresql-common/createcluster.d/datalink-stack.conf
	mkdir -p "$(dirname "$conf")"
	echo 'create_main_cluster = false' >"$conf"
	apt_install postgresql || { rm -f "$conf"; die "postgresql could not be installed"; }
	rm -f "$conf"
}

server_version() { find_bin && "$BIN/postgres" --version | awk '{print $3}'; }

# as_postgres sets RUN to the words before a server program. The account keeps one
# right of root, to walk through folders: those of a test are closed to others.
as_postgres() {
	RUN=()
	[ "$(id -u)" = 0 ] || return 0
	RUN=(setpriv --reuid=postgres --regid=postgres --clear-groups
		--inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override --bounding-set=-all,+dac_override)
}

init_data() {
	find_bin
	as_postgres
	[ ${#RUN[@]} -eq 0 ] || chown postgres: "$DIR/data"
	"${RUN[@]}" "$BIN/initdb" -D "$DIR/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync
}

# await_orphans: the backends of a killed server need a moment to notice, and a new
# server refuses the folder until then. Only after that is the old pid file stale.
await_orphans() {
	local cwd _
	for _ in $(seq 300); do
		for cwd in /proc/[0-9]*/cwd; do
			[ "$(readlink "$cwd" 2>/dev/null)" = "$DIR/data" ] && { sleep 0.1; continue 2; }
		done
		rm -f "$DIR/data/postmaster.pid"
		return
	done
	die "processes of an earlier server still use $DIR/data after 30 s"
}

server_command() {
	find_bin
	as_postgres
	await_orphans
	SOCKET=''
	SERVER=("${RUN[@]}" "$BIN/postgres" -D "$DIR/data" -c listen_addresses=127.0.0.1 -p "$PORT"
		-c unix_socket_directories= -c wal_level=logical -c fsync=on)
}

client_command() {
	find_bin
	CLIENT=("$BIN/psql" --no-psqlrc --quiet -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT" -U postgres -d postgres)
}

answers() { "${CLIENT[@]}" -c 'SELECT 1'; }

stack_main "$@"
