#!/usr/bin/env bash
# MySQL 9.7 on a Debian machine that has no package of it. Debian's unstable suite
# has one; its libraries are newer than the machine's, so it is unpacked into a root
# folder of its own and run through the dynamic loader of that folder. Neither chroot
# nor mounts are needed, and the data may lie anywhere.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=mysql
DEFAULT_PORT=13306
ROOT=$STACK/mysql-root

is_installed() { [ -e "$ROOT/.complete" ]; }

install_server() { unpack_root sid mysql-server-core,mysql-client-core 650; }

server_paths() {
	run_in_root
	PATHS=(--no-defaults "--basedir=$ROOT/usr" "--datadir=$DIR/data" --user=root
		"--lc-messages-dir=$ROOT/usr/share/mysql" "--character-sets-dir=$ROOT/usr/share/mysql/charsets"
		"--plugin-dir=$ROOT/usr/lib/mysql/plugin" --secure-file-priv=NULL)
}

server_version() {
	run_in_root
	"${RUN[@]}" "$ROOT/usr/sbin/mysqld" --no-defaults --version | awk '{print $3}'
}

# root@127.0.0.1 is made beside root@localhost, so that TCP works whatever the
# machine's resolver says. Neither has a password. Nothing of it is in the binlog.
init_data() {
	server_paths
	printf '%s\n' "CREATE USER root@'127.0.0.1';" "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;" >"$DIR/init.sql"
	"${RUN[@]}" "$ROOT/usr/sbin/mysqld" "${PATHS[@]}" --initialize-insecure --init-file="$DIR/init.sql"
}

server_command() {
	server_paths
	SERVER=("${RUN[@]}" "$ROOT/usr/sbin/mysqld" "${PATHS[@]}" --bind-address=127.0.0.1 "--port=$PORT" --mysqlx=OFF
		"--socket=$SOCKET" "--pid-file=$DIR/data/mysqld.pid" "--server-id=$PORT"
		--log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL)
}

client_command() {
	run_in_root
	CLIENT=("${RUN[@]}" "$ROOT/usr/bin/mysql" --no-defaults --default-character-set=utf8mb4
		"--character-sets-dir=$ROOT/usr/share/mysql/charsets" -uroot -S "$SOCKET")
}

stack_main "$@"
