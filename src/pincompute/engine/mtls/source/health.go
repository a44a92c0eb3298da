package main

import (
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newHealthServer answers the kubelet: 200 while the proxy can take part in handshakes.
func newHealthServer(settings settings, identity *identity, logger *slog.Logger) *server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(response http.ResponseWriter, _ *http.Request) {
		if problem := identity.problem(time.Now()); problem != "" {
			http.Error(response, problem, http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(response, "ready")
	})
	return &server{wrap: func(l net.Listener) net.Listener { return limit(l, maxConnectionsOfOne) }, http: &http.Server{
		Addr:              settings.healthAddress,
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       serverIdle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(&problemLog{log: logger}, "", 0),
	}}
}
