//! For tests only: a scripted model server, a real server on port 0, fixtures.

pub mod model_server;
