module pinterest.com/pincompute/flags

go 1.26
