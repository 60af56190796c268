//! Running as nobody in particular, where the tests run as root: PostgreSQL and PgBouncer refuse to
//! serve as root.

use std::{
    fs, io,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

/// The user and the group that Linux keeps for those who own nothing.
pub(crate) const NOBODY: u32 = 65_534;

/// A program with its arguments, as somebody who is not root.
pub(crate) fn command(program: &Path, args: Vec<String>) -> (PathBuf, Vec<String>) {
    if !rustix::process::geteuid().is_root() {
        return (program.to_owned(), args);
    }
    // It becomes the program: the process stays the same.
    let as_nobody = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    let rest = ["--clear-groups".to_owned(), "--".to_owned(), program.display().to_string()];
    let args = as_nobody.into_iter().chain(rest).chain(args).collect();
    ("setpriv".into(), args)
}

/// Gives a folder to whoever that is.
///
/// # Errors
/// If it cannot be given away, or lies where nobody else may go.
pub(crate) fn give(folder: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    chown(folder, Some(NOBODY), Some(NOBODY))?;
    let (program, args) =
        command(Path::new("test"), vec!["-w".into(), folder.display().to_string()]);
    if Command::new(program).args(args).status()?.success() {
        return Ok(());
    }
    let above: Vec<_> =
        folder.ancestors().skip(1).map(Path::display).map(|p| p.to_string()).collect();
    Err(io::Error::other(format!(
        "as root these tests run servers as user {NOBODY}, who may not enter all of {}: set TMPDIR \
         to a folder that everybody may enter",
        above.join(", ")
    )))
}

/// Writes a file that only its owner reads, and gives it away likewise.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(file: &Path, content: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(file, content)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    if rustix::process::geteuid().is_root() {
        chown(file, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}

/// A password of 128 bits.
///
/// # Errors
/// If the system has none.
pub(crate) fn password() -> io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
