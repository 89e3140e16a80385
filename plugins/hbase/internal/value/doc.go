// Package value turns column values into the bytes of HBase cells and back.
//
// There are three encodings:
//
//	text     numbers in decimal, times as the source prints them, text as it is
//	binary   as org.apache.hadoop.hbase.util.Bytes writes: big endian, two's
//	         complement; unsigned numbers in the next wider signed one; decimals as
//	         32-bit scale and unscaled number; timestamps as 64-bit microseconds
//	phoenix  as Apache Phoenix stores TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT,
//	         DOUBLE, BOOLEAN, VARCHAR, VARBINARY, DATE and TIMESTAMP
//
// What an encoding has no form for is an error that names column and type: Fits
// says so before rows come. Bytes, bits, geometries and vectors are the same in
// all: as they are.
package value
