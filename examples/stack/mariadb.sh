#!/usr/bin/env bash
# MariaDB 10.11, the release that Debian 12 has. Only the packages without a system
# service are installed: nothing starts by itself, at install or at boot.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME=mariadb
DEFAULT_PORT=13307

is_installed() { command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null && command -v mariadb-binlog >/dev/null; }

install_server() { apt_install mariadb-server-core mariadb-client; }

server_version() { mariadbd --no-defaults --version | awk '{print $3}'; }

# A server that starts removes what looks like its temporary tables from the folder
# for them, those of others that share it too: each has one of its own.
init_data() {
	TMPDIR="$DIR" mariadb-install-db --no-defaults --user=root --datadir="$DIR/data" --auth-root-authentication-method=normal --skip-test-db
}

server_command() {
	SERVER=(mariadbd --no-defaults --user=root "--datadir=$DIR/data" "--tmpdir=$DIR" --bind-address=127.0.0.1 "--port=$PORT"
		"--socket=$SOCKET" "--pid-file=$DIR/data/mariadbd.pid" "--server-id=$PORT"
		--log-bin=binlog --binlog-format=ROW --binlog-row-metadata=FULL --gtid-strict-mode=1)
}

client_command() {
	CLIENT=(mariadb --no-defaults --default-character-set=utf8mb4 -uroot -S "$SOCKET")
}

stack_main "$@"
