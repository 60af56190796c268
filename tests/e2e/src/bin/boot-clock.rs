//! The boot clock for scripts that tests run under a lock.
//!
//! `boot-clock now FILE` appends the clock's nanoseconds to a file, once. `boot-clock tick FILE`
//! does it again and again, until it is killed.

use std::{error::Error, fs::File, io::Write, thread::sleep, time::Duration};

use dlock::{Clock, SystemClock};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [what, file] = words.as_slice() else { return Err("boot-clock now|tick FILE".into()) };
    let mut file = File::options().create(true).append(true).open(file)?;
    loop {
        // One write a line: a reader finds whole lines, wherever this is killed.
        file.write_all(format!("{}\n", SystemClock::new().now().as_nanos()).as_bytes())?;
        if what == "now" {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
}
