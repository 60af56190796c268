//! Which of what a machine has is taken for a version of etcd.

use std::fmt;

use super::facts::Facts;
use super::images;

/// A server that tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// etcd.
    Etcd,
    /// PostgreSQL, with PgBouncer before it.
    Postgres,
}

/// A version of a server that is tested on. `tests/servers` has its twins: variables and numbers must
/// agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// etcd 3.4, as in Debian 12.
    Etcd34,
    /// etcd 3.5 or newer, as in Debian 13.
    Etcd35,
    /// PostgreSQL 15, as in Debian 12.
    Postgres15,
    /// PostgreSQL 17 or newer, as in Debian 13.
    Postgres17,
}

/// What is taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    /// What the environment says.
    Told(String),
    /// The installed one: what the tests are told.
    Installed(String),
    /// An image that is there.
    Image(String),
    /// A program that was unpacked below the target folder.
    Unpacked(String),
    /// There is none.
    None,
}

impl Server {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Etcd, Self::Postgres];

    /// The variables by which the suites find one: straight, and for PostgreSQL through a pooler.
    #[must_use]
    pub const fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Etcd => &["TEST_DLOCK_ETCD_ENDPOINTS"],
            Self::Postgres => &["TEST_DLOCK_POSTGRES_URL", "TEST_DLOCK_PGBOUNCER_URL"],
        }
    }

    /// The program that runs one for all suites.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Etcd => "test-etcd",
            Self::Postgres => "test-postgres",
        }
    }

    /// The packages of Debian that it is in.
    #[must_use]
    pub const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Etcd => &["etcd-server"],
            Self::Postgres => &["postgresql", "pgbouncer"],
        }
    }

    /// The services that Debian starts when it installs them.
    #[must_use]
    pub const fn services(self) -> &'static [&'static str] {
        match self {
            Self::Etcd => &["etcd"],
            Self::Postgres => &["postgresql", "pgbouncer"],
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Etcd => "etcd",
            Self::Postgres => "PostgreSQL",
        })
    }
}

impl Version {
    /// All of them, in the order in which they are run.
    pub const ALL: [Self; 4] = [Self::Etcd34, Self::Etcd35, Self::Postgres15, Self::Postgres17];

    /// Whose version it is.
    #[must_use]
    pub const fn server(self) -> Server {
        match self {
            Self::Etcd34 | Self::Etcd35 => Server::Etcd,
            Self::Postgres15 | Self::Postgres17 => Server::Postgres,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Etcd34 => "3.4",
            Self::Etcd35 => "3.5",
            Self::Postgres15 => "15",
            Self::Postgres17 => "17",
        }
    }

    /// The variable that tells the tests where it is.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Etcd34 => "TEST_DLOCK_ETCD_OLD",
            Self::Etcd35 => "TEST_DLOCK_ETCD_NEW",
            Self::Postgres15 => "TEST_DLOCK_POSTGRES_OLD",
            Self::Postgres17 => "TEST_DLOCK_POSTGRES_NEW",
        }
    }

    /// The variable that tells the tests of an image of it.
    #[must_use]
    pub const fn image_variable(self) -> &'static str {
        match self {
            Self::Etcd34 => "TEST_DLOCK_ETCD_OLD_IMAGE",
            Self::Etcd35 => "TEST_DLOCK_ETCD_NEW_IMAGE",
            Self::Postgres15 => "TEST_DLOCK_POSTGRES_OLD_IMAGE",
            Self::Postgres17 => "TEST_DLOCK_POSTGRES_NEW_IMAGE",
        }
    }

    /// What the names of tests have in them that need it.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Etcd34 => "old_etcd",
            Self::Etcd35 => "new_etcd",
            Self::Postgres15 => "old_postgres",
            Self::Postgres17 => "new_postgres",
        }
    }

    /// The version that a server's number is of.
    #[must_use]
    pub fn of(server: Server, number: &str) -> Option<Self> {
        let mut parts = number.split('.').map(str::parse::<u32>);
        let (major, minor) = (parts.next()?.ok()?, parts.next());
        match (server, major, minor) {
            (Server::Etcd, 3, Some(Ok(4))) => Some(Self::Etcd34),
            (Server::Etcd, 3, Some(Ok(minor))) if minor > 4 => Some(Self::Etcd35),
            (Server::Postgres, 15, _) => Some(Self::Postgres15),
            (Server::Postgres, major, _) if major >= 17 => Some(Self::Postgres17),
            _ => None,
        }
    }

    /// The Debian that has it.
    const fn debian(self) -> u32 {
        match self {
            Self::Etcd34 | Self::Postgres15 => 12,
            Self::Etcd35 | Self::Postgres17 => 13,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.server(), self.number())
    }
}

