//! What a case notes for the parity page: a capability that it asserted to be absent, or a figure
//! that the store has shown.
//!
//! Notes of a case that passed are appended to the file that `TEST_DLOCK_NOTES` names, one a line:
//! the test, then `lacks` or `shows` and the rest. Without that variable they are dropped.

use core::{cell::RefCell, fmt::Display};
use std::{collections::BTreeSet, fs::OpenOptions, io::Write as _};

/// The variable that says where notes go.
const FILE: &str = "TEST_DLOCK_NOTES";

tokio::task_local! {
    /// The notes of the case that is running.
    static NOTES: RefCell<BTreeSet<String>>;
}

/// Notes that the store lacks a capability, as it is expected to, and that the case asserts so.
pub fn lacks(capability: &str) {
    note(format!("lacks {capability}"));
}

/// Notes what the store has shown of a property.
pub fn shows(property: &str, what: impl Display) {
    note(format!("shows {property}: {what}"));
}

/// Outside a case of the suite, and in a task that a case started, nobody asks.
fn note(note: String) {
    let _ = NOTES.try_with(|notes| notes.borrow_mut().insert(note));
}

/// Runs a case, and writes its notes once it has passed.
///
/// # Panics
/// If there is a file for notes and it cannot be written: a page must not be made of half of them.
pub async fn noting(test: &str, case: impl Future<Output = ()>) {
    let running = async {
        case.await;
        NOTES.with(RefCell::take)
    };
    let notes = NOTES.scope(RefCell::default(), running).await;
    let Some(file) = std::env::var_os(FILE).filter(|_| !notes.is_empty()) else { return };
    let lines: String = notes.iter().map(|note| format!("{test} {note}\n")).collect();
    let file = OpenOptions::new().append(true).create(true).open(file);
    // In one piece, since tests run side by side.
    file.and_then(|mut file| file.write_all(lines.as_bytes())).expect("notes can be written");
}
