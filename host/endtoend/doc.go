// Package endtoend holds no code, only tests: the program, its reader process and
// its writer process move what real servers wrote into SQLite files, and the files
// are compared with what the servers held.
//
//	recordings ─► datalink run ─► SQLite ─► every table, row for row (TestRecordings)
//	                                  └──► single values by kind      (TestKinds)
//	servers that run here ─► the same with inputs made now            (TestServers)
//
// A kind of input on which change capture goes wrong is a row in one of the
// tables of these tests, with the right value.
package endtoend
