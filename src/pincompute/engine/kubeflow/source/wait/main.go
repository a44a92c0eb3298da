// Waits until a name can be looked up, however long that takes: until the one that leads is there.
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
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	fmt.Println("waiting for", name)
	for {
		if found, err := net.DefaultResolver.LookupHost(told, name); err == nil {
			fmt.Println("found at", found[0])
			return
		}
		select {
		case <-told.Done():
			os.Exit(143)
		case <-time.After(pause):
		}
	}
}
