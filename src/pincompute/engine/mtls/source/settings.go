package main

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// settings are what the planner wrote into annotations of the pod, which arrive as variables.
type settings struct {
	self           workload
	identityFolder string
	applicationURL string
	callers        map[workload]bool
	calls          []call
	inboundAddress string
	healthAddress  string
	// calleeAddress is the address of every callee instead of its Service. It is for tests on loopback.
	calleeAddress string
}

// workload is a project and the name of a workload in it, as in the path of a SPIFFE ID.
type workload struct{ project, name string }

func (w workload) String() string { return w.project + "/" + w.name }

// call is a workload that the application calls, and the port on loopback where it does.
type call struct {
	callee workload
	port   int
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func readSettings(variable func(string) string) (settings, error) {
	read := settings{
		self:           workload{variable("PIN_PROJECT"), variable("PIN_WORKLOAD")},
		identityFolder: variable("IDENTITY_FOLDER"),
		callers:        map[workload]bool{},
		inboundAddress: orDefault(variable("MTLS_ADDRESS"), ":15443"),
		healthAddress:  orDefault(variable("MTLS_HEALTH_ADDRESS"), ":15020"),
		calleeAddress:  variable("MTLS_CALLEE_ADDRESS"),
	}
	if read.identityFolder == "" {
		return read, fmt.Errorf("IDENTITY_FOLDER is not set: the runtime has no part 'identity'")
	}
	for _, text := range strings.Fields(variable("MTLS_CALLERS")) {
		caller, err := parseWorkload(text)
		if err != nil {
			return read, fmt.Errorf("MTLS_CALLERS: %w", err)
		}
		read.callers[caller] = true
	}
	for _, text := range strings.Fields(variable("MTLS_CALLS")) {
		name, port, _ := strings.Cut(text, "=")
		callee, err := parseWorkload(name)
		if err != nil {
			return read, fmt.Errorf("MTLS_CALLS: %w", err)
		}
		number, err := parsePort(port)
		if err != nil {
			return read, fmt.Errorf("MTLS_CALLS: %w", err)
		}
		read.calls = append(read.calls, call{callee, number})
	}
	if len(read.callers) > 0 {
		number, err := parsePort(variable("MTLS_APPLICATION_PORT"))
		if err != nil {
			return read, fmt.Errorf("MTLS_APPLICATION_PORT: %w", err)
		}
		read.applicationURL = "http://" + net.JoinHostPort(loopback, strconv.Itoa(number))
	}
	return read, nil
}

func parseWorkload(text string) (workload, error) {
	project, name, _ := strings.Cut(text, "/")
	if !namePattern.MatchString(project) || !namePattern.MatchString(name) {
		return workload{}, fmt.Errorf("%q is not PROJECT/WORKLOAD", text)
	}
	return workload{project, name}, nil
}

func parsePort(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > 65535 {
		return 0, fmt.Errorf("%q is not a port", text)
	}
	return number, nil
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
