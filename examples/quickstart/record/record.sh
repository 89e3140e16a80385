#!/usr/bin/env bash
# Records the binlog files of ../binlogs from real servers, with the final contents of
# every table beside them. Usage: record.sh [NAME-PREFIX...]; without one, everything.

set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STACK=$HERE/../../stack
OUT=$HERE/../binlogs
WORK=$(mktemp -d)
ONLY=("$@")
cleanup() {
	local s
	for s in mysql mariadb; do
		[ ! -d "$WORK/$s" ] || "$STACK/$s.sh" stop --dir "$WORK/$s" 2>/dev/null
	done
	rm -rf "$WORK"
}
trap cleanup EXIT

wanted() { # wanted NAME: no prefix was given, or one that fits
	[ ${#ONLY[@]} -gt 0 ] || return 0
	local p
	for p in "${ONLY[@]}"; do case $1 in "$p"*) return 0 ;; esac; done
	return 1
}

section() { # section FILE NAME: the lines of one section
	awk -v n="$2" '/^-- section /{on = ($3 == n); seen += on} on; END {exit !seen}' "$1"
}

client() { "$STACK/$SERVER.sh" sql --dir "$WORK/$SERVER" -- "$@"; }

# template: an initialised folder, copied for each recording. The server's UUID is
# fixed, so that a new recording has the transaction identifiers of the old one.
template() {
	[ ! -d "$WORK/$SERVER.new" ] || return 0
	"$STACK/$SERVER.sh" start --dir "$WORK/$SERVER.new" --port 0 -- --skip-log-bin >/dev/null
	"$STACK/$SERVER.sh" stop --dir "$WORK/$SERVER.new"
	rm -f "$WORK/$SERVER.new"/data/auto.cnf
	[ $SERVER != mysql ] || printf '[auto]\nserver-uuid=97979797-0000-4000-8000-000000000001\n' >"$WORK/$SERVER.new/data/auto.cnf"
}

expect() { # expect DIR: the contents of all tables now
	local dir=$1 schema table
	client -N --batch --raw -e "SELECT table_schema, table_name FROM information_schema.tables
		WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') AND table_type <> 'VIEW' ORDER BY 1, 2" |
		while IFS=$'\t' read -r schema table; do
			{ printf "SET @s = '%s', @t = '%s';\n" "$schema" "$table"; cat "$HERE/expect.sql"; } |
				client -N --batch --raw >"$dir/$schema.$table.tsv"
		done
}

# record NAME WHAT SECTIONS OPTION...: one server, one recording. In SECTIONS a slash
# begins a new binlog file and a plus copies the open file under NAME-inuse.
record() {
	local name=$1 what=$2 sections=$3 s gtids
	shift 3
	wanted "$name" || return 0
	printf 'recording %s\n' "$name" >&2
	template
	rm -rf "${WORK:?}/$SERVER" "$OUT/$name".[0-9]* "$OUT/$name.expect" "$OUT/$name-inuse".[0-9]*
	cp -r --sparse=always "$WORK/$SERVER.new" "$WORK/$SERVER"
	"$STACK/$SERVER.sh" start --dir "$WORK/$SERVER" --port 0 -- "${BASE[@]}" "--log-bin=$name" "$@" >"$WORK/facts"
	client -e "$RESET"
	for s in $sections; do
		case $s in
		/) client -e 'FLUSH BINARY LOGS' ;;
		+) cp "$WORK/$SERVER/data/$name.000001" "$OUT/$name-inuse.000001" ;;
		*) section "$HERE/$SERVER.sql" "$s" >"$WORK/section.sql" || section "$HERE/mysql.sql" "$s" >"$WORK/section.sql"
			client <"$WORK/section.sql" >"$WORK/section.out" || { printf 'section %s of %s ended with an error\n' "$s" "$name" >&2; exit 1; } ;;
		esac
	done
	mkdir -p "$OUT/$name.expect"
	expect "$OUT/$name.expect"
	gtids=$(client -N --batch --raw -e "SELECT $GTIDS" | tr -d '\n')
	"$STACK/$SERVER.sh" stop --dir "$WORK/$SERVER"
	cp "$WORK/$SERVER/data/$name".[0-9]* "$OUT/"
	chmod 644 "$OUT/$name".[0-9]*
	[ ! -e "$OUT/$name-inuse.000001" ] || chmod 644 "$OUT/$name-inuse.000001"
	{
		printf 'what=%s\n' "$what"
		sed -n 's/^version=/server='"$SERVER"' /p' "$WORK/facts"
		printf 'options=%s\nsections=%s\ngtids=%s\n' "$(printf '%s ' "${BASE[@]}" "$@" | sed "s#$WORK#DIR#g; s/ *$//")" "$sections" "$gtids"
	} >"$OUT/$name.expect/INFO"
}

# key_plugin: the file of keys and the plugin that reads it, which Debian ships in the
# package with the system service; so it is unpacked, not installed.
key_plugin() {
	[ ! -d "$WORK/unpacked" ] || return 0
	mkdir -p "$WORK/unpacked"
	(cd "$WORK" && apt-get download -qq mariadb-server 2>/dev/null && dpkg -x mariadb-server_*.deb unpacked)
	printf '1;%s\n' 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f >"$WORK/keys"
}

