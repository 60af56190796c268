//! Where the embedded store lives: one place for all commands, whatever folder they run in (C3).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::getuid;

/// What decides the place.
pub(crate) struct Surroundings {
    pub(crate) root: bool,
    pub(crate) state_home: Option<OsString>,
    pub(crate) home: Option<OsString>,
}

impl Surroundings {
    pub(crate) fn of_this_process() -> Self {
        Self {
            root: getuid().is_root(),
            state_home: std::env::var_os("XDG_STATE_HOME"),
            home: std::env::var_os("HOME"),
        }
    }

    /// The directory: what was given, else the default. Always absolute, so that what a command
    /// starts elsewhere finds the same one.
    pub(crate) fn data_dir(&self, given: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(given) = given {
            if given.as_os_str().is_empty() {
                return Err("the data directory (--data-dir, DLOCK_EMBEDDED_PATH) is empty".into());
            }
            return std::path::absolute(given).map_err(|error| error.to_string());
        }
        if self.root {
            return Ok(PathBuf::from("/var/lib/dlock"));
        }
        // A relative path there is to be ignored, the specification of the variable says.
        let absolute =
            |path: &OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let state = self.state_home.as_ref().and_then(absolute);
        let state = state.or_else(|| {
            self.home.as_ref().and_then(absolute).map(|home| home.join(".local/state"))
        });
        state.map(|state| state.join("dlock")).ok_or_else(|| {
            "neither XDG_STATE_HOME nor HOME says where data lives: pass --data-dir".into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_one_and_absolute() {
        let with = |root, state_home: Option<&str>, home: Option<&str>| Surroundings {
            root,
            state_home: state_home.map(Into::into),
            home: home.map(Into::into),
        };
        let dir = |s: Surroundings| s.data_dir(None).map(|p| p.to_string_lossy().into_owned());
        assert_eq!(dir(with(true, Some("/x"), Some("/h"))).unwrap(), "/var/lib/dlock");
        assert_eq!(dir(with(false, Some("/x"), Some("/h"))).unwrap(), "/x/dlock");
        assert_eq!(dir(with(false, Some("x"), Some("/h"))).unwrap(), "/h/.local/state/dlock");
        assert_eq!(dir(with(false, None, Some("/h"))).unwrap(), "/h/.local/state/dlock");
        assert!(dir(with(false, None, None)).unwrap_err().contains("--data-dir"));
        let given = with(false, None, None).data_dir(Some(Path::new("here"))).unwrap();
        assert!(given.is_absolute() && given.ends_with("here"));
    }
}
