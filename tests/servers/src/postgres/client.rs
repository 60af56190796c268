//! PostgreSQL's own client programs, in the version of the server that they are used on.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Where the programs are, and how they find the server.
#[derive(Debug)]
pub(crate) struct Clients {
    place: Programs,
    host: String,
    port: u16,
    password: String,
}

/// Where the programs are.
#[derive(Debug)]
pub(crate) enum Programs {
    /// In a folder of this machine.
    Folder(PathBuf),
    /// In the server's container.
    Container(String),
}

/// Finds a program in a container as the server itself is found there.
const INSIDE: &str = r#"
for programs in /usr/lib/postgresql/*/bin; do [ ! -d "$programs" ] || PATH=$programs:$PATH; done
exec "$0" "$@""#;

/// What `psql` puts between the columns and the rows: neither occurs in texts.
const COLUMN: char = '\u{1f}';
const ROW: char = '\u{1e}';

impl Clients {
    pub(crate) fn new(place: Programs, host: String, port: u16, password: String) -> Self {
        Self { place, host, port, password }
    }

    /// Sends statements in one go and returns all their rows; a null is empty.
    ///
    /// # Errors
    /// What the server said to the first that failed.
    pub(crate) fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let (column, row) = (COLUMN.to_string(), ROW.to_string());
        let apart = ["-XAtq", "-F", &column, "-R", &row, "-v", "ON_ERROR_STOP=1"];
        let said = self.run("psql", database, &[&apart[..], &["-f", "-"]].concat(), sql)?;
        let said = said.strip_suffix('\n').unwrap_or(&said);
        let rows = said.split([ROW]).filter(|row| !row.is_empty());
        Ok(rows.map(|row| row.split(COLUMN).map(str::to_owned).collect()).collect())
    }

    /// Runs a program on a database and returns what it prints.
    ///
    /// # Errors
    /// What it complained of.
    pub(crate) fn run(
        &self,
        program: &str,
        database: &str,
        args: &[&str],
        input: &str,
    ) -> Result<String, String> {
        let mut command = match &self.place {
            Programs::Folder(folder) => Command::new(folder.join(program)),
            Programs::Container(name) => {
                let mut docker = Command::new("docker");
                docker.args(["exec", "-i", "-e", "PGPASSWORD", "-e", "PGCONNECT_TIMEOUT", name]);
                docker.args(["sh", "-c", INSIDE, program]);
                docker
            }
        };
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command.env("PGPASSWORD", &self.password).env("PGCONNECT_TIMEOUT", "10");
        command.args(["-h", &self.host, "-p", &self.port.to_string()]);
        command.args(["-U", "postgres", "-d", database]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let pipe = child.stdin.take();
        let done = std::thread::scope(|scope| {
            // Fails where the program ended before it read all; it has said why.
            scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(input.as_bytes())));
            Child::wait_with_output(child)
        });
        let done = done.map_err(|error| format!("{program}: {error}"))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}
