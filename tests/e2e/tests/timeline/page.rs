//! The page that shows a recorded run.

use std::{fmt::Write, path::PathBuf};

use dlock::Moment;

use crate::{Recorded, TTL};

/// The page.
pub(crate) const PATH: &str = "tasks/timeline.md";

/// One row: how long after the cut, in seconds; what happened; who saw it.
pub(crate) struct Event {
    after: f64,
    what: &'static str,
    seen_by: &'static str,
}

/// The rows, in the order of what happened.
pub(crate) fn events(seen: &Recorded) -> Vec<Event> {
    let row = |at: Moment, what, seen_by| Event {
        after: at.since(seen.cut).as_secs_f64(),
        what,
        seen_by,
    };
    vec![
        row(seen.cut, "the line is cut: bytes vanish both ways, nothing is reset", "the proxy"),
        row(
            seen.noticed,
            "the loss is noticed: the lease could not be kept in time",
            "`dlock run`, on standard error",
        ),
        row(seen.term, "TERM", "the command, which traps it and goes on"),
        row(seen.last_heartbeat, "the last heartbeat of a grandchild deaf to TERM", "its own file"),
        row(seen.gone, "KILL: nothing of the command is left", "the end of its standard output"),
        row(seen.lease_end, "the lease ends", "the server: `expires_in_ms` of the lock"),
        row(seen.next_grant, "the next grant, with a greater token", "a waiter at the server"),
    ]
}

/// Writes the page.
pub(crate) fn write(events: &[Event]) {
    let mut page = format!(
        "# Timeline of a loss\n\n\
         `dlock run job --ttl {}s -- COMMAND` at a server through a proxy; the proxy cuts the line\n\
         some time after the last renewal. The command traps TERM and goes on, and has a child that\n\
         ignores it and writes a heartbeat every 2 ms. All moments are of one clock, the boot clock.\n\
         TERM is due a quarter of the lifetime before the holder's deadline, KILL an eighth before\n\
         it, and the deadline lies before the end of the lease by the margin ([INV-03]\
         (contracts/invariants.md)).\n\n\
         One run, written by `tests/e2e/tests/timeline/main.rs` (`TEST_DLOCK_BLESS=1`). Every run of\n\
         the tests records another and must find the same events in the same order; the times are\n\
         a little different each time.\n\n\
         | after the cut | event | seen by |\n| ---: | --- | --- |\n",
        TTL.as_secs()
    );
    for Event { after, what, seen_by } in events {
        writeln!(page, "| {after:.3} s | {what} | {seen_by} |").unwrap();
    }
    page.push_str(
        "\nThe notice and TERM leave two processes in the same instant. The last heartbeat is the\n\
         last thing that the command did; that it is dead is seen a little later.\n",
    );
    std::fs::write(file(), page).unwrap();
}

/// Whether the page has these events in this order, at times that never go back, for this lifetime.
pub(crate) fn tells_of(events: &[Event]) -> bool {
    let page = std::fs::read_to_string(file()).unwrap_or_default();
    let rows: Vec<(f64, &str)> = page.lines().filter_map(row).collect();
    let expected: Vec<&str> = events.iter().map(|event| event.what).collect();
    let told: Vec<&str> = rows.iter().map(|(_, what)| *what).collect();
    page.contains(&format!("--ttl {}s ", TTL.as_secs()))
        && told == expected
        && rows.is_sorted_by(|earlier, later| earlier.0 <= later.0)
}

/// The time and the event of a row that has a time.
fn row(line: &str) -> Option<(f64, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let after = cells.next()?.strip_suffix(" s")?.parse().ok()?;
    Some((after, cells.next()?))
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(PATH)
}
