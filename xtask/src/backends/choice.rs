//! Which of what a machine has is taken for a version of etcd.

use std::fmt;

use super::facts::Facts;
use super::images;

/// Where the suites find an etcd, if somebody gives them one.
pub const ENDPOINTS: &str = "TEST_DLOCK_ETCD_ENDPOINTS";

/// A version of etcd that is tested on. `tests/servers/src/version.rs` has its twin: variables and
/// numbers must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.4, as in Debian 12.
    Old,
    /// 3.5 or newer, as in Debian 13.
    New,
}

/// What is taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    /// What the environment says.
    Told(String),
    /// The installed one.
    Installed,
    /// An image that is there.
    Image(String),
    /// A program that was unpacked below the target folder.
    Unpacked(String),
    /// There is none.
    None,
}

impl Version {
    /// All of them, in the order in which they are run.
    pub const ALL: [Self; 2] = [Self::Old, Self::New];

    /// The variable that tells the tests where it is.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_ETCD_OLD",
            Self::New => "TEST_DLOCK_ETCD_NEW",
        }
    }

    /// The variable that tells the tests of an image of it.
    #[must_use]
    pub const fn image_variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_ETCD_OLD_IMAGE",
            Self::New => "TEST_DLOCK_ETCD_NEW_IMAGE",
        }
    }

    /// What the names of tests have in them that need it.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Old => "old_etcd",
            Self::New => "new_etcd",
        }
    }

    /// The version that a number is of.
    fn of(number: &str) -> Option<Self> {
        let mut parts = number.split('.').map(str::parse::<u32>);
        match (parts.next()?.ok()?, parts.next()?.ok()?) {
            (3, 4) => Some(Self::Old),
            (3, minor) if minor > 4 => Some(Self::New),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "3.4",
            Self::New => "3.5",
        })
    }
}

/// What is taken for a version: what the environment says, what is installed, an image, what was
/// unpacked.
#[must_use]
pub fn choose(version: Version, facts: &Facts) -> Choice {
    if let Some(told) = facts.var(version.variable()) {
        return Choice::Told(told.to_owned());
    }
    if facts.installed.as_deref().and_then(Version::of) == Some(version) {
        return Choice::Installed;
    }
    let unpacked = || facts.unpacked.get(&version.to_string());
    let unpacked = || unpacked().map(|path| Choice::Unpacked(path.display().to_string()));
    image(version, facts).map(Choice::Image).or_else(unpacked).unwrap_or(Choice::None)
}

/// An image of a version, as the tests are told of it: the environment's, else ours if it is there.
#[must_use]
pub fn image(version: Version, facts: &Facts) -> Option<String> {
    let told = facts.var(version.image_variable()).map(str::to_owned);
    told.or_else(|| {
        let image = images::of(&format!("etcd {version}"))?.image;
        (facts.engine && facts.images.contains(&image)).then(|| format!("image:{image}"))
    })
}

impl Choice {
    /// What the tests are told.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        match self {
            Self::Told(value) | Self::Image(value) | Self::Unpacked(value) => Some(value.clone()),
            Self::Installed => Some("etcd".to_owned()),
            Self::None => None,
        }
    }

    /// What people are told: what it is and how it was found, or what to do.
    #[must_use]
    pub fn said(&self, version: Version, facts: &Facts) -> String {
        let variable = version.variable();
        match self {
            Self::Told(value) => format!("{value}, as {variable} says"),
            Self::Installed => {
                format!("installed, {}", facts.installed.as_deref().unwrap_or_default())
            }
            Self::Image(value) => format!("{value}, which is there"),
            Self::Unpacked(value) => format!("{value}, unpacked from its package"),
            Self::None => {
                let debian = match version {
                    Version::Old => 12,
                    Version::New => 13,
                };
                let otherwise = format!(
                    "or set {variable} to the path of an etcd {version}, or to image:NAME:TAG"
                );
                if facts.engine {
                    format!(
                        "not there; run `cargo xtask images` as root on Debian, which builds an \
                         image of it; {otherwise}"
                    )
                } else {
                    format!(
                        "not there; install Debian {debian}'s etcd-server, or docker, so that \
                         `cargo xtask images` can build an image of it; {otherwise}"
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
            installed: Some("3.5.16".into()),
            engine: true,
            images: ["dlock-test-etcd:3.4".to_owned(), "dlock-test-etcd:3.5".to_owned()].into(),
            ..Facts::default()
        }
    }

    #[test]
    fn the_environment_beats_what_is_installed_which_beats_an_image() {
        let mut facts = all();
        assert_eq!(choose(Version::New, &facts), Choice::Told("/opt/etcd".into()));
        facts.env.clear();
        assert_eq!(choose(Version::New, &facts), Choice::Installed);
        let old = Choice::Image("image:dlock-test-etcd:3.4".into());
        assert_eq!(choose(Version::Old, &facts), old);
        facts.installed = None;
        let new = Choice::Image("image:dlock-test-etcd:3.5".into());
        assert_eq!(choose(Version::New, &facts), new);
        facts.engine = false;
        assert_eq!(choose(Version::New, &facts), Choice::None);
        facts.unpacked.insert("3.5".into(), "/t/etcd-3.5".into());
        assert_eq!(choose(Version::New, &facts), Choice::Unpacked("/t/etcd-3.5".into()));
        assert_eq!(choose(Version::Old, &facts), Choice::None);
    }

    #[test]
    fn an_installed_one_is_no_other_version() {
        let facts = Facts { installed: Some("3.3.25".into()), ..Facts::default() };
        for version in Version::ALL {
            assert_eq!(choose(version, &facts), Choice::None);
        }
    }

    #[test]
    fn what_to_do_is_said_exactly() {
        for engine in [false, true] {
            let facts = Facts { engine, ..Facts::default() };
            let said = Choice::None.said(Version::New, &facts);
            for word in ["TEST_DLOCK_ETCD_NEW", "cargo xtask images", "image:NAME:TAG"] {
                assert!(said.contains(word), "{said}");
            }
        }
    }
}
