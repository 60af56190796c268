//! A cluster of a test's own.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::{fmt::Write as _, net::SocketAddrV4, path::Path};

use tempfile::TempDir;

use crate::{
    certificates::{self, Certificate, Identity},
    container::Contained,
    gateway::{Gateway, Status},
    place::{Place, State, end_of, is_taken},
    ports::Ports,
    process::Process,
    source::Source,
    version::Version,
    wait,
    watchdog::{Kind, Watchdog},
};

/// How often a cluster is begun anew because somebody took one of its ports in between.
const STARTS: u32 = 5;

/// The port that members in containers serve clients on.
const CLIENT_PORT: u16 = 2379;

/// The port that members in containers meet each other on.
const PEER_PORT: u16 = 2380;

/// Where members in containers have their data.
const DATA: &str = "/etcd-data";

/// A running cluster of etcd. Members are counted from 0.
///
/// Every call panics when a member is not in the state that the call is for, or when what it waits
/// for has not come after half a minute.
#[derive(Debug)]
pub struct EtcdCluster {
    version: Version,
    members: Vec<Member>,
    network: Option<String>,
    folder: TempDir,
    certificate: Option<Certificate>,
    // These two last: what is above is gone before the watchdog looks, and before ports are free.
    watchdog: Watchdog,
    ports: Ports,
}

/// A member's data as they were; gone when it is dropped.
#[derive(Debug)]
pub struct Backup(TempDir);

/// A member, wherever it runs.
#[derive(Debug)]
struct Member {
    place: Place,
    state: State,
    gateway: Gateway,
}

impl EtcdCluster {
    /// Starts a cluster of 1 or 3 members, and returns when each of them serves.
    ///
    /// # Panics
    /// When there is no etcd of that version, with words on how to come by one, or when the cluster
    /// does not get ready; the members' logs are shown.
    #[must_use]
    pub fn start(version: Version, members: usize) -> Self {
        Self::start_with(version, members, &[])
    }