index() {
	local info name f
	cat "$HERE/index-head.md"
	for info in "$OUT"/*.expect/INFO; do
		name=$(basename "$(dirname "$info")" .expect)
		printf '\n## %s\n\n' "$name"
		awk -F= -v OFS= '{k = $1; sub(/^[^=]*=/, "")}
			k == "what" {print; print ""} k == "server" {print "- Server: ", $0} k == "options" {print "- Options: `", $0, "`"}
			k == "sections" {print "- Sections: ", $0} k == "gtids" {print "- Executed at the end: `", $0, "`"}' "$info"
		printf -- '- Files:'
		for f in "$OUT/$name".[0-9]* "$OUT/$name"-inuse.[0-9]*; do [ ! -e "$f" ] || printf ' `%s` (%s bytes)' "$(basename "$f")" "$(stat -c %s "$f")"; done
		printf '\n'
	done
}

mkdir -p "$OUT"

SERVER=mysql
RESET='RESET BINARY LOGS AND GTIDS'
GTIDS='@@global.gtid_executed'
BASE=(--server-id=97)
record mysql97 'Row image FULL, row metadata FULL, GTIDs, three files: every column type, the shop of the demo, then keys (cascades of foreign keys are in the log), statements, transactions and schema changes.' \
	'shop numbers mysqltypes times text / json geo columns hidden keys statements rowsquery / tx xa ddl large'
record mysql97-compressed 'Transactions compressed with zstd; one session switches it off and on.' \
	'numbers text largejson session_compression / large keys' --binlog-transaction-compression=ON
record mysql97-minimal 'Row metadata MINIMAL (no column names, no signs of key, ENUM labels absent), row image FULL.' \
	'numbers mysqltypes times text geo columns hidden keys' --binlog-row-metadata=MINIMAL
record mysql97-imageminimal 'Row image MINIMAL, row metadata FULL.' 'images columns hidden keys' --binlog-row-image=MINIMAL
record mysql97-imagenoblob 'Row image NOBLOB, row metadata FULL.' 'images' --binlog-row-image=NOBLOB
record mysql97-minimalboth 'Row image MINIMAL and row metadata MINIMAL.' 'images' --binlog-row-image=MINIMAL --binlog-row-metadata=MINIMAL
record mysql97-partialjson 'Updates of JSON columns as differences (PARTIAL_UPDATE_ROWS), at the end with a minimal image too.' 'partialjson partialmix'
record mysql97-tagged 'Tagged GTIDs beside plain ones, foreign ones with gaps, an empty transaction.' 'tagged / session_compression'
record mysql97-nogtid 'GTIDs off, no checksums: anonymous transactions over two engines, changes in STATEMENT format. The file -inuse was copied while the server wrote it. STATEMENT changes are in the tables, not in rows of the log.' \
	'mixed + halfundone statementformat' --gtid-mode=OFF --enforce-gtid-consistency=OFF --binlog-checksum=NONE
record mysql97-open 'Checksums on; -inuse was copied while the server wrote it, so its first event is flagged as in use.' 'mixed +' --gtid-mode=OFF --enforce-gtid-consistency=OFF

SERVER=mariadb
RESET='RESET MASTER'
GTIDS='@@global.gtid_binlog_state'
BASE=(--server-id=1011)
record mariadb1011 'Row image FULL, row metadata FULL, two files: every column type, the shop of the demo, versioned tables, sequences, transactions and schema changes. InnoDB carries out cascades of foreign keys below the log, so the children in schema fk differ from what the log gives.' \
	'shop numbers times text json geo natives / columns versioned sequences keys statements tx xa ddl twophase'
record mariadb1011-nolog 'Row metadata NO_LOG, the default: no names, no keys, no signs. Cascades: see mariadb1011.' 'numbers text natives / keys' --binlog-row-metadata=NO_LOG
record mariadb1011-minimal 'Row metadata MINIMAL: signs and character sets, no names.' 'numbers text natives' --binlog-row-metadata=MINIMAL
record mariadb1011-compressed 'Rows and statements compressed with zlib (log_bin_compress) from 10 bytes on.' \
	'numbers json natives / large statements' --log-bin-compress=ON --log-bin-compress-min-len=10
record mariadb1011-imageminimal 'Row image MINIMAL, row metadata FULL.' 'images' --binlog-row-image=MINIMAL
record mariadb1011-imagenoblob 'Row image NOBLOB, row metadata FULL.' 'images' --binlog-row-image=NOBLOB
record mariadb1011-domains 'Several GTID domains and server ids in two files.' 'domains / domains2'
record mariadb1011-mixed 'Transactions over two engines (with ROLLBACK TO in the log), changes in STATEMENT format (in the tables, not in rows of the log), no checksums. The file -inuse was copied while the server wrote it.' \
	'mixed + halfundone statementformat' --binlog-checksum=NONE
record mariadb1011-oldtimes 'DATETIME, TIME and TIMESTAMP in the layout before MySQL 5.6.' 'oldtimes' --mysql56-temporal-format=OFF
if wanted mariadb1011-encrypted; then
	key_plugin
	record mariadb1011-encrypted 'Encrypted at rest (key 1 of file_key_management is the bytes 00 to 1f): a reader of files has to refuse it.' 'twophase' \
		--encrypt-binlog=ON "--plugin-dir=$WORK/unpacked/usr/lib/mysql/plugin" --plugin-load-add=file_key_management "--file-key-management-filename=$WORK/keys"
fi

index >"$OUT/INDEX.md"
