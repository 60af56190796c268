//! `dlock run`, on the embedded store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dlock_domain::LockKey;
use dlock_ports::LockService;

use super::args::Run;
use super::{logs, owner, place, say};
use crate::run::{Home, RunRequest, execute, exit};
use crate::wiring::{self, EmbeddedConfig};
use crate::{OsEntropy, Service, ServiceConfig, SystemClock};

/// How long what is under way may take after the command has ended.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn main(options: Run) -> u8 {
    logs::start("warn");
    let directory = match data_dir(options.data_dir.as_deref()) {
        Ok(directory) => directory,
        Err(message) => {
            say(format_args!("{message}"));
            return exit::USAGE;
        }
    };
    let owner = match options.owner.clone().map_or_else(owner::default, Ok) {
        Ok(owner) => owner,
        Err(error) => {
            say(format_args!("{error}: pass --owner"));
            return exit::USAGE;
        }
    };
    // One thread: the command is what should have the machine.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            say(format_args!("cannot start: {error}"));
            return exit::UNREACHABLE;
        }
    };
    let code = runtime.block_on(async {
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
        let config = EmbeddedConfig::at(&directory);
        let backend = match wiring::embedded(config, clock.clone(), entropy.clone()) {
            Ok(backend) => backend,
            Err(error) => {
                say(format_args!("{error}"));
                return exit::UNREACHABLE;
            }
        };
        let service =
            Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
        let request = RunRequest {
            key: LockKey::new(options.namespace, options.name),
            owner,
            ttl: options.ttl,
            wait: if options.no_wait { Duration::ZERO } else { options.wait },
            command: options.command,
            conflict_exit_code: options.conflict_exit_code,
            home: Home::Embedded(directory),
        };
        let locks: Arc<dyn LockService> = service.clone();
        let code = execute(locks, clock, entropy, request).await;
        if !service.shutdown(PATIENCE).await {
            say(format_args!("some calls did not end; what they hold ends with its lease"));
        }
        code
    });
    // What still runs on the runtime's own threads must not keep us.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

/// `--data-dir` beats `DLOCK_SERVER`; that beats `DLOCK_EMBEDDED_PATH`, and cannot be followed yet:
/// running under another lock than the one that was meant would be worse than not running.
fn data_dir(given: Option<&Path>) -> Result<PathBuf, String> {
    let surroundings = place::Surroundings::of_this_process();
    if given.is_some() {
        return surroundings.data_dir(given);
    }
    if std::env::var_os("DLOCK_SERVER").is_some_and(|server| !server.is_empty()) {
        return Err("DLOCK_SERVER is set, but this version runs commands under locks of the \
                    embedded store only: unset it, or pass --data-dir"
            .into());
    }
    let path = std::env::var_os("DLOCK_EMBEDDED_PATH").map(PathBuf::from);
    surroundings.data_dir(path.as_deref())
}
