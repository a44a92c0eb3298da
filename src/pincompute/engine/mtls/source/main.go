// The proxy of mutual TLS beside a workload.
//
// Inbound, it listens on the pod's mTLS port, admits the callers that the workload lists, and forwards their requests to
// the application on loopback with the header Pin-Caller. Outbound, it listens on loopback, one port for each workload
// that the application calls, and forwards to that workload over mTLS. The certificate is the pod's SPIFFE identity, in
// files that the kubelet renews.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	slog.SetDefault(log)
	debug.SetMemoryLimit(memoryTarget)
	settings, err := readSettings(os.Getenv)
	if err == nil {
		err = run(settings, log)
	}
	if err != nil {
		// The last line of a container that ended is in the pod's status, where `pin why` finds it.
		log.Error("proxy ended", "error", err)
		os.Exit(1)
	}
}

// run serves until SIGTERM. A native sidecar gets it after the application has ended.
func run(settings settings, log *slog.Logger) error {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	identity := newIdentity(settings.identityFolder, log)
	go identity.follow(stop)

	servers := []*server{newHealthServer(settings, identity, log)}
	if len(settings.callers) > 0 {
		servers = append(servers, newInboundServer(settings, identity, log))
	}
	for _, call := range settings.calls {
		servers = append(servers, newOutboundServer(settings, call, identity, log))
	}
	for _, each := range servers {
		if err := each.listen(); err != nil {
			return err
		}
	}
	failed := make(chan error, len(servers))
	for _, each := range servers {
		go func() { failed <- each.serve() }()
	}
	log.Info("proxy started", "callers", len(settings.callers), "calls", len(settings.calls))
	select {
	case err := <-failed:
		return err
	case <-stop.Done():
		drain(servers)
		return nil
	}
}

// drain lets requests in progress finish.
func drain(servers []*server) {
	deadline, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var ended sync.WaitGroup
	for _, each := range servers {
		ended.Go(func() { _ = each.http.Shutdown(deadline) })
	}
	ended.Wait()
}

// server is an HTTP server with its listener.
type server struct {
	http     *http.Server
	tls      bool
	wrap     func(net.Listener) net.Listener
	listener net.Listener
}

func (s *server) listen() error {
	listener, err := net.Listen("tcp", s.http.Addr)
	if err == nil {
		s.listener = s.wrap(listener)
	}
	return err
}

func (s *server) serve() error {
	var err error
	if s.tls {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
