//! Which PostgreSQL, and where one is found.

use std::{fmt, fs, path::PathBuf};

use crate::source::{Source, image_told};

/// A version of PostgreSQL that dlock is tested on. `xtask/src/backends/` depends on no member of the
/// workspace and has its twin: variables and numbers must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresVersion {
    /// 15, as in Debian 12.
    Old,
    /// 17 or newer, as in Debian 13.
    New,
}

/// Where Debian has the programs of each version, in a folder of the version's number.
const INSTALLED: &str = "/usr/lib/postgresql";

impl PostgresVersion {
    /// The variable that says where this version is: the folder of its programs, or
    /// `image:NAME:TAG`.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_POSTGRES_OLD",
            Self::New => "TEST_DLOCK_POSTGRES_NEW",
        }
    }

    /// The variable that names an image of this version, `image:NAME:TAG`, whatever else there is.
    #[must_use]
    pub const fn image_variable(self) -> &'static str {
        match self {
            Self::Old => "TEST_DLOCK_POSTGRES_OLD_IMAGE",
            Self::New => "TEST_DLOCK_POSTGRES_NEW_IMAGE",
        }
    }

    /// The version that a number is of.
    const fn of(number: u32) -> Option<Self> {
        match number {
            15 => Some(Self::Old),
            17.. => Some(Self::New),
            _ => None,
        }
    }

    /// Where this version is: where the environment says, else where Debian installs it.
    ///
    /// # Errors
    /// What to do, in words.
    pub(crate) fn find(self) -> Result<Source, String> {
        self.find_among(&|name| std::env::var(name).ok(), &installed())
    }

    /// An image of this version.
    ///
    /// # Errors
    /// What to do, in words.
    pub(crate) fn find_image(self) -> Result<Source, String> {
        let env = |name: &str| std::env::var(name).ok();
        image_told(&env, self.image_variable(), self.variable()).unwrap_or_else(|| {
            Err(format!(
                "no image of PostgreSQL {self}: run `cargo xtask test`, which builds one where \
                 docker is there; or build it with `cargo xtask images` and set {} to what that \
                 prints",
                self.image_variable()
            ))
        })
    }

    fn find_among(
        self,
        env: &dyn Fn(&str) -> Option<String>,
        installed: &[(u32, PathBuf)],
    ) -> Result<Source, String> {
        if let Some(told) = env(self.variable()) {
            return Source::told(&told);
        }
        let fitting = installed.iter().filter(|(number, _)| Self::of(*number) == Some(self));
        let newest = fitting.max_by_key(|(number, _)| *number);
        newest.map(|(_, folder)| Source::Binary(folder.clone())).ok_or_else(|| {
            format!(
                "no PostgreSQL {self} to test on: run `cargo xtask test`, which finds or makes one \
                 and says what it lacks for that; or install Debian {}'s package postgresql-{self}; \
                 or set {} to the folder of the programs of a PostgreSQL {self}, or to \
                 image:NAME:TAG, an image with them in it",
                match self {
                    Self::Old => 12,
                    Self::New => 13,
                },
                self.variable(),
            )
        })
    }
}

impl fmt::Display for PostgresVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "15",
            Self::New => "17",
        })
    }
}

/// The installed versions, each with the folder of its programs.
fn installed() -> Vec<(u32, PathBuf)> {
    let folders = fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let numbered = folders.filter_map(|folder| {
        let number = folder.file_name().to_str()?.parse().ok()?;
        let programs = folder.path().join("bin");
        // Clients come without a server.
        programs.join("initdb").is_file().then_some((number, programs))
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_installed_one_stands_for_its_version() {
        let at = |number: u32| (number, PathBuf::from(format!("/p/{number}/bin")));
        let find = |version: PostgresVersion, numbers: &[u32]| {
            let installed: Vec<_> = numbers.iter().copied().map(at).collect();
            version.find_among(&|_| None, &installed)
        };
        let source = |path: &str| Ok(Source::Binary(path.into()));
        assert_eq!(find(PostgresVersion::Old, &[14, 15, 17]), source("/p/15/bin"));
        assert_eq!(find(PostgresVersion::New, &[15, 18, 17]), source("/p/18/bin"));
        for (version, number) in [(PostgresVersion::New, 16), (PostgresVersion::Old, 14)] {
            let said = find(version, &[number]).unwrap_err();
            assert!(said.contains("cargo xtask test") && said.contains(version.variable()));
        }
    }

    #[test]
    fn what_the_environment_says_comes_first() {
        let env = |name: &str| (name == "TEST_DLOCK_POSTGRES_NEW").then(|| "image:p:17".to_owned());
        let image = Source::Image { name: "p".into(), tag: "17".into() };
        let installed = [(17, PathBuf::from("/p"))];
        assert_eq!(PostgresVersion::New.find_among(&env, &installed), Ok(image));
    }
}
