package continuous

import (
	"fmt"
	"strings"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// following are options of servers of which one follows another. Where what it applies
// waits for an XA transaction, it is to try again soon.
var following = []string{"--log-slave-updates=1", "--relay-log-recovery=1", "--innodb-lock-wait-timeout=2"}

// follow makes b follow a by GTID.
func follow(a, b *stack.Server) {
	a.SQL("CREATE USER repl@'%' IDENTIFIED BY 'p'; GRANT REPLICATION SLAVE ON *.* TO repl@'%';")
	if a.Kind == "mysql" {
		b.SQL(fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='repl', SOURCE_PASSWORD='p', SOURCE_SSL=1, SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA;", a.Port))
		return
	}
	b.SQL(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='repl', MASTER_PASSWORD='p', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos; START SLAVE;", a.Port))
}

// level waits until b has all that a has.
func level(a, b *stack.Server) error {
	query, wait := "SELECT @@gtid_executed", "SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 60)"
	if a.Kind == "mariadb" {
		query, wait = "SELECT @@gtid_binlog_pos", "SELECT MASTER_GTID_WAIT('%s', 60)"
	}
	at := strings.NewReplacer("\n", "", `\n`, "", " ", "").Replace(a.SQL(query, "-N"))
	begun := time.Now()
	if out := strings.TrimSpace(b.SQL(fmt.Sprintf(wait, at), "-N")); out != "0" {
		status := b.SQL("SHOW REPLICA STATUS; SHOW FULL PROCESSLIST", "-E")
		return fmt.Errorf("after %s the second server does not have %s (%s):\n%s", time.Since(begun), at, out, status)
	}
	return nil
}

// alone ends that b follows.
func alone(b *stack.Server) {
	if b.Kind == "mysql" {
		b.SQL("STOP REPLICA; RESET REPLICA ALL;")
		return
	}
	b.SQL("STOP SLAVE; RESET SLAVE ALL;")
}
