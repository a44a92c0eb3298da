package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"syscall"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
)

// mtlsPort is the port of every Service with callers.
const mtlsPort = "15443"

// newOutboundServer forwards what the application sends to one loopback port to one callee.
func newOutboundServer(settings settings, call call, identity *identity, logger *slog.Logger) *server {
	problems := &problemLog{log: logger}
	lines := log.New(problems, "", 0)
	host := call.callee.name + "." + call.callee.project
	address := orDefault(settings.calleeAddress, net.JoinHostPort(host+".svc", mtlsPort))
	transport := newTransport(clientIdle)
	transport.TLSClientConfig = tlsconfig.MTLSClientConfig(identity, identity, admitCallee(call.callee))
	transport.TLSClientConfig.MinVersion = tls.VersionTLS13
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			forward(request, &url.URL{Scheme: "https", Host: address}, host)
		},
		Transport:     transport,
		FlushInterval: -1,
		BufferPool:    newBuffers(),
		ErrorLog:      lines,
		ErrorHandler: func(response http.ResponseWriter, _ *http.Request, err error) {
			problems.warn("call failed", "callee", call.callee.String(), "error", err.Error())
			writeCallError(response, settings.self, call.callee, err)
		},
	}
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		_ = http.NewResponseController(response).EnableFullDuplex()
		proxy.ServeHTTP(response, request)
	})
	return &server{wrap: func(l net.Listener) net.Listener { return limit(l, maxConnections) }, http: &http.Server{
		Addr:              net.JoinHostPort(loopback, strconv.Itoa(call.port)),
		Handler:           handler,
		Protocols:         onlyHTTP1(),
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          lines,
	}}
}

// errWrongCallee is a peer with a valid certificate of another workload.
var errWrongCallee = errors.New("another workload answers")

func admitCallee(callee workload) tlsconfig.Authorizer {
	return func(id spiffeid.ID, _ [][]*x509.Certificate) error {
		if workloadOf(id) != callee {
			return fmt.Errorf("%w: %s", errWrongCallee, id)
		}
		return nil
	}
}

// writeCallError tells the application what failed, and its developer what to do.
func writeCallError(response http.ResponseWriter, self, callee workload, err error) {
	switch {
	case isAlert(err), errors.Is(err, syscall.ECONNRESET):
		message := fmt.Sprintf("%s has refused the connection of %s", callee, self)
		next := fmt.Sprintf("owner of %s: add %s to its callers", callee, self)
		writeError(response, http.StatusBadGateway, reasonRefused, message, next)
	case errors.Is(err, errWrongCallee):
		message := fmt.Sprintf("the address of %s leads to another workload", callee)
		writeError(response, http.StatusBadGateway, reasonUnreachable, message, "pin why "+callee.name)
	default:
		message := fmt.Sprintf("%s does not answer on its mTLS port", callee)
		next := fmt.Sprintf("pin why %s; owner of %s: add %s to its callers", callee.name, callee, self)
		writeError(response, http.StatusBadGateway, reasonUnreachable, message, next)
	}
}

// isAlert is true if the other side has ended the handshake with an alert. With TLS 1.3 a refused client reads it, or a
// reset, after it has finished the handshake on its side.
func isAlert(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "remote error"
}
