//! The lock service over HTTP, for remote users.
