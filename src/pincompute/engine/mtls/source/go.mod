module pincompute/mtls

go 1.26

require github.com/spiffe/go-spiffe/v2 v2.9.0
