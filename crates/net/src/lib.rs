//! The only way out of Petasos: the HTTP client, SSE decoding and retries.