    /// The same with further flags, which every member gets, such as `--election-timeout=500`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(version: Version, members: usize, flags: &[&str]) -> Self {
        let source = version.find().unwrap_or_else(|missing| panic!("{missing}"));
        Self::launch(version, &source, members, flags, false)
    }

    /// One member, as a program of this machine, that clients also reach through TLS: at
    /// [`secure_endpoint`](Self::secure_endpoint), where it lets in whoever shows an
    /// [`identity`](Self::identity). Its certificate is good for its address, and signed by
    /// [`authority`](Self::authority).
    ///
    /// # Panics
    /// As [`start`](Self::start); also when there is no `openssl` program, or when that version is
    /// there as an image alone.
    #[must_use]
    pub fn start_with_tls(version: Version) -> Self {
        let source = version.find().unwrap_or_else(|missing| panic!("{missing}"));
        assert!(
            matches!(source, Source::Binary(_)),
            "etcd {version} with TLS is run as a program: install Debian's package etcd-server, or \
             name one for `cargo xtask test`",
        );
        Self::launch(version, &source, 1, &[], true)
    }

    /// The same, in containers whatever is installed.
    ///
    /// # Panics
    /// As [`start`](Self::start); also when there is no container engine.
    #[must_use]
    pub fn start_in_containers(version: Version, members: usize, flags: &[&str]) -> Self {
        let image = version.find_image().unwrap_or_else(|missing| panic!("{missing}"));
        Self::launch(version, &image, members, flags, false)
    }

    fn launch(
        version: Version,
        source: &Source,
        members: usize,
        flags: &[&str],
        tls: bool,
    ) -> Self {
        for _ in 0..STARTS {
            match Self::attempt(version, source, members, flags, tls) {
                Ok(cluster) => return cluster,
                Err(said) if is_taken(&said) => {}
                Err(said) => panic!("etcd {version} from {source:?} does not start:\n{said}"),
            }
        }
        panic!("no {members} members of etcd find free ports");
    }

    /// One start, until every member serves; else what they said.
    fn attempt(
        version: Version,
        source: &Source,
        members: usize,
        flags: &[&str],
        tls: bool,
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("dlock-etcd-").tempdir();
        let folder = folder.expect("there is room for data");
        let ports = Ports::take(3 * members).expect("there are free ports");
        // Nobody else on this machine has that address and port, so nobody has that name.
        let first = ports.at(0);
        let name = format!("dlock-etcd-{first}").replace(['.', ':'], "-");
        let watchdog = Watchdog::start(folder.path()).expect("a shell can be started");
        let certificate = tls.then(|| {
            certificates::certify(folder.path(), *first.ip())
                .unwrap_or_else(|error| panic!("openssl makes no certificate: {error}"))
        });
        let mut cluster = Self {
            version,
            members: Vec::new(),
            network: None,
            folder,
            certificate,
            watchdog,
            ports,
        };
        match source {
            Source::Binary(binary) => cluster.lay_out_processes(binary, members, flags),
            Source::Image { name: image, tag } => {
                cluster.lay_out_containers((image, tag), &name, members, flags);
            }
        }
        for index in 0..members {
            cluster.begin(index)?;
        }
        cluster.wait_until_all_serve()?;
        Ok(cluster)
    }

    fn lay_out_processes(&mut self, binary: &Path, members: usize, flags: &[&str]) {
        let ports = &self.ports;
        let peer = |index: usize| format!("http://{}", ports.at(2 * index + 1));
        let peers: Vec<_> = (0..members).map(peer).collect();
        for index in 0..members {
            let client = ports.at(2 * index);
            let (url, folder) = (format!("http://{client}"), self.folder.path());
            let mut args = shared_args(index, &peers, &url, flags);
            args.push(match &self.certificate {
                Some(_) => format!("--listen-client-urls={url},{}", self.secure_endpoint()),
                None => format!("--listen-client-urls={url}"),
            });
            args.extend(self.certificate.iter().flat_map(tls_args));
            args.push(format!("--listen-peer-urls={}", peers[index]));
            let data = folder.join(format!("m{index}"));
            args.push(format!("--data-dir={}", data.display()));
            let process = Process {
                binary: binary.to_owned(),
                args,
                env: Vec::new(),
                withheld: "ETCD",
                data,
                put_back: None,
                log: folder.join(format!("m{index}.log")),
                life: None,
            };
            self.members.push(Member::at(client, Place::Process(process)));
        }
    }

    fn lay_out_containers(
        &mut self,
        (image, tag): (&str, &str),
        name: &str,
        members: usize,
        flags: &[&str],
    ) {
        // Alone it needs no network of its own, of which an engine has not many.
        self.network = (members > 1).then(|| name.to_owned());
        if let Some(network) = &self.network {
            self.watchdog.watch(Kind::Network, network).expect("the watchdog is there");
        }
        let names: Vec<_> = (0..members).map(|index| format!("{name}-m{index}")).collect();
        let host = |name: &String| if members > 1 { name.clone() } else { "127.0.0.1".to_owned() };
        let peers: Vec<_> =
            names.iter().map(|name| format!("http://{}:{PEER_PORT}", host(name))).collect();
        for (index, name) in names.into_iter().enumerate() {
            let published = self.ports.at(2 * index);
            let mut args = shared_args(index, &peers, &format!("http://{published}"), flags);
            args.push(format!("--listen-client-urls=http://0.0.0.0:{CLIENT_PORT}"));
            args.push(format!("--listen-peer-urls=http://0.0.0.0:{PEER_PORT}"));
            args.push(format!("--data-dir={DATA}"));
            let contained = Contained {
                image: image.to_owned(),
                tag: tag.to_owned(),
                name,
                network: self.network.clone(),
                entrypoint: "etcd",
                args,
                env: Vec::new(),
                user: None,
                data: DATA,
                put_back: None,
                volume: None,
                port: CLIENT_PORT,
                published,
                container: None,
            };
            self.members.push(Member::at(published, Place::Container(Box::new(contained))));
        }
    }

    /// The version it was started as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The addresses of all members, in their order, such as `http://127.64.3.9:40123`. They stay
    /// the same in all lives of a member.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.gateway.endpoint().to_owned()).collect()
    }

    /// The address of one member.
    #[must_use]
    pub fn endpoint(&self, member: usize) -> String {
        self.members[member].gateway.endpoint().to_owned()
    }

    /// Where clients reach the member through TLS.
    #[must_use]
    pub fn secure_endpoint(&self) -> String {
        format!("https://{}", self.ports.at(2))
    }

    /// The file with the certificate of the authority that signed the member's.
    ///
    /// # Panics
    /// Where it was not started with TLS.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.certificate.as_ref().expect("it was started with TLS").authority
    }

    /// What a client of this name shows to be let in.
    ///
    /// # Panics
    /// Where it was not started with TLS.
    #[must_use]
    pub fn identity(&self, name: &str) -> Identity {
        assert!(self.certificate.is_some(), "it was started without TLS");
        certificates::identify(self.folder.path(), name)
            .unwrap_or_else(|error| panic!("openssl makes no certificate: {error}"))
    }

    /// Stops a member where it stands (`SIGSTOP`): its connections stay, and nothing comes of them.
    pub fn pause(&mut self, member: usize) {
        let member = self.member(member, &[State::Running]);
        member.place.pause();
        member.state = State::Paused;
    }

    /// Lets a paused member go on (`SIGCONT`). It has not necessarily caught up on return.
    pub fn resume(&mut self, member: usize) {
        let member = self.member(member, &[State::Paused]);
        member.place.resume();
        member.state = State::Running;
    }

    /// Ends a member in the middle of whatever it is at (`SIGKILL`); its data stays. A container
    /// that is paused goes on for a moment before that.
    pub fn kill(&mut self, member: usize) {
        self.member(member, &[State::Running, State::Paused]);
        let (member, watchdog) = (&mut self.members[member], &self.watchdog);
        member.place.kill(member.state, watchdog);
        member.state = State::Killed;
    }

    /// Starts a killed member again on the same data and ports, and waits until it serves. It can
    /// only serve while a majority runs: after killing that, [`restart_all`](Self::restart_all).
    pub fn restart(&mut self, member: usize) {
        self.restart_these(&[member]);
    }

    /// Starts every killed member again, at once, and waits until all of them serve.
    pub fn restart_all(&mut self) {
        let killed = |index: &usize| self.members[*index].state == State::Killed;
        let killed: Vec<_> = (0..self.members.len()).filter(killed).collect();
        self.restart_these(&killed);
    }

    fn restart_these(&mut self, members: &[usize]) {
        for index in members {
            self.member(*index, &[State::Killed]);
            let begun = self.begin(*index);
            begun.unwrap_or_else(|said| panic!("member {index} does not start again: {said}"));
        }
        let ready = self.wait_until_all_serve();
        ready.unwrap_or_else(|said| panic!("members do not serve again:\n{said}"));
    }

    /// The leader that a majority has, waiting until there is one. A paused or killed member is not
    /// asked, and is not the answer.
    #[must_use]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        wait::until(|| {
            // A leader that was paused may still take itself for one: the highest term is right.
            let told = self.statuses().into_iter().max_by_key(|(_, status)| status.term);
            let wanted = told.map(|(_, status)| status.leader).filter(|leader| *leader != 0);
            let statuses = self.statuses();
            let led = statuses.iter().filter(|(_, status)| Some(status.leader) == wanted).count();
            let itself = statuses.iter().find(|(_, status)| Some(status.member) == wanted);
            leader = itself.map(|(index, _)| *index).filter(|_| 2 * led > self.members.len());
            leader.is_some()
        });
        leader.unwrap_or_else(|| panic!("nobody leads:\n{}", self.said()))
    }

    /// Copies a killed member's data aside, as a backup has it.
    #[must_use]
    pub fn back_up(&mut self, member: usize) -> Backup {
        let folder = tempfile::tempdir().expect("there is room for a backup");
        let to = folder.path().join("data");
        self.member(member, &[State::Killed]).place.copy_data_to(&to);
        Backup(folder)
    }

    /// Puts a killed member's data back as they were: its history goes back to then. Of a cluster of
    /// one: other members would bring it up to date.
    pub fn put_back(&mut self, member: usize, backup: &Backup) {
        let from = backup.0.path().join("data");
        self.member(member, &[State::Killed]).place.copy_data_from(&from);
    }

    /// Forgets every version of every key but the newest, and returns the revision it was done at.
    pub fn compact(&self) -> u64 {
        let leader = &self.members[self.leader()].gateway;
        let revision = leader.status().expect("the leader answers").revision;
        assert!(leader.compact(revision), "revision {revision} is not compacted");
        revision
    }

    /// What a member said in all its lives.
    #[must_use]
    pub fn log(&self, member: usize) -> String {
        self.members[member].place.log()
    }

    fn member(&mut self, index: usize, states: &[State]) -> &mut Member {
        let member = &mut self.members[index];
        assert!(states.contains(&member.state), "member {index} is {:?}", member.state);
        member
    }

    /// The running members that answer, and what they say.
    fn statuses(&self) -> Vec<(usize, Status)> {
        let running = |(_, member): &(usize, &Member)| member.state == State::Running;
        let members = self.members.iter().enumerate().filter(running);
        members.filter_map(|(index, member)| Some((index, member.gateway.status()?))).collect()
    }

    fn begin(&mut self, index: usize) -> Result<(), String> {
        let (member, watchdog) = (&mut self.members[index], &self.watchdog);
        member.place.start(watchdog)?;
        member.state = State::Running;
        Ok(())
    }

    /// Waits until every running member serves.
    fn wait_until_all_serve(&mut self) -> Result<(), String> {
        let mut ended = false;
        let ready = wait::until(|| {
            let mut running =
                self.members.iter_mut().filter(|member| member.state == State::Running);
            ended = running.any(|member| member.place.has_ended());
            let mut running = self.members.iter().filter(|member| member.state == State::Running);
            ended || running.all(|member| member.gateway.is_healthy())
        });
        if ready && !ended { Ok(()) } else { Err(self.said()) }
    }

    /// The ends of all logs.
    fn said(&self) -> String {
        let mut said = String::new();
        for index in 0..self.members.len() {
            let shown = end_of(&self.log(index));
            let _ = writeln!(said, "member {index}, {:?}:\n{shown}", self.members[index].state);
        }
        said
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.place.remove(&self.watchdog);
        }
        let all_removed = self.members.iter().all(|member| member.place.is_removed());
        if let Some(network) = self.network.as_ref().filter(|_| all_removed) {
            // It went with the last container in it.
            let _ = self.watchdog.forget(network);
        }
    }
}

impl Member {
    fn at(client: SocketAddrV4, place: Place) -> Self {
        Self { place, state: State::Killed, gateway: Gateway::at(client) }
    }
}

/// The flags of a member that serves through TLS, to clients whom the authority knows.
fn tls_args(certificate: &Certificate) -> [String; 4] {
    let Certificate { authority, server } = certificate;
    [
        format!("--cert-file={}", server.certificate.display()),
        format!("--key-file={}", server.key.display()),
        format!("--trusted-ca-file={}", authority.display()),
        "--client-cert-auth".to_owned(),
    ]
}

/// The flags that are the same wherever a member runs.
fn shared_args(index: usize, peers: &[String], client: &str, flags: &[&str]) -> Vec<String> {
    let named = |(index, peer): (usize, &String)| format!("m{index}={peer}");
    let cluster = peers.iter().enumerate().map(named).collect::<Vec<_>>().join(",");
    let mut args = vec![
        format!("--name=m{index}"),
        format!("--advertise-client-urls={client}"),
        format!("--initial-advertise-peer-urls={}", peers[index]),
        format!("--initial-cluster={cluster}"),
        "--logger=zap".to_owned(),
    ];
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    args
}
