//! `dlock run`.

use std::sync::Arc;
use std::time::Duration;

use dlock_domain::LockKey;

use super::args::Run;
use super::{owner, say, target};
use crate::run::{RunRequest, execute, exit};

pub(crate) fn main(options: Run) -> u8 {
    let owner = match options.owner.clone().map_or_else(owner::default, Ok) {
        Ok(owner) => owner,
        Err(error) => {
            say(format_args!("{error}: pass --owner"));
            return exit::USAGE;
        }
    };
    let ttl = options.ttl.clone();
    let flags: &[_] = &[("lock.default.ttl", "--ttl", &ttl)];
    let place = options.place.clone();
    target::with(&place, flags, |target| async move {
        let request = RunRequest {
            key: LockKey::new(target.loaded.effective.namespace.clone(), options.name),
            owner,
            ttl: target.loaded.effective.default_ttl,
            wait: if options.no_wait { Duration::ZERO } else { options.wait },
            command: options.command,
            conflict_exit_code: options.conflict_exit_code,
            home: target.home.clone(),
        };
        let (clock, entropy) = (Arc::clone(&target.clock), Arc::clone(&target.entropy));
        execute(Arc::clone(&target.locks), clock, entropy, request).await
    })
}
