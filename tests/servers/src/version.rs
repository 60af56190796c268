//! Which etcd, and where one is found.

use std::{fmt, process::Command};

use crate::source::{Source, image_told};

/// A version of etcd that dlock is tested on. `xtask/src/backends/choice.rs`, which depends on no member
/// of the workspace, has its twin: variables and numbers must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 3.4, as in Debian 12.
    Old,
    /// 3.5 or newer, as in Debian 13.
    New,
}

impl Version {
    /// The variable that says where this version is: the path of a program, or `image:NAME:TAG`.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_ETCD_OLD",
            Self::New => "TEST_DLOCK_ETCD_NEW",
        }
    }

    /// The variable that names an image of this version, `image:NAME:TAG`, whatever else there is.
    #[must_use]
    pub const fn image_variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_ETCD_OLD_IMAGE",
            Self::New => "TEST_DLOCK_ETCD_NEW_IMAGE",
        }
    }

    /// The version that a number is of: 3.4 is old, whatever came later is new.
    fn of(number: &str) -> Option<Self> {
        let mut parts = number.split('.').map(str::parse::<u32>);
        match (parts.next()?.ok()?, parts.next()?.ok()?) {
            (3, 4) => Some(Self::Old),
            (3, minor) if minor > 4 => Some(Self::New),
            _ => None,
        }
    }

    /// Where this version is: where the environment says, else the installed one, if it is that.
    ///
    /// # Errors
    /// What to do, in words.
    pub(crate) fn find(self) -> Result<Source, String> {
        self.find_among(&|name| std::env::var(name).ok(), &installed)
    }

    /// An image of this version.
    ///
    /// # Errors
    /// What to do, in words.
    pub(crate) fn find_image(self) -> Result<Source, String> {
        self.find_image_among(&|name| std::env::var(name).ok())
    }

    fn find_among(
        self,
        env: &dyn Fn(&str) -> Option<String>,
        installed: &dyn Fn() -> Option<String>,
    ) -> Result<Source, String> {
        match env(self.variable()) {
            Some(told) => Source::told(&told),
            None if installed().as_deref().and_then(Self::of) == Some(self) => {
                Ok(Source::Binary("etcd".into()))
            }
            None => Err(format!(
                "no etcd {self} to test on: run `cargo xtask test`, which finds or makes one and \
                 says what it lacks for that; or install Debian {}'s package etcd-server; or set \
                 {} to the path of an etcd {self}, or to image:NAME:TAG, an image with etcd on its \
                 path",
                match self {
                    Self::Old => 12,
                    Self::New => 13,
                },
                self.variable(),
            )),
        }
    }

    fn find_image_among(self, env: &dyn Fn(&str) -> Option<String>) -> Result<Source, String> {
        image_told(env, self.image_variable(), self.variable()).unwrap_or_else(|| {
            Err(format!(
                "no image of etcd {self}: run `cargo xtask test`, which builds one where docker is \
                 there; or build it with `cargo xtask images` and set {} to what that prints",
                self.image_variable()
            ))
        })
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

/// The number of the installed etcd.
fn installed() -> Option<String> {
    let output = Command::new("etcd").arg("--version").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    said.lines().find_map(|line| line.strip_prefix("etcd Version: ").map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(version: Version, env: &[(&str, &str)], installed: &str) -> Result<Source, String> {
        let env = |name: &str| {
            let pair = env.iter().find(|(other, _)| *other == name);
            pair.map(|(_, value)| (*value).to_owned())
        };
        version.find_among(&env, &|| Some(installed.to_owned()))
    }

    #[test]
    fn an_installed_etcd_stands_for_the_version_it_says_it_is() {
        let installed = Source::Binary("etcd".into());
        assert_eq!(found(Version::Old, &[], "3.4.23"), Ok(installed.clone()));
        assert_eq!(found(Version::New, &[], "3.5.16"), Ok(installed.clone()));
        assert_eq!(found(Version::New, &[], "3.6.1"), Ok(installed));
        for (version, number) in
            [(Version::New, "3.4.23"), (Version::Old, "3.5.16"), (Version::Old, "3.3.25")]
        {
            let said = found(version, &[], number).unwrap_err();
            assert!(
                said.contains("cargo xtask test") && said.contains(version.variable()),
                "{said}"
            );
        }
    }

    #[test]
    fn what_the_environment_says_comes_first() {
        let told = [("TEST_DLOCK_ETCD_NEW", "image:localhost:5000/etcd:3.5")];
        let image = Source::Image { name: "localhost:5000/etcd".into(), tag: "3.5".into() };
        assert_eq!(found(Version::New, &told, "3.5.16"), Ok(image));
        let told = [("TEST_DLOCK_ETCD_OLD", "/opt/etcd")];
        assert_eq!(found(Version::Old, &told, "3.4.23"), Ok(Source::Binary("/opt/etcd".into())));
        assert!(found(Version::Old, &[("TEST_DLOCK_ETCD_OLD", "image:etcd")], "3.4.23").is_err());
    }

    #[test]
    fn an_image_is_an_image_whichever_variable_names_it() {
        let find = |pair: (&'static str, &'static str)| {
            Version::New.find_image_among(&move |name| (name == pair.0).then(|| pair.1.to_owned()))
        };
        let image = Ok(Source::Image { name: "e".into(), tag: "1".into() });
        assert_eq!(find(("TEST_DLOCK_ETCD_NEW_IMAGE", "image:e:1")), image);
        assert_eq!(find(("TEST_DLOCK_ETCD_NEW", "image:e:1")), image);
        let said = find(("TEST_DLOCK_ETCD_NEW", "/usr/bin/etcd")).unwrap_err();
        assert!(said.contains("cargo xtask images"), "{said}");
    }
}
