"""The HTTP API: server, middlewares, endpoints and their OpenAPI description."""