/// What is taken for a version: what the environment says, what is installed, an image, what was
/// unpacked.
#[must_use]
pub fn choose(version: Version, facts: &Facts) -> Choice {
    if let Some(told) = facts.var(version.variable()) {
        return Choice::Told(told.to_owned());
    }
    if let Some(installed) = facts.installed.get(&version) {
        return Choice::Installed(installed.clone());
    }
    let unpacked = || facts.unpacked.get(&version);
    let unpacked = || unpacked().map(|path| Choice::Unpacked(path.display().to_string()));
    image(version, facts).map(Choice::Image).or_else(unpacked).unwrap_or(Choice::None)
}

/// An image of a version, as the tests are told of it: the environment's, else ours if it is there.
#[must_use]
pub fn image(version: Version, facts: &Facts) -> Option<String> {
    let told = facts.var(version.image_variable()).map(str::to_owned);
    told.or_else(|| {
        let image = images::of(&version.to_string())?.image;
        (facts.engine && facts.images.contains(&image)).then(|| format!("image:{image}"))
    })
}

impl Choice {
    /// What the tests are told.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        match self {
            Self::Told(value)
            | Self::Installed(value)
            | Self::Image(value)
            | Self::Unpacked(value) => Some(value.clone()),
            Self::None => None,
        }
    }

    /// What people are told: what it is and how it was found, or what to do.
    #[must_use]
    pub fn said(&self, version: Version, facts: &Facts) -> String {
        let variable = version.variable();
        match self {
            Self::Told(value) => format!("{value}, as {variable} says"),
            Self::Installed(value) => format!("{value}, installed"),
            Self::Image(value) => format!("{value}, which is there"),
            Self::Unpacked(value) => format!("{value}, unpacked from its package"),
            Self::None => {
                let what = match version.server() {
                    Server::Etcd => "the path of",
                    Server::Postgres => "the folder of the programs of",
                };
                let otherwise =
                    format!("or set {variable} to {what} {version}, or to image:NAME:TAG");
                if facts.engine {
                    format!(
                        "not there; run `cargo xtask images` as root on Debian, which builds an \
                         image of it; {otherwise}"
                    )
                } else {
                    format!(
                        "not there; install Debian {}'s {}, or docker, so that `cargo xtask images` \
                         can build an image of it; {otherwise}",
                        version.debian(),
                        version.server().packages().join(" and "),
                    )
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Facts {
        Facts {
            env: [("TEST_DLOCK_ETCD_NEW".to_owned(), "/opt/etcd".to_owned())].into(),
            installed: [(Version::Etcd35, "etcd".to_owned())].into(),
            engine: true,
            images: ["dlock-test-etcd:3.4".to_owned(), "dlock-test-etcd:3.5".to_owned()].into(),
            ..Facts::default()
        }
    }

    #[test]
    fn the_environment_beats_what_is_installed_which_beats_an_image() {
        let mut facts = all();
        assert_eq!(choose(Version::Etcd35, &facts), Choice::Told("/opt/etcd".into()));
        facts.env.clear();
        assert_eq!(choose(Version::Etcd35, &facts), Choice::Installed("etcd".into()));
        let old = Choice::Image("image:dlock-test-etcd:3.4".into());
        assert_eq!(choose(Version::Etcd34, &facts), old);
        facts.installed.clear();
        let new = Choice::Image("image:dlock-test-etcd:3.5".into());
        assert_eq!(choose(Version::Etcd35, &facts), new);
        facts.engine = false;
        assert_eq!(choose(Version::Etcd35, &facts), Choice::None);
        facts.unpacked.insert(Version::Etcd35, "/t/etcd-3.5".into());
        assert_eq!(choose(Version::Etcd35, &facts), Choice::Unpacked("/t/etcd-3.5".into()));
        assert_eq!(choose(Version::Etcd34, &facts), Choice::None);
    }

    #[test]
    fn a_number_is_of_one_version_or_of_none() {
        let of = |server, number| Version::of(server, number);
        assert_eq!(of(Server::Etcd, "3.4.23"), Some(Version::Etcd34));
        assert_eq!(of(Server::Etcd, "3.6.0"), Some(Version::Etcd35));
        assert_eq!(of(Server::Postgres, "15"), Some(Version::Postgres15));
        assert_eq!(of(Server::Postgres, "18"), Some(Version::Postgres17));
        for (server, number) in [
            (Server::Etcd, "3.3.25"),
            (Server::Etcd, "3"),
            (Server::Postgres, "16"),
            (Server::Postgres, "x"),
        ] {
            assert_eq!(of(server, number), None, "{number}");
        }
    }

    #[test]
    fn what_to_do_is_said_exactly() {
        for engine in [false, true] {
            let facts = Facts { engine, ..Facts::default() };
            let said = Choice::None.said(Version::Etcd35, &facts);
            for word in ["TEST_DLOCK_ETCD_NEW", "cargo xtask images", "image:NAME:TAG"] {
                assert!(said.contains(word), "{said}");
            }
        }
    }
}
