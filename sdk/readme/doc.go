// Package readme keeps the option tables in a connector's README in step with its
// code. A README has, for each role, the lines
//
//	<!-- options: writer -->
//	<!-- end -->
//
// and a test of the connector calls Check; UPDATE_README=1 go test rewrites what
// is between them.
package readme
