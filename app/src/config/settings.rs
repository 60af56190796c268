//! The layers put together.

use std::fmt;

use super::ConfigError;
use super::sources::{Found, Sources};
use super::table::{Key, TABLE};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The table.
    Default,
    /// A file: its path and the key.
    File(String),
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) | Self::Environment(place) | Self::Flag(place) => f.write_str(place),
        }
    }
}

/// A key's effective value; its `Debug` hides what is secret.
#[derive(Clone)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// Its value; `None`: nobody says and there is no default.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::show::row(self).join(" "))
    }
}

/// What one source says, and how its places are called.
type Layer = (Vec<Found>, fn(String) -> Origin);

/// Every key's effective value, in the table's order.
#[derive(Clone, Debug)]
pub struct Settings {
    all: Vec<Setting>,
}

impl Settings {
    /// Reads all sources: flag, then environment, then file, then default.
    ///
    /// # Errors
    /// Everything that is wrong in any source, also where a stronger one overrides it: a typo is
    /// found when it is made.
    pub fn load(sources: &Sources) -> Result<Self, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let layers: [Layer; 3] = [
            (sources.in_file(&mut errors), Origin::File),
            (sources.in_environment(&mut errors), Origin::Environment),
            (sources.in_flags(&mut errors), Origin::Flag),
        ];
        let mut all: Vec<Setting> = TABLE
            .iter()
            .map(|key| Setting {
                key,
                value: key.default.map(str::to_owned),
                origin: Origin::Default,
            })
            .collect();
        for (layer, origin) in layers {
            for Found { key, value, place } in layer {
                if let Err(problem) = key.kind.check(&value) {
                    errors.push(ConfigError { place, problem });
                } else if let Some(setting) = all.iter_mut().find(|s| s.key.name == key.name) {
                    setting.value = Some(value);
                    setting.origin = origin(place);
                }
            }
        }
        if errors.is_empty() { Ok(Self { all }) } else { Err(errors) }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Setting] {
        &self.all
    }

    /// A key's setting; `None` if there is no such key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.key.name == name)
    }

    /// A key's value, if it has one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|setting| setting.value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(file: Option<&str>, environment: &[(&str, &str)]) -> (Sources, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dlock.toml");
        std::fs::write(&path, file.unwrap_or_default()).unwrap();
        let environment =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        (Sources { flags: Vec::new(), environment, file: file.map(|_| path) }, folder)
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let file = "[lock]\nmax_waiters = 7\nnamespace = 'file'\n[http]\nlisten = '127.0.0.1:1'\n";
        let (mut sources, _folder) = sources(
            Some(file),
            &[("DLOCK_LOCK_NAMESPACE", "env"), ("DLOCK_HTTP_LISTEN", "127.0.0.1:2")],
        );
        sources.flags.push(("http.listen", "--listen", "127.0.0.1:3".into()));
        let settings = Settings::load(&sources).unwrap();
        let seen = |name: &str| {
            let setting = settings.get(name).unwrap();
            (setting.value.clone().unwrap(), setting.origin.to_string())
        };
        assert_eq!(seen("http.listen"), ("127.0.0.1:3".into(), "--listen".into()));
        assert_eq!(seen("lock.namespace"), ("env".into(), "DLOCK_LOCK_NAMESPACE".into()));
        assert_eq!(seen("lock.max_waiters").0, "7");
        assert!(seen("lock.max_waiters").1.ends_with("dlock.toml, lock.max_waiters"));
        assert_eq!(seen("lock.default.ttl"), ("30s".into(), "default".into()));
        assert_eq!(settings.value("server"), None);
    }

    #[test]
    fn everything_wrong_is_reported_at_once_with_the_nearest_name() {
        let (sources, _folder) = sources(
            Some("lock.max_waitres = 7\nhttp.drain = true\n"),
            &[
                ("DLOCK_HTTP_LISTN", "127.0.0.1:2"),
                ("DLOCK_LOG_FORMAT", "xml"),
                ("DLOCK_NAME", "exported"),
                ("DLOCK_TOKEN", "7"),
                ("DLOCK_SERVICE_HOST", "10.0.0.1"),
                ("DLOCK_PORT_7420_TCP", "tcp://10.0.0.1:7420"),
                ("DLOCK_SERVER", ""),
                ("OTHER", "x"),
            ],
        );
        let errors = Settings::load(&sources).unwrap_err();
        let said: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].contains("http.drain: must be a text"), "{said:?}");
        assert!(said[1].contains("nearest is lock.max_waiters"), "{said:?}");
        assert!(said[2].contains("nearest is DLOCK_HTTP_LISTEN"), "{said:?}");
        assert!(said[3].contains("DLOCK_LOG_FORMAT: must be one of auto, json, text"), "{said:?}");
    }

    #[test]
    fn a_store_that_this_build_lacks_is_named_wherever_it_is_asked_for() {
        for store in ["etcd", "postgres"] {
            let variable = format!("DLOCK_{}_X", store.to_uppercase());
            let (mut sources, _folder) =
                sources(Some(&format!("{store}.x = '1'\n")), &[(&variable, "1")]);
            sources.flags.push(("lock.backend", "--backend", store.into()));
            let errors = Settings::load(&sources).unwrap_err();
            let feature = format!("--features {store}");
            let told = errors.iter().filter(|error| error.problem.contains(&feature)).count();
            let there = crate::wiring::BACKENDS.contains(&store);
            assert_eq!(told, if there { 0 } else { 3 }, "{errors:?}");
        }
    }

    #[test]
    fn a_wrong_value_is_found_even_where_it_is_overridden() {
        let (mut sources, _folder) = sources(None, &[("DLOCK_HTTP_LISTEN", "nowhere")]);
        sources.flags.push(("http.listen", "--listen", "127.0.0.1:3".into()));
        assert_eq!(Settings::load(&sources).unwrap_err()[0].place, "DLOCK_HTTP_LISTEN");
    }

    #[test]
    fn a_file_that_cannot_be_read_or_parsed_is_named() {
        let (mut sources, folder) = sources(Some("lock = [broken\n"), &[]);
        let errors = Settings::load(&sources).unwrap_err();
        assert!(errors[0].place.ends_with("dlock.toml"), "{errors:?}");
        sources.file = Some(folder.path().join("absent.toml"));
        assert!(Settings::load(&sources).unwrap_err()[0].place.ends_with("absent.toml"));
    }
}
