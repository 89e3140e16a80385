// Package host is the folder of the daemon: everything that must be right whatever
// the store is. It holds no code of its own but the test of the import table,
// which fails where a folder of the module links what it may not.
package host
