//! What is to be run.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use dlock_domain::{FencingToken, LockKey, OwnerId, Ttl};

/// Where the lock lives, so that what the command starts finds it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// At this server: exported as `DLOCK_SERVER`.
    Server(String),
    /// In the embedded store in this directory: exported as `DLOCK_EMBEDDED_PATH`.
    Embedded(PathBuf),
}

/// A wish to run a command under a lock.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// What to lock.
    pub key: LockKey,
    /// The label for people.
    pub owner: OwnerId,
    /// The lease's lifetime.
    pub ttl: Ttl,
    /// How long to wait for the lock; zero: not at all.
    pub wait: Duration,
    /// The command and its arguments; at least the command.
    pub command: Vec<OsString>,
    /// The exit code when the lock is not granted in time; usually
    /// [`NOT_GRANTED`](super::exit::NOT_GRANTED).
    pub conflict_exit_code: u8,
    /// Where the lock lives.
    pub home: Home,
}

impl RunRequest {
    /// What the command's environment gets, and what is taken out of it (`None`).
    pub(super) fn environment(&self, token: FencingToken) -> Vec<(&'static str, Option<OsString>)> {
        let text = |text: &str| Some(OsString::from(text));
        let (server, path) = match &self.home {
            Home::Server(server) => (text(server), None),
            Home::Embedded(path) => (None, Some(path.clone().into_os_string())),
        };
        vec![
            ("DLOCK_NAME", text(self.key.name().as_str())),
            ("DLOCK_NAMESPACE", text(self.key.namespace().as_str())),
            ("DLOCK_TOKEN", text(&token.to_string())),
            ("DLOCK_OWNER", text(self.owner.as_str())),
            ("DLOCK_SERVER", server),
            ("DLOCK_EMBEDDED_PATH", path),
        ]
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{LockName, Namespace};

    use super::*;

    #[test]
    fn exports_where_the_lock_lives_and_removes_the_other() {
        let mut request = RunRequest {
            key: LockKey::new(Namespace::default(), LockName::new("a/b").unwrap()),
            owner: OwnerId::new("me").unwrap(),
            ttl: Ttl::from_millis(1_000).unwrap(),
            wait: Duration::ZERO,
            command: vec!["true".into()],
            conflict_exit_code: 75,
            home: Home::Server("http://127.0.0.1:7420".into()),
        };
        let token = FencingToken::from_user(42).unwrap();
        let find = |request: &RunRequest, name: &str| {
            let environment = request.environment(token);
            environment.into_iter().find(|(own, _)| *own == name).unwrap().1
        };
        assert_eq!(find(&request, "DLOCK_NAME"), Some("a/b".into()));
        assert_eq!(find(&request, "DLOCK_TOKEN"), Some("42".into()));
        assert_eq!(find(&request, "DLOCK_SERVER"), Some("http://127.0.0.1:7420".into()));
        assert_eq!(find(&request, "DLOCK_EMBEDDED_PATH"), None);
        request.home = Home::Embedded("/somewhere".into());
        assert_eq!(find(&request, "DLOCK_SERVER"), None);
        assert_eq!(find(&request, "DLOCK_EMBEDDED_PATH"), Some("/somewhere".into()));
    }
}
