// Command hbase is the connector for HBase 2.5 and later: it writes rows at the
// versions of their changes, and reads tables and what replication brings.
package main
