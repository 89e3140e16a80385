// Command mysql is the connector of MySQL and MariaDB: a reader of servers
// and of binary log files. The host starts it as a process; README.md says what it does.
package main
