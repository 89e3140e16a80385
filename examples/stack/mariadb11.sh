#!/usr/bin/env bash
# MariaDB 11.8 on a Debian machine whose own release has an older one. Debian's next
# release has it; it is unpacked into a root folder of its own and run through the
# dynamic loader of that folder, as MySQL is.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=mariadb11
DEFAULT_PORT=13308
ROOT=$STACK/mariadb11-root

is_installed() { [ -e "$ROOT/.complete" ]; }

install_server() { unpack_root trixie mariadb-server-core,mariadb-client-core,mariadb-client 400; }

server_paths() {
	run_in_root
	PATHS=(--no-defaults --user=root "--basedir=$ROOT/usr" "--datadir=$DIR/data" "--lc-messages-dir=$ROOT/usr/share/mariadb"
		"--character-sets-dir=$ROOT/usr/share/mariadb/charsets" --plugin-dir="$ROOT/usr/lib/mysql/plugin")
}

server_version() {
	run_in_root
	"${RUN[@]}" "$ROOT/usr/sbin/mariadbd" --no-defaults --version | awk '{print $3}'
}

# init_data makes the system tables as mariadb-install-db does, with an
# administrator who has no password.
init_data() {
	server_paths
	mkdir -p "$DIR/data/mysql"
	{
		printf "%s;\n" "CREATE DATABASE IF NOT EXISTS mysql" "USE mysql" "SET @auth_root_socket=NULL"
		cat "$ROOT"/usr/share/mariadb/{mariadb_system_tables,mariadb_performance_tables,mariadb_system_tables_data,fill_help_tables,mariadb_sys_schema}.sql
	} | "${RUN[@]}" "$ROOT/usr/sbin/mariadbd" "${PATHS[@]}" --bootstrap --skip-log-bin --enforce-storage-engine= --max-allowed-packet=8M --net-buffer-length=16K
}

server_command() {
	server_paths
	SERVER=("${RUN[@]}" "$ROOT/usr/sbin/mariadbd" "${PATHS[@]}" --bind-address=127.0.0.1 "--port=$PORT"
		"--socket=$SOCKET" "--pid-file=$DIR/data/mariadbd.pid" "--server-id=$PORT"
		--log-bin=binlog --binlog-format=ROW --binlog-row-metadata=FULL --gtid-strict-mode=1)
}

client_command() {
	run_in_root
	CLIENT=("${RUN[@]}" "$ROOT/usr/bin/mariadb" --no-defaults --default-character-set=utf8mb4
		"--character-sets-dir=$ROOT/usr/share/mariadb/charsets" -uroot -S "$SOCKET")
}

stack_main "$@"
