//! Where a command's locks live: at a server, or in the embedded store directly (C3).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dlock_client::{RemoteConfig, RemoteLocks, ServerUrl};
use dlock_domain::LockError;
use dlock_ports::LockService;

use super::args::Place;
use super::loaded::{self, Flags, Loaded};
use super::{logs, place, say, stores};
use crate::config::{Origin, Settings};
use crate::run::{Home, exit};
use crate::wiring;
use crate::{OsEntropy, Service, SystemClock};

/// How long what is under way may take after a command has its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lock service, and what its commands need besides.
pub(crate) struct Target {
    pub(crate) locks: Arc<dyn LockService>,
    pub(crate) clock: Arc<SystemClock>,
    pub(crate) entropy: Arc<OsEntropy>,
    pub(crate) home: Home,
    pub(crate) loaded: Loaded,
    ending: Ending,
}

enum Ending {
    Service(Arc<Service>),
    Remote(RemoteLocks),
}

impl Target {
    /// Finds where the locks live: `--server`, `--data-dir`, a configured server, else the
    /// embedded store.
    fn open(place: &Place, loaded: Loaded) -> Result<Self, (u8, String)> {
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
        let servers = &loaded.effective.servers;
        if place.data_dir.is_none() && !servers.is_empty() && !nearer_path(&loaded.settings) {
            let home = Home::Server(servers.join(","));
            let parsed: Result<Vec<_>, _> =
                servers.iter().map(|url| ServerUrl::parse(url)).collect();
            let remote = parsed.and_then(|servers| {
                RemoteLocks::new(RemoteConfig::new(servers), clock.clone(), entropy.clone())
            });
            let remote = remote.map_err(|error| (exit::USAGE, error.to_string()))?;
            let ending = Ending::Remote(remote.clone());
            return Ok(Self { locks: Arc::new(remote), clock, entropy, home, loaded, ending });
        }
        let directory = place::Surroundings::of_this_process()
            .data_dir(loaded.effective.embedded_path.as_deref())
            .map_err(|message| (exit::USAGE, message))?;
        let config = stores::embedded(&loaded.effective, &directory);
        let backend = wiring::embedded(config, clock.clone(), entropy.clone())
            .map_err(|error| (exit::UNREACHABLE, error.to_string()))?;
        let service =
            Service::new(backend, clock.clone(), entropy.clone(), loaded.effective.service);
        let home = Home::Embedded(directory);
        let ending = Ending::Service(service.clone());
        Ok(Self { locks: service, clock, entropy, home, loaded, ending })
    }

    /// Whether the store answers.
    ///
    /// # Errors
    /// What it says instead.
    pub(crate) async fn probe(&self) -> Result<(), LockError> {
        match &self.ending {
            Ending::Service(service) => service.probe().await,
            // Any call that reaches the server's store will do; this one changes nothing.
            Ending::Remote(remote) => {
                let nobody = dlock_domain::LockName::new("dlock/health")?;
                let namespace = self.loaded.effective.namespace.clone();
                remote.inspect(&dlock_domain::LockKey::new(namespace, nobody)).await.map(drop)
            }
        }
    }

    async fn close(self) {
        let ended = match self.ending {
            Ending::Service(service) => service.shutdown(PATIENCE).await,
            Ending::Remote(remote) => remote.shutdown(PATIENCE).await,
        };
        if !ended {
            say(format_args!("some calls did not end; what they hold ends with its lease"));
        }
    }
}

/// Whether the environment names the embedded store where only a file names a server: so it is in a
/// command that `dlock run` started on that store.
fn nearer_path(settings: &Settings) -> bool {
    let origin = |name: &str| settings.get(name).map(|setting| &setting.origin);
    matches!(origin("server"), Some(Origin::File(_)))
        && matches!(origin("embedded.path"), Some(Origin::Environment(_)))
}

/// Loads the configuration, opens the target, and does something with it.
pub(crate) fn with<F, R>(place: &Place, more: Flags<'_>, work: F) -> u8
where
    F: FnOnce(Arc<Target>) -> R,
    R: Future<Output = u8>,
{
    let own: Flags<'_> = &[
        ("server", "--server", &place.server),
        ("embedded.path", "--data-dir", &place.data_dir),
        ("lock.namespace", "--namespace", &place.namespace),
    ];
    let loaded = match loaded::load(&place.file, &[own, more].concat()) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    logs::start(&loaded, Some("warn"));
    // One thread: what a command runs is what should have the machine.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            say(format_args!("cannot start: {error}"));
            return exit::UNREACHABLE;
        }
    };
    let code = runtime.block_on(async {
        match Target::open(place, loaded) {
            Ok(target) => {
                let target = Arc::new(target);
                let code = work(Arc::clone(&target)).await;
                if let Some(target) = Arc::into_inner(target) {
                    target.close().await;
                }
                code
            }
            Err((code, message)) => {
                say(format_args!("{message}"));
                code
            }
        }
    });
    // What still runs on the runtime's own threads must not keep us.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}
