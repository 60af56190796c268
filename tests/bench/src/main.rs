//! What the embedded store costs, as ratios within one run.
//!
//! ```text
//! cargo run --release -p dlock-bench -- [rounds] [seconds per measurement]
//! ```
//!
//! Machines and disks differ and drift, so nothing here is compared with a number from another
//! day: each round measures the disk and the store in turn, and the medians of the rounds' ratios
//! are printed. The yardsticks: one caller can be no faster than the disk's `fdatasync`; many
//! callers should cost hardly more than a store that never syncs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dlock::wiring::{EmbeddedConfig, EmbeddedStore};
use dlock::{
    Attempt, AttemptId, Backend, Clock as _, Deadline, Entropy as _, Holder, InsertRequest, Intent,
    LockKey, LockName, Namespace, OsEntropy, OwnerId, SystemClock, Ttl,
};
use dlock_embedded::Durability;
use hdrhistogram::Histogram;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let rounds: usize = words.next().map_or(Ok(5), |word| word.parse()).context("rounds")?;
    let seconds: u64 = words.next().map_or(Ok(2), |word| word.parse()).context("seconds")?;
    let span = Duration::from_secs(seconds.max(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(rounds.max(1), span))
}

async fn measure(rounds: usize, span: Duration) -> Result<()> {
    let mut out = std::io::stdout();
    let (mut alone, mut grouped) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let folder = tempfile::tempdir()?;
        let disk = fdatasync_rate(folder.path(), span)?;
        let one = store_rate(folder.path(), "one", Durability::Full, 1, span).await?;
        let idle = store_rate(folder.path(), "idle", Durability::BenchOnlyOff, 1, span).await?;
        let many = store_rate(folder.path(), "many", Durability::Full, 256, span).await?;
        let off = store_rate(folder.path(), "off", Durability::BenchOnlyOff, 256, span).await?;
        alone.push(one.rate / disk);
        grouped.push(many.rate / off.rate);
        writeln!(out, "round {round}: disk {disk:.0} fdatasync/s")?;
        for (name, run) in [
            ("  1 caller,    synchronous=FULL", &one),
            ("  1 caller,    synchronous=OFF ", &idle),
            ("  256 callers, synchronous=FULL", &many),
            ("  256 callers, synchronous=OFF ", &off),
        ] {
            writeln!(
                out,
                "{name}: {:.0} operations/s, {:.1} per commit, median {:.2} ms, 99% {:.2} ms",
                run.rate,
                run.per_commit,
                run.latency(0.5),
                run.latency(0.99),
            )?;
        }
    }
    writeln!(out, "1 caller / fdatasync rate:               {:.2}", median(&mut alone))?;
    writeln!(out, "256 callers FULL / 256 callers OFF:      {:.2}", median(&mut grouped))?;
    Ok(())
}

/// How often the disk makes one overwritten page durable.
fn fdatasync_rate(folder: &Path, span: Duration) -> Result<f64> {
    let file = OpenOptions::new().create_new(true).write(true).open(folder.join("disk"))?;
    file.write_all_at(&vec![1; 4 << 20], 0)?;
    file.sync_all()?;
    let page = [2_u8; 4_096];
    let (start, mut count) = (now(), 0_u32);
    while start.elapsed() < span {
        file.write_all_at(&page, u64::from(count % 1_024) * 4_096)?;
        rustix::fs::fdatasync(&file)?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

struct Run {
    rate: f64,
    per_commit: f64,
    micros: Histogram<u64>,
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a short run are exact")]
    fn latency(&self, quantile: f64) -> f64 {
        self.micros.value_at_quantile(quantile) as f64 / 1_000.0
    }
}

/// Acquires and releases by so many callers, each on locks of its own.
#[expect(clippy::cast_precision_loss, reason = "counts of a short run are exact")]
async fn store_rate(
    folder: &Path,
    name: &str,
    durability: Durability,
    callers: u32,
    span: Duration,
) -> Result<Run> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let config = EmbeddedConfig { durability, ..EmbeddedConfig::at(folder.join(name)) };
    let store = EmbeddedStore::open(config, clock, entropy)?;
    let before = store.grouping();
    let start = now();
    let mut tasks = Vec::new();
    for caller in 0..callers {
        tasks.push(tokio::spawn(cycle(store.backend(), caller, start, span)));
    }
    let mut micros = Histogram::new(3)?;
    for task in tasks {
        micros.add(task.await??)?;
    }
    let (after, elapsed) = (store.grouping(), start.elapsed().as_secs_f64());
    let operations = (after.operations - before.operations) as f64;
    let commits = (after.commits - before.commits) as f64;
    Ok(Run { rate: operations / elapsed, per_commit: operations / commits, micros })
}

async fn cycle(
    backend: Backend,
    caller: u32,
    start: Instant,
    span: Duration,
) -> Result<Histogram<u64>> {
    let mut micros = Histogram::new(3)?;
    let key = LockKey::new(Namespace::default(), LockName::new(&format!("caller/{caller}"))?);
    let owner = OwnerId::new("bench")?;
    let ttl = Ttl::from_millis(30_000)?;
    let by = || Deadline::at(SystemClock::new().now().after(Duration::from_secs(30)));
    while start.elapsed() < span {
        let request = InsertRequest {
            key: key.clone(),
            holder: Holder::Private { owner: owner.clone(), ttl },
            attempt: AttemptId::from_bits(OsEntropy.bits()),
            intent: Intent::Acquire,
        };
        let asked = now();
        let Attempt::Granted(handle) = backend.locks.try_insert(request, by()).await? else {
            bail!("a lock of one's own is held by somebody else");
        };
        micros.record(u64::try_from(asked.elapsed().as_micros())?)?;
        let asked = now();
        if !backend.locks.delete_if_owner(&key, handle.token, by()).await? {
            bail!("a lock of one's own was lost");
        }
        micros.record(u64::try_from(asked.elapsed().as_micros())?)?;
    }
    Ok(micros)
}

fn median(ratios: &mut [f64]) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
