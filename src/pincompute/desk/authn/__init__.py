"""Authentication: identifies the caller of a request.

The `authenticator` asks its providers in turn, one for each kind of credentials: the local token, OpenID tokens, tokens
of Kubernetes service accounts, and client certificates. `throttle` bounds what unknown credentials may cost.
"""
