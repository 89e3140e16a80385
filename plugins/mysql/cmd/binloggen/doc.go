// Command binloggen writes a MySQL binary log file from a list of transactions,
// so that tests of other folders have sources of any shape without a server:
//
//	binloggen <transactions.jsonl >mysql-bin.000001
//
// Standard input holds one JSON object a line, either a table
//
//	{"table":"t","database":"db","columns":[{"name":"id","type":"bigint"},{"name":"v","type":"varchar"}],"key":["id"]}
//
// which has to come before its rows, or a transaction
//
//	{"tx":[{"table":"t","op":"insert","after":[1,"a"]},
//	       {"table":"t","op":"update","before":[1,"a"],"after":[2,"a"]},
//	       {"table":"t","op":"delete","before":[2,"a"]}]}
//
// Values are integers for bigint, text of up to 255 bytes for varchar, or null.
// The file has checksums, GTIDs, and full row metadata and images; it is the same
// for the same input. It takes no part in the reader.
package main
