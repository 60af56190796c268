//! `dlock config`.

use std::io::Write as _;

use super::args::ConfigCommand;
use super::loaded;
use crate::config::show;

pub(crate) fn main(command: &ConfigCommand) -> u8 {
    let (ConfigCommand::Show(file) | ConfigCommand::Check(file)) = command;
    let loaded = match loaded::load(file, &[]) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    if matches!(command, ConfigCommand::Show(_)) {
        // A closed pipe is no error.
        let _ = std::io::stdout().lock().write_all(show(&loaded.settings).as_bytes());
    }
    0
}
