package main

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	loopback = "127.0.0.1"

	// connectionAge is the time for which a connection takes new requests. A pod that leaves its Service serves for longer
	// than that (`MIN_LEAVE_SECONDS` in planning/pods/mtls.py), so that no request arrives at an application that has ended.
	// It also bounds how long a connection outlives the trust that its handshake has established.
	connectionAge = 3 * time.Second
	// clientIdle is shorter than serverIdle: a client must never send a request into a connection that is being closed.
	clientIdle = 2 * time.Second
	serverIdle = 10 * time.Second
	// applicationIdle is shorter than the idle timeouts of common servers, 2 seconds and more, for the same reason.
	applicationIdle = time.Second

	headerTimeout = 10 * time.Second
	dialTimeout   = 5 * time.Second
	drainTimeout  = 20 * time.Second
	reloadEvery   = time.Second

	maxHeaderBytes = 64 << 10
	// Connections cost about 50 KB each; the limits keep a pod with as many of them below the memory of the part.
	maxConnections        = 512
	maxConnectionsOfOne   = 128
	maxConnectionsTo      = 256
	maxIdleConnections    = 32
	maxIdentityBytes      = 1 << 20
	memoryTarget          = 40 << 20
	copyBufferBytes       = 16 << 10
	problemLogInterval    = time.Second
	callerHeader          = "Pin-Caller"
	errorHeader           = "Pin-Error"
	reasonRefused         = "CallRefused"
	reasonUnreachable     = "CalleeUnreachable"
	reasonApplicationDown = "ApplicationUnreachable"
)

// limitedListener closes connections beyond the limits at once, so that one peer cannot take the places of all.
type limitedListener struct {
	net.Listener
	ofOne int
	mutex sync.Mutex
	open  map[string]int
	total int
}

func limit(listener net.Listener, ofOne int) net.Listener {
	return &limitedListener{Listener: listener, ofOne: ofOne, open: map[string]int{}}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
		if l.admit(peer) {
			return &countedConnection{Conn: connection, release: sync.OnceFunc(func() { l.release(peer) })}, nil
		}
		_ = connection.Close()
	}
}

func (l *limitedListener) admit(peer string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.total >= maxConnections || l.open[peer] >= l.ofOne {
		return false
	}
	l.total++
	l.open[peer]++
	return true
}

func (l *limitedListener) release(peer string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.total--
	if l.open[peer]--; l.open[peer] == 0 {
		delete(l.open, peer)
	}
}

type countedConnection struct {
	net.Conn
	release func()
}

func (c *countedConnection) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite is what a proxied upgrade needs to pass on the end of one direction.
func (c *countedConnection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// problemLog writes at most one line each second, and the number of those that it left out: peers cause these lines.
type problemLog struct {
	log   *slog.Logger
	mutex sync.Mutex
	last  time.Time
	left  int
}

func (p *problemLog) warn(message string, arguments ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if time.Since(p.last) < problemLogInterval {
		p.left++
		return
	}
	p.log.Warn(message, append(arguments, "similar", p.left)...)
	p.last, p.left = time.Now(), 0
}

// Write takes the lines of net/http and httputil: refused handshakes and broken connections.
func (p *problemLog) Write(line []byte) (int, error) {
	text := string(line[:min(len(line), 400)])
	p.warn("connection failed", "error", text)
	return len(line), nil
}

var _ io.Writer = (*problemLog)(nil)

// buffers are shared by all requests, so that an idle connection holds none.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return make([]byte, copyBufferBytes) }}}
}

func (b *buffers) Get() []byte { return b.pool.Get().([]byte) }

func (b *buffers) Put(buffer []byte) { b.pool.Put(buffer) } //nolint:staticcheck // the slice header is small
