// Waits until a DNS name resolves, which means that the master of a training job exists: `wait NAME TIMEOUT_SECONDS`.
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

const retryInterval = 500 * time.Millisecond

func main() {
	name := os.Args[1]
	timeout, err := time.ParseDuration(os.Args[2] + "s")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	signalled, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	limited, end := context.WithTimeout(signalled, timeout)
	defer end()
	fmt.Println("waiting for", name)
	for {
		if found, err := net.DefaultResolver.LookupHost(limited, name); err == nil {
			fmt.Println("found at", found[0])
			return
		}
		select {
		case <-limited.Done():
			fmt.Printf("%s did not resolve within %s: the master has ended or was never started\n", name, timeout)
			os.Exit(1)
		case <-time.After(retryInterval):
		}
	}
}
