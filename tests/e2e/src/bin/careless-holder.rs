//! A process that holds a lock and updates what the lock protects, without ever asking whether it
//! still holds it: what a pause makes of it is then the resource's affair alone (C10).
//!
//! Arguments: the server's address, the register's folder, `fenced` or `unfenced`, the lifetime in
//! milliseconds, and how many updates to make. Each update is a read, a line on standard input
//! that lets it go on, and a write. It says what it does on standard output, a line each.

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use dlock::SystemClock;
use dlock_e2e::{
    register::Register,
    remote::{locks, remote},
};

fn say(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{words}")?;
    out.flush()
}

// The guard's tasks have threads of their own: blocking here keeps nothing from being renewed.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    // Whoever waits for a word of it does not wait for ever.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        std::process::exit(70);
    });
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, folder, mode, ttl_ms, updates] = words.as_slice() else {
        return Err("careless-holder SERVER FOLDER fenced|unfenced TTL_MS UPDATES".into());
    };
    let register = Register::at(Path::new(folder), mode == "fenced");
    let clock = Arc::new(SystemClock::new());
    let client = remote(server.parse()?, clock.clone(), 100);
    let locks = locks(&client, clock, "careless", Duration::from_millis(ttl_ms.parse()?));
    let mut left: u32 = updates.parse()?;
    while left > 0 {
        let lock = locks.lock("register").wait(Duration::from_secs(60)).acquire().await?;
        // Until it is refused: the lock is lost then, and has to be acquired anew.
        while left > 0 {
            let value = register.read(lock.token())?;
            say(&format!("read {value} token {}", lock.token()))?;
            io::stdin().read_line(&mut String::new())?;
            // The first instruction after a pause.
            let held = lock.is_held();
            let written = register.write(lock.token(), value + 1);
            say(if held { "held" } else { "not held" })?;
            match written {
                Ok(()) => {
                    left -= 1;
                    say("written")?;
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    say("refused")?;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Lost or not: a holder that lost it learns so here, and does not mind.
        drop(lock.release().await);
    }
    Ok(())
}
