"""The figures that we hold ourselves to, measured on this machine: `make bench`."""
