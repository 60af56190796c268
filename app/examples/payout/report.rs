//! What happened, as a table.

use std::{
    error::Error,
    fmt::{self, Write as _},
    io::Write,
};

use dlock::{Clock, Moment, SystemClock};

/// What happened in one run, in the order in which it was heard of.
pub(crate) struct Report {
    guarded: bool,
    clock: SystemClock,
    begun: Moment,
    rows: Vec<[String; 5]>,
}

/// Something that a worker says: a line of its token, a payment or `-`, and words.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    token: String,
    payment: String,
    what: String,
}

/// What a worker says when it has decided, and has not done it yet.
pub(crate) const ABOUT_TO_PAY: &str = "is about to pay: its lock is held";

/// What a worker says when it has the lock.
pub(crate) const TAKES: &str = "takes the lock";

impl Event {
    pub(crate) fn new(token: u64, payment: Option<i64>, what: &str) -> Self {
        let payment = payment.map_or_else(|| "-".into(), |payment| payment.to_string());
        Self { token: token.to_string(), payment, what: what.into() }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let event = (words.next()?, words.next()?, words.next()?);
        Some(Self { token: event.0, payment: event.1, what: event.2 })
    }

    pub(crate) fn is_about_to_pay(&self) -> bool {
        self.what == ABOUT_TO_PAY
    }

    pub(crate) fn takes_the_lock(&self) -> bool {
        self.what == TAKES
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.token, self.payment, self.what)
    }
}

impl Report {
    pub(crate) fn begin(guarded: bool) -> Self {
        let clock = SystemClock::new();
        let begun = clock.now();
        Self { guarded, clock, begun, rows: Vec::new() }
    }

    /// Something that a worker said.
    pub(crate) fn heard(&mut self, who: &str, event: &Event) {
        let Event { token, payment, what } = event.clone();
        self.add(who, token, payment, what);
    }

    /// Something that was done to a worker.
    pub(crate) fn note(&mut self, who: &str, what: &str) {
        self.add(who, "-".into(), "-".into(), what.into());
    }

    fn add(&mut self, who: &str, token: String, payment: String, what: String) {
        let at = self.clock.now().since(self.begun).as_secs_f64();
        self.rows.push([format!("{at:.2} s"), who.into(), token, payment, what]);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.guarded { "With" } else { "Without" };
        writeln!(f, "{with} the fence guard\n")?;
        let head = ["at", "worker", "token", "payment", "what happened"].map(str::to_owned);
        let rule = [6, 6, 5, 7, 13].map(|width| "-".repeat(width));
        for row in [&head, &rule].into_iter().chain(&self.rows) {
            let [at, who, token, payment, what] = row;
            let mut line = String::new();
            write!(line, "{at:>7}  {who:<6}  {token:>5}  {payment:>7}  {what}")?;
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// An amount in cents.
pub(crate) fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents.abs() % 100)
}

/// An error with all that caused it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        said = format!("{said}: {cause}");
        source = cause.source();
    }
    said
}

/// Prints a line. Nobody reading it any more is no reason to leave anything undone.
pub(crate) fn say(to: &mut impl Write, line: &str) {
    let _ = writeln!(to, "{line}").and_then(|()| to.flush());
}
