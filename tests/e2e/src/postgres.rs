//! Servers that keep their locks in a real PostgreSQL database.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::{
    fmt::Write as _,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// The variable that says where the database is.
pub const URL: &str = "TEST_DLOCK_POSTGRES_URL";

/// A schema of the database that nobody else uses.
#[derive(Clone, Debug)]
pub struct Postgres {
    /// The database's address.
    pub url: String,
    /// The schema.
    pub schema: String,
}

impl Postgres {
    /// A schema for whoever owns this folder; it is not made yet.
    ///
    /// # Panics
    /// When nobody said where a database is.
    #[must_use]
    pub fn beside(folder: &Path) -> Self {
        let Ok(url) = std::env::var(URL) else {
            panic!(
                "no PostgreSQL to test on: run `cargo xtask test`, which starts one, or set {URL} \
                 to an address such as postgres://user:password@127.0.0.1:5432/database, of a role \
                 that may create schemas and roles there"
            )
        };
        Self { url, schema: format!("e2e_{}", hexadecimal(folder)) }
    }

    /// What a server is started with to keep its locks there; the schema is in a file in this
    /// folder.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn options(&self, folder: &Path) -> Vec<String> {
        self.options_and(folder, "")
    }

    /// [`options`](Self::options), with more lines in the file.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn options_and(&self, folder: &Path, more: &str) -> Vec<String> {
        let file = folder.join("dlock.toml");
        let text = format!("postgres.schema = \"{}\"\n{more}\n", self.schema);
        std::fs::write(&file, text).expect("it can be written");
        let file = file.display().to_string();
        ["--backend", "postgres", "--postgres-url", &self.url, "--config", &file]
            .map(str::to_owned)
            .into()
    }

    /// The same database and schema as another user sees them.
    ///
    /// # Panics
    /// When the address names no user.
    #[must_use]
    pub fn seen_by(&self, user: &str, password: &str) -> Self {
        let (scheme, rest) = self.url.split_once("://").expect("the address has a scheme");
        let (_, host) = rest.rsplit_once('@').expect("the address names a user");
        Self { url: format!("{scheme}://{user}:{password}@{host}"), schema: self.schema.clone() }
    }

    /// Lets psql run this, and stop at the first error; what it prints, or what it complains of.
    ///
    /// # Errors
    /// What psql says.
    ///
    /// # Panics
    /// When there is no psql.
    pub fn psql(&self, sql: &str) -> Result<String, String> {
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", &self.url]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut psql = command.spawn().unwrap_or_else(|error| {
            panic!("psql cannot be started (Debian has it in postgresql-client): {error}")
        });
        let mut stdin = psql.stdin.take().expect("it is a pipe");
        // Where psql has ended already, its complaint says why.
        let _ = stdin.write_all(sql.as_bytes());
        drop(stdin);
        let output = psql.wait_with_output().expect("psql ends");
        let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// A new role that may log in and nothing else, gone with what is returned.
    ///
    /// # Panics
    /// When the tests' own role may not make one.
    #[must_use]
    pub fn new_role(&self) -> Role {
        let name = format!("r{}", self.schema);
        let made = self.psql(&format!("CREATE ROLE {name} LOGIN PASSWORD '{name}'"));
        made.unwrap_or_else(|error| panic!("{URL} must be of a role that may make roles: {error}"));
        Role { owner: self.clone(), name }
    }
}

/// A role of a test's own.
#[derive(Debug)]
pub struct Role {
    owner: Postgres,
    /// Its name, which is its password too.
    pub name: String,
}

impl Role {
    /// The database as the role sees it.
    #[must_use]
    pub fn view(&self) -> Postgres {
        self.owner.seen_by(&self.name, &self.name)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let name = &self.name;
        let _ = self.owner.psql(&format!("DROP OWNED BY {name}; DROP ROLE {name};"));
    }
}

/// A folder's name in letters that need no quotes, one for one.
fn hexadecimal(folder: &Path) -> String {
    let name = folder.file_name().expect("a folder has a name");
    let mut text = String::new();
    for byte in name.as_encoded_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
