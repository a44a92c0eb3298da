"""Pure decisions of the desk: may this be accepted. Reviews, break-glass, policies, authorization and quota."""
