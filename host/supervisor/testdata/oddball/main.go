// Command oddball is a program that is no good plugin, in the way that the
// variable ODDBALL says.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	switch os.Getenv("ODDBALL") {
	case "future":
		fmt.Println("1|7|unix|/nowhere|grpc|")
	case "garbage":
		fmt.Println("Hello, world!")
	case "netrpc":
		fmt.Println("1|2|unix|/nowhere|netrpc|")
	case "crash":
		panic("no stomach for this")
	case "silent":
	}
	time.Sleep(time.Hour)
}
