//! The HTTP server: authentication, surfaces and streaming.
