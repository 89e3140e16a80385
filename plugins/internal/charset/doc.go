// Package charset knows the character sets and collations of MySQL and MariaDB
// and turns text into UTF-8 exactly as the servers do.
//
// The tables are data: collations.txt lists ids, names and character sets;
// single.txt the code points of character sets of one byte; multibyte.txt where
// those of two and three bytes differ from golang.org/x/text.
//
// Bytes that are not valid in their character set are never replaced: the caller
// is told and keeps the bytes.
package charset
