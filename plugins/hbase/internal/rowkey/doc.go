// Package rowkey makes row keys of key columns and takes them apart again.
//
// A template is text with columns in braces: "{id}", "{hash:2}{region:text}|{id}".
//
//	{column}          order-preserving: integers and times in fixed width with the
//	                  sign turned, floats likewise, decimals and text in a form that
//	                  ends itself
//	{column:text}     as text; what would be taken for the literal that follows is
//	                  escaped by a backslash
//	{column:reverse}  order-preserving and backwards, newest first
//	{salt:N}          one byte, 0 to N-1, from the rest of the key
//	{hash:N}          N bytes (1 to 16) of the MD5 of the rest of the key
//
// Invariants:
//
//   - Different values of the columns give different keys: each part is of fixed
//     width, or ends itself, or is the last one. ('a|b','c') and ('a','b|c') are two
//     rows.
//   - Without salt, hash and text parts, keys compare bytewise as the tuples of
//     values do, text by its bytes.
//   - Decode is the inverse of Encode.
//
// A template is made once for a schema and is safe for concurrent use.
package rowkey
