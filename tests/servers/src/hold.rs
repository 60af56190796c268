//! What the programs do that run a server for somebody else.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// Prints where a server is, as a line, and returns when the input ends: only then may the caller
/// take the server down.
pub fn hold(whereabouts: &str) -> ExitCode {
    let said = writeln!(io::stdout(), "{whereabouts}");
    if said.is_err() || io::copy(&mut io::stdin().lock(), &mut io::sink()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
