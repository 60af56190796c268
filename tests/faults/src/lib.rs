//! Faults for tests.
