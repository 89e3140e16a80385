#!/usr/bin/env bash
# Three ZooKeeper servers, a MariaDB and three workers on this machine: tasks stream
# from MariaDB into SQLite files, a worker is killed, its tasks go on elsewhere.
# Everything lies in DIR (default: a fresh folder) and ends with the script.
set -euo pipefail
cd "$(dirname "$0")/../.."
DIR=${1:-$(mktemp -d)}
STACK=examples/stack
say() { printf '\n== %s\n' "$*"; }
[ -x bin/datalink ] || make build

workers=()
finish() {
	trap - EXIT
	for pid in "${workers[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	$STACK/mariadb.sh stop --dir "$DIR/mariadb" || true
	for i in 1 2 3; do $STACK/zookeeper.sh stop --dir "$DIR/zk$i" || true; done
}
trap finish EXIT
trap 'exit 130' INT TERM

say "three ZooKeeper servers and a MariaDB"
base=$((21000 + RANDOM % 8000))
members=()
for i in 1 2 3; do members+=("server.$i=127.0.0.1:$((base + i)):$((base + 10 + i))"); done
hosts=
for i in 1 2 3; do
	eval "$($STACK/zookeeper.sh start --dir "$DIR/zk$i" --port 0 -- "myid=$i" "${members[@]}")"
	hosts+="${hosts:+,}$host:$port"
done
eval "$($STACK/mariadb.sh start --dir "$DIR/mariadb" --port 0)"
sql() { $STACK/mariadb.sh sql --dir "$DIR/mariadb" -- -N "$@"; }
sql -e "CREATE USER datalink@'127.0.0.1' IDENTIFIED BY 'datalink'; GRANT ALL ON *.* TO datalink@'127.0.0.1'; CREATE DATABASE shop"
for n in 1 2 3; do sql -e "CREATE TABLE shop.orders$n (id INT PRIMARY KEY AUTO_INCREMENT, amount INT NOT NULL)"; done

say "three workers"
for w in a b c; do
	mkdir -p "$DIR/$w"
	echo "worker-$w" >"$DIR/$w/worker.id"
	bin/datalink serve --data-dir "$DIR/$w" --coordination "zookeeper://$hosts/datalink?sessionTimeout=3s" --restart-grace 0s >"$DIR/$w.log" 2>&1 &
	workers+=($!)
done
for w in a b c; do until [ -S "$DIR/$w/api.sock" ]; do sleep 0.1; done; done
cli() { bin/datalink "$@" --data-dir "$DIR/b"; }
for n in 1 2 3; do
	cat >"$DIR/orders$n.yaml" <<TASK
apiVersion: datalink/v1
task: orders$n
reader:
  plugin: mysql
  config: {address: "127.0.0.1:$port", user: datalink, password: datalink, tables: ["shop.orders$n"], start: snapshot}
writers:
  - name: target
    plugin: rdbms
    config: {url: "sqlite://$DIR/orders$n.db"}
TASK
	cli task apply "$DIR/orders$n.yaml"
done
running() { cli task list -o json | grep -c '"state": "running"' || true; }
until [ "$(running)" = 3 ]; do sleep 0.2; done
cli worker list

say "rows arrive while a worker is killed"
insert() { for n in 1 2 3; do sql -e "INSERT INTO shop.orders$n (amount) SELECT seq FROM shop.seq_1_to_$1"; done; }
insert 1000
cli task list
kill -9 "${workers[0]}"
echo "worker-a was killed with SIGKILL"
insert 1000
until [ "$(running)" = 3 ] && ! cli task list -o json | grep -q '"worker": "worker-a"'; do sleep 0.2; done
insert 1000
cli task list

say "every target holds what its source holds"
for n in 1 2 3; do
	until [ "$(python3 -c "import sqlite3; print(sqlite3.connect('$DIR/orders$n.db').execute('SELECT count(*) FROM orders$n').fetchone()[0])")" = "$(sql -e "SELECT COUNT(*) FROM shop.orders$n")" ]; do sleep 0.2; done
	echo "orders$n: $(sql -e "SELECT COUNT(*) FROM shop.orders$n") rows on both sides"
done

say "what the audit says"
cli audit list
say "done; logs and data are in $DIR"
