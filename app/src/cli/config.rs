//! `dlock config`.

use super::args::ConfigCommand;
use super::loaded;
use super::table::Table;
use crate::config::rows;

pub(crate) fn main(command: &ConfigCommand) -> u8 {
    let (ConfigCommand::Show(file) | ConfigCommand::Check(file)) = command;
    let loaded = match loaded::load(file, &[]) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    if matches!(command, ConfigCommand::Show(_)) {
        let rows = rows(&loaded.settings).into_iter().map(Vec::from).collect();
        let head = &["KEY", "VALUE", "FROM"];
        return Table { head, rows, ..Table::default() }.print(0);
    }
    0
}
