//! `dlock run`, on the embedded store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dlock_domain::LockKey;
use dlock_ports::LockService;

use super::args::Run;
use super::loaded::{self, Loaded};
use super::{logs, owner, place, say, stores};
use crate::run::{Home, RunRequest, execute, exit};
use crate::wiring;
use crate::{OsEntropy, Service, SystemClock};

/// How long what is under way may take after the command has ended.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn main(options: Run) -> u8 {
    let loaded = loaded::load(
        &options.file,
        &[
            ("lock.namespace", "--namespace", &options.namespace),
            ("lock.default.ttl", "--ttl", &options.ttl),
            ("embedded.path", "--data-dir", &options.data_dir),
        ],
    );
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    logs::start(&loaded, Some("warn"));
    let directory = match data_dir(&loaded, options.data_dir.is_some()) {
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
        let config = stores::embedded(&loaded.effective, &directory);
        let backend = match wiring::embedded(config, clock.clone(), entropy.clone()) {
            Ok(backend) => backend,
            Err(error) => {
                say(format_args!("{error}"));
                return exit::UNREACHABLE;
            }
        };
        let service =
            Service::new(backend, clock.clone(), entropy.clone(), loaded.effective.service);
        let request = RunRequest {
            key: LockKey::new(loaded.effective.namespace.clone(), options.name),
            owner,
            ttl: loaded.effective.default_ttl,
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
fn data_dir(loaded: &Loaded, by_flag: bool) -> Result<PathBuf, String> {
    if let Some(server) = loaded.settings.get("server").filter(|_| !by_flag)
        && server.value.is_some()
    {
        return Err(format!(
            "a server is configured ({}), but this version runs commands under locks of the \
             embedded store only: take that away, or pass --data-dir",
            server.origin
        ));
    }
    place::Surroundings::of_this_process().data_dir(loaded.effective.embedded_path.as_deref())
}
