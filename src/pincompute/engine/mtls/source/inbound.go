package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
)

type acceptedAt struct{}

// inbound forwards the requests of admitted callers to the application.
type inbound struct {
	proxy *httputil.ReverseProxy
}

func newInboundServer(settings settings, identity *identity, logger *slog.Logger) *server {
	problems := &problemLog{log: logger}
	lines := log.New(problems, "", 0)
	config := tlsconfig.MTLSServerConfig(identity, identity, admitCallers(settings.callers))
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{"http/1.1"}
	// A resumed session would skip the check of the caller.
	config.SessionTicketsDisabled = true
	application, err := url.Parse(settings.applicationURL)
	if err != nil {
		panic(err) // built from a number
	}
	handler := &inbound{&httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			forward(request, application, request.In.Host)
			setCaller(request.Out, callerOf(request.In))
		},
		Transport:     newTransport(applicationIdle),
		FlushInterval: -1,
		BufferPool:    newBuffers(),
		ErrorLog:      lines,
		ErrorHandler: func(response http.ResponseWriter, request *http.Request, err error) {
			problems.warn("application did not answer", "error", err.Error())
			message := fmt.Sprintf("%s does not answer on its port", settings.self)
			writeError(response, http.StatusBadGateway, reasonApplicationDown, message, "pin why "+settings.self.name)
		},
	}}
	return &server{tls: true, wrap: func(l net.Listener) net.Listener { return limit(l, maxConnectionsOfOne) }, http: &http.Server{
		Addr:              settings.inboundAddress,
		Handler:           handler,
		TLSConfig:         config,
		Protocols:         onlyHTTP1(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       serverIdle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          lines,
		ConnContext: func(parent context.Context, _ net.Conn) context.Context {
			return context.WithValue(parent, acceptedAt{}, time.Now())
		},
	}}
}

func (i *inbound) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	// Without it, an application that answers before it has read the whole request would lose the rest of it.
	_ = http.NewResponseController(response).EnableFullDuplex()
	accepted, _ := request.Context().Value(acceptedAt{}).(time.Time)
	if time.Since(accepted) > connectionAge && request.Header.Get("Upgrade") == "" {
		response.Header().Set("Connection", "close")
	}
	// A stream ends with the certificate that it began with.
	limited, cancel := context.WithDeadline(request.Context(), request.TLS.PeerCertificates[0].NotAfter)
	defer cancel()
	i.proxy.ServeHTTP(response, request.WithContext(limited))
}

func admitCallers(callers map[workload]bool) tlsconfig.Authorizer {
	return func(id spiffeid.ID, _ [][]*x509.Certificate) error {
		if !callers[workloadOf(id)] {
			return fmt.Errorf("%s is not among the callers", id)
		}
		return nil
	}
}

// callerOf is the workload of the verified certificate.
func callerOf(request *http.Request) workload {
	id, err := spiffeid.FromURI(request.TLS.PeerCertificates[0].URIs[0])
	if err != nil {
		return workload{} // the handshake has verified it
	}
	return workloadOf(id)
}

// setCaller replaces every spelling of the header: many applications read Pin_Caller as the same variable.
func setCaller(request *http.Request, caller workload) {
	for _, fields := range []http.Header{request.Header, request.Trailer} {
		for name := range fields {
			if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), callerHeader) {
				delete(fields, name)
			}
		}
	}
	request.Header.Set(callerHeader, caller.String())
}

// forward sends the request to this server as it is: httputil would drop parts of a query that it cannot parse.
func forward(request *httputil.ProxyRequest, server *url.URL, host string) {
	request.SetURL(server)
	request.Out.URL.RawQuery = request.In.URL.RawQuery
	request.Out.Host = host
}

func newTransport(idle time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    headerTimeout,
		IdleConnTimeout:        idle,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxIdleConnections,
		MaxConnsPerHost:        maxConnectionsTo,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        4 << 10,
		DisableCompression:     true,
		Protocols:              onlyHTTP1(),
	}
}

func onlyHTTP1() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return protocols
}

func writeError(response http.ResponseWriter, status int, reason, message, next string) {
	response.Header().Set("Content-Type", "text/plain; charset=utf-8")
	response.Header().Set(errorHeader, reason)
	response.WriteHeader(status)
	_, _ = fmt.Fprintf(response, "%s: %s\nnext: %s\n", reason, message, next)
}
