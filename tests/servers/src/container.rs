//! A server in a container.

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    fs::File,
    future::Future,
    net::SocketAddrV4,
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use testcontainers::{
    ContainerAsync, GenericImage, ImageExt as _, TestcontainersError, core::IntoContainerPort as _,
    runners::AsyncRunner as _,
};
use tokio::runtime::Runtime;

use crate::{
    wait,
    watchdog::{Kind, Watchdog},
};

/// A server. Once made it stays there, stopped between its lives, with its data in it.
#[derive(Debug)]
pub(crate) struct Contained {
    pub(crate) image: String,
    pub(crate) tag: String,
    /// Its name, which is its host name among its peers.
    pub(crate) name: String,
    /// The network it meets its peers in, if it has any.
    pub(crate) network: Option<String>,
    /// The program in it.
    pub(crate) entrypoint: &'static str,
    pub(crate) args: Vec<String>,
    /// Further variables.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Whom it runs as, if not as root.
    pub(crate) user: Option<&'static str>,
    /// The folder in it that has the data.
    pub(crate) data: &'static str,
    /// The folder in it that data are put into to be taken at the next start; else they are put over
    /// those that are there.
    pub(crate) put_back: Option<&'static str>,
    /// The folder in it that is a volume of its own, which goes with it: an engine's layers can be
    /// slow to sync.
    pub(crate) volume: Option<&'static str>,
    /// The port that it listens on inside.
    pub(crate) port: u16,
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
        let image = GenericImage::new(&self.image, &self.tag).with_entrypoint(self.entrypoint);
        let (port, address) = (self.published.port(), self.published.ip().to_string());
        let volume = self.volume.map(str::to_owned);
        let mut request = image
            .with_cmd(self.args.clone())
            .with_container_name(&self.name)
            .with_startup_timeout(Duration::from_secs(60))
            .with_mapped_port(port, self.port.tcp())
            .with_host_config_modifier(move |host| {
                // Published to this machine alone.
                let bindings = host.port_bindings.iter_mut().flat_map(|ports| ports.values_mut());
                for binding in bindings.flatten().flatten() {
                    binding.host_ip = Some(address.clone());
                }
                host.binds.get_or_insert_default().extend(volume.clone());
            });
        if let Some(network) = &self.network {
            request = request.with_network(network);
        }
        if let Some(user) = self.user {
            request = request.with_user(user);
        }
        for (name, value) in &self.env {
            request = request.with_env_var(*name, value);
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

    /// `SIGINT`, until it has ended.
    pub(crate) fn interrupt(&self) {
        let mut docker = Command::new("docker");
        succeeds(docker.args(["kill", "--signal=INT", &self.name]).stdout(Stdio::null()));
        assert!(wait::until(|| self.has_ended()), "it does not end:\n{}", self.log());
    }

    /// Copies its data, while it is stopped: as an archive, which keeps whose they are.
    pub(crate) fn copy_data_to(&self, to: &Path) {
        let archive = File::create(to).expect("there is room for a copy");
        let mut docker = Command::new("docker");
        docker.args(["cp", &format!("{}:{}", self.name, self.data), "-"]).stdout(archive);
        succeeds(&mut docker);
    }

    /// Puts data back, while it is stopped. Where they go over its own, what was made since stays
    /// beside them; a server that has not begun another file since is then as it was.
    pub(crate) fn copy_data_from(&self, from: &Path) {
        let archive = File::open(from).expect("the copy is there");
        let beside = Path::new(self.data).parent().unwrap_or(Path::new("/"));
        let to = self.put_back.map_or(beside, Path::new);
        let mut docker = Command::new("docker");
        docker.args(["cp", "-", &format!("{}:{}", self.name, to.display())]);
        succeeds(docker.stdin(archive));
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

/// Has the engine's own program do something.
fn succeeds(command: &mut Command) {
    let child = command.stderr(Stdio::piped()).spawn();
    let done = child.and_then(Child::wait_with_output).expect("docker can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
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
