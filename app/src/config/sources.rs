//! Reading the file and the environment, refusing what is not in the table.

use std::ffi::OsString;
use std::path::PathBuf;

use super::ConfigError;
use super::table::{Key, TABLE, key};
use crate::wiring;

/// Variables that `dlock run` exports for its command and that say nothing to dlock itself.
const EXPORTED: &[&str] = &["DLOCK_NAME", "DLOCK_NAMESPACE", "DLOCK_TOKEN", "DLOCK_OWNER"];

/// What an orchestrator puts into every process's environment beside a service that is called
/// `dlock`: not meant for us.
fn is_service_link(name: &str) -> bool {
    name.starts_with("DLOCK_SERVICE_") || name == "DLOCK_PORT" || name.starts_with("DLOCK_PORT_")
}

/// The variable that names the file, where `--config` does not.
const FILE_VARIABLE: &str = "DLOCK_CONFIG";

/// What the configuration is read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The flags that were given: key name, flag and value.
    pub flags: Vec<(&'static str, &'static str, String)>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The file, if `--config` names one.
    pub file: Option<PathBuf>,
}

/// A value from one source.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) key: &'static Key,
    pub(super) value: String,
    /// The file, the variable or the flag.
    pub(super) place: String,
}

impl Sources {
    /// The process's own environment, and these flags.
    #[must_use]
    pub fn of_this_process(
        file: Option<PathBuf>,
        flags: Vec<(&'static str, &'static str, String)>,
    ) -> Self {
        Self { flags, environment: std::env::vars_os().collect(), file }
    }

    pub(super) fn in_flags(&self, errors: &mut Vec<ConfigError>) -> Vec<Found> {
        let mut found = Vec::new();
        for (name, flag, value) in &self.flags {
            match key(name) {
                Some(key) => {
                    found.push(Found { key, value: value.clone(), place: (*flag).into() });
                }
                None => errors.push(ConfigError {
                    place: (*flag).into(),
                    problem: unknown(name, "sets a key that is none", [].into_iter()),
                }),
            }
        }
        found
    }

    pub(super) fn in_environment(&self, errors: &mut Vec<ConfigError>) -> Vec<Found> {
        let mut found = Vec::new();
        for (name, value) in &self.environment {
            let Some(name) = name.to_str().filter(|name| name.starts_with("DLOCK_")) else {
                continue;
            };
            if EXPORTED.contains(&name) || name == FILE_VARIABLE || is_service_link(name) {
                continue;
            }
            // An empty variable is one that is not set: the way to switch one off for one command.
            if value.is_empty() {
                continue;
            }
            let problem = match (TABLE.iter().find(|key| key.variable() == name), value.to_str()) {
                (Some(key), Some(value)) => {
                    found.push(Found { key, value: value.into(), place: name.into() });
                    continue;
                }
                (Some(_), None) => "is not UTF-8".to_owned(),
                (None, _) => {
                    let names = TABLE.iter().map(|key| key.variable());
                    unknown(name, "is not a variable of dlock", names)
                }
            };
            errors.push(ConfigError { place: name.into(), problem });
        }
        found
    }

    /// The file that is to be read: `--config`, else `DLOCK_CONFIG`.
    fn path(&self) -> Option<PathBuf> {
        let of = |(name, value): &(OsString, OsString)| {
            (name == FILE_VARIABLE && !value.is_empty()).then(|| PathBuf::from(value))
        };
        self.file.clone().or_else(|| self.environment.iter().find_map(of))
    }

    pub(super) fn in_file(&self, errors: &mut Vec<ConfigError>) -> Vec<Found> {
        let Some(path) = self.path() else { return Vec::new() };
        let place = path.display().to_string();
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let parsed = read
            .and_then(|text| text.parse::<toml::Table>().map_err(|error| broken(&text, &error)));
        let table = match parsed {
            Ok(table) => table,
            Err(problem) => {
                errors.push(ConfigError { place, problem });
                return Vec::new();
            }
        };
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        let mut found = Vec::new();
        for (name, value) in flat {
            let place = format!("{place}, {name}");
            let problem = match (key(&name), text_of(&value)) {
                (Some(key), Some(value)) => {
                    found.push(Found { key, value, place });
                    continue;
                }
                (Some(_), None) => "must be a text or a whole number".to_owned(),
                (None, _) => {
                    let names = TABLE.iter().map(|key| key.name.to_owned());
                    unknown(&name, "is not a key", names)
                }
            };
            errors.push(ConfigError { place, problem });
        }
        found
    }
}

/// What is wrong with a file, and in which line: without the line itself, in which a secret may
/// stand.
fn broken(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
    format!("line {line}: {}", error.message().trim_end())
}

/// Tables within tables as dotted names.
fn flatten(prefix: &str, table: &toml::Table, flat: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, flat),
            other => flat.push((name, other.clone())),
        }
    }
}

/// A file's value as the text that flags and variables would have.
fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(many) => {
            let texts: Option<Vec<_>> = many.iter().map(|one| one.as_str()).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

/// What to say of a name that is not in the table: it may be that of a store that this build lacks.
fn unknown(name: &str, what: &str, names: impl Iterator<Item = String>) -> String {
    let lower = name.to_ascii_lowercase();
    let store = lower.trim_start_matches("dlock_").split(['.', '_']).next();
    let left_out = store.and_then(wiring::left_out);
    left_out.unwrap_or_else(|| format!("{what}{}", nearest(name, names)))
}

fn nearest(name: &str, names: impl Iterator<Item = String>) -> String {
    let near = names
        .map(|candidate| (strsim::damerau_levenshtein(name, &candidate), candidate))
        .min_by_key(|(distance, _)| *distance);
    near.map_or_else(String::new, |(_, candidate)| format!("; the nearest is {candidate}"))
}
