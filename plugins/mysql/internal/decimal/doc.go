// Package decimal prints the binary form that DECIMAL values have in rows and in
// JSON documents of MySQL and MariaDB (strings/decimal.cc).
package decimal
