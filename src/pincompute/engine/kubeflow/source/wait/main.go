// Waits until a name can be looked up, and so until the one that leads is there: `wait NAME SECONDS` at the most.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const pause = 500 * time.Millisecond

func main() {
	name := os.Args[1]
	patience, err := time.ParseDuration(os.Args[2] + "s")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	limited, end := context.WithTimeout(told, patience)
	defer end()
	fmt.Println("waiting for", name)
	for {
		if found, err := net.DefaultResolver.LookupHost(limited, name); err == nil {
			fmt.Println("found at", found[0])
			return
		}
		select {
		case <-limited.Done():
			fmt.Printf("%s was not there in %s: it has ended, or never began\n", name, patience)
			os.Exit(1)
		case <-time.After(pause):
		}
	}
}
