//! Standard input and output, given away.

use std::{fs::File, io};

use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Puts nothing in the place of this process's standard input and output. They belong to the
/// command now: while a copy stayed open here, whoever reads its output would not see its end, and
/// whoever writes its input would not see that nobody reads (C55).
///
/// # Errors
/// The system's.
pub(super) fn give_away() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok(())
}
