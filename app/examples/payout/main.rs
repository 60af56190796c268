//! A batch of payments that cannot be paid twice, and the same batch when nothing guards it.
//!
//! `cargo run -p dlock --example payout -- --database postgres://user@host/name`
//!
//! The database may also be named by `DATABASE_URL`; what is made in it is a schema of the
//! example's own, which is gone at the end. Two worker processes take the lock of the batch in
//! turn. The first one is stopped (SIGSTOP) when it has just seen that it holds the lock and is
//! about to make a payment; the second one takes over when the lease has ended, and pays the rest;
//! then the first one is continued, and its late payment arrives. It happens twice, with the fence
//! guard and without, and a table of each is printed. Ends with an error unless the first total is
//! exact and the second one is not.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `main` | both runs: who is started, stopped and continued when |
//! | [`worker`] | takes the lock, and pays; a process of its own |
//! | [`rail`] | what it pays through, and where the fence guards it |
//! | [`stage`] | worker processes: what they say, how they are stopped |
//! | [`report`] | the table |

mod rail;
mod report;
mod stage;
mod worker;

use std::{env, error::Error, io, process::ExitCode};

use rail::{Books, Place};
use report::{Report, say};
use stage::Stage;

/// What may go wrong anywhere: this is an example.
type Failed = Box<dyn Error + Send + Sync>;

/// The payment before which the first worker is stopped.
const STOP_BEFORE: i64 = 3;

const USAGE: &str = "usage: payout --database postgres://user@host/name (or set DATABASE_URL)";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        ["worker", ref role @ ..] => worker::run(role).await,
        [] => both(env::var(rail::DATABASE).ok()).await,
        ["--database", url] => both(Some(url.to_owned())).await,
        _ => Err(USAGE.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&mut io::stderr(), &report::chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Both runs, each in a schema and with a lock of its own.
async fn both(url: Option<String>) -> Result<(), Failed> {
    let url = url.filter(|url| !url.is_empty()).ok_or(USAGE)?;
    let mut wrong = Vec::new();
    for guarded in [true, false] {
        let place = Place::make(&url, guarded).await?;
        let mut report = Report::begin(guarded);
        let ended = tokio::select! {
            ended = run(&place, &mut report) => ended,
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        };
        say(&mut io::stdout(), &report.to_string());
        // However it ended, no worker is left by now.
        let removed = place.remove().await;
        let books = ended?;
        removed?;
        say(&mut io::stdout(), &format!("{}\n", books.verdict()));
        if guarded && !books.exact() {
            wrong.push("with the guard the total is not exact");
        }
        if !guarded && books.twice.is_empty() {
            wrong.push(
                "without the guard nothing was paid twice: the pause was not where it counts",
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

/// One run: what happened goes into the report, what it came to is returned.
async fn run(place: &Place, report: &mut Report) -> Result<Books, Failed> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::new(place, folder.path());

    let mut ann = stage.enter("ann", Some(STOP_BEFORE))?;
    while !ann.hears(report).await?.ok_or("ann ends too early")?.is_about_to_pay() {}
    ann.stop()?;
    report.note("ann", "is stopped (SIGSTOP), and nobody keeps its lease");
    // What it does as soon as it runs again is to pay.
    ann.go_on().await?;

    let mut bob = stage.enter("bob", None)?;
    bob.takes_over_from(&ann, report).await?;
    bob.ends(report).await?;

    report.note("ann", "is continued (SIGCONT)");
    ann.resume()?;
    ann.ends(report).await?;
    place.books().await
}
