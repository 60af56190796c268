//! A member in a container.

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    ffi::OsStr, future::Future, net::SocketAddrV4, path::Path, process::Command, sync::OnceLock,
    time::Duration,
};

use testcontainers::{
    ContainerAsync, GenericImage, ImageExt as _, TestcontainersError, core::IntoContainerPort as _,
    runners::AsyncRunner as _,
};
use tokio::runtime::Runtime;

use crate::watchdog::{Kind, Watchdog};

/// The port that members listen on inside.
pub(crate) const CLIENT_PORT: u16 = 2379;

/// A member. Once made it stays there, stopped between its lives, with its data in it.
#[derive(Debug)]
pub(crate) struct Contained {
    pub(crate) image: String,
    pub(crate) tag: String,
    /// Its name, which is its host name among its peers.
    pub(crate) name: String,
    /// The network it meets its peers in, if it has any.
    pub(crate) network: Option<String>,
    pub(crate) args: Vec<String>,
    /// Where its port is found from outside, in all its lives.
    pub(crate) published: SocketAddrV4,
    pub(crate) container: Option<ContainerAsync<GenericImage>>,
}

impl Contained {
    /// Starts it, or starts it again; it need not be ready yet. An image that is not there is pulled.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn start(&mut self, watchdog: &Watchdog) -> Result<(), TestcontainersError> {
        if let Some(container) = &self.container {
            return block_on(container.start());
        }
        watchdog.watch(Kind::Container, &self.name).expect("the watchdog is there");
        let image = GenericImage::new(&self.image, &self.tag).with_entrypoint("etcd");
        let (port, address) = (self.published.port(), self.published.ip().to_string());
        let mut request = image
            .with_cmd(self.args.clone())
            .with_container_name(&self.name)
            .with_startup_timeout(Duration::from_secs(60))
            .with_mapped_port(port, CLIENT_PORT.tcp())
            .with_host_config_modifier(move |host| {
                // Published to this machine alone.
                let bindings = host.port_bindings.iter_mut().flat_map(|ports| ports.values_mut());
                for binding in bindings.flatten().flatten() {
                    binding.host_ip = Some(address.clone());
                }
            });
        if let Some(network) = &self.network {
            request = request.with_network(network);
        }
        self.container = Some(block_on(request.start())?);
        Ok(())
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        let runs = |container| block_on(ContainerAsync::is_running(container));
        !self.container.as_ref().is_some_and(|container| runs(container).unwrap_or(false))
    }

    /// Freezes all of it.
    pub(crate) fn pause(&self) {
        block_on(self.made().pause()).expect("the engine pauses it");
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        block_on(self.made().unpause()).expect("the engine lets it go on");
    }

    /// Ends it at once. A frozen one must be let go on first.
    pub(crate) fn kill(&self) {
        block_on(self.made().stop_with_timeout(Some(0))).expect("the engine stops it");
    }

    /// Takes it away with its data.
    pub(crate) fn remove(&mut self, watchdog: &Watchdog) {
        let removed = self.container.take().map(|container| block_on(container.rm()));
        if matches!(removed, Some(Ok(()))) {
            // Fails only where the watchdog was killed; then there is nobody to spare the work.
            let _ = watchdog.forget(&self.name);
        }
    }

    /// Copies its data, while it is stopped.
    pub(crate) fn copy_data_to(&self, to: &Path) {
        copy(format!("{}:/etcd-data", self.name).as_ref(), to.as_os_str());
    }

    /// Puts data over its own, while it is stopped. What was made since stays beside them; a member
    /// that has not begun another file since is then as it was.
    pub(crate) fn copy_data_from(&self, from: &Path) {
        let from = from.join(".");
        copy(from.as_os_str(), format!("{}:/etcd-data", self.name).as_ref());
    }

    /// What it said, in all its lives.
    pub(crate) fn log(&self) -> String {
        let Some(container) = &self.container else { return String::new() };
        let said =
            block_on(async { [container.stdout_to_vec().await, container.stderr_to_vec().await] });
        said.into_iter().flatten().map(|said| String::from_utf8_lossy(&said).into_owned()).collect()
    }

    fn made(&self) -> &ContainerAsync<GenericImage> {
        self.container.as_ref().expect("it was started")
    }
}

/// Copies into or out of a container.
fn copy(from: &OsStr, to: &OsStr) {
    let copied = Command::new("docker").arg("cp").arg(from).arg(to).output();
    let copied = copied.expect("docker can be started");
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
}

/// Runs a call to the engine to its end on a thread of its own, since the caller's may be one of a
/// runtime.
fn block_on<T: Send>(call: impl Future<Output = T> + Send) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("a runtime can be had")
    });
    std::thread::scope(|scope| {
        scope.spawn(|| runtime.block_on(call)).join().expect("calls to the engine do not panic")
    })
}
