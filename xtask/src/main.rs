//! The `cargo xtask` binary; everything it does lives in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::verbs::main(std::env::args().skip(1).collect())
}
