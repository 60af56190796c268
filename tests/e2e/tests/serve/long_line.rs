//! C08: how long the line is, is nothing to the store.

use dlock_e2e::{client::Client, eventually, raw::Raw};

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, wanting};

const HANDOFFS: u64 = 20;

/// How many operations the store has done.
fn operations(client: &Client) -> u64 {
    let metrics = client.get("/metrics").unwrap().expect(200);
    let lines = metrics.as_str().unwrap().lines();
    let sum = lines.filter(|line| line.starts_with("dlock_store_batch_size_sum"));
    sum.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// What so many handoffs cost the store while so many wait.
fn cost(waiters: u64) -> u64 {
    let world = World::new();
    let client = world.client();
    let mut holder = acquire(&client, "k", "a", LONG);
    let wait = |n| Raw::post(world.address(), ACQUIRE, &wanting("k", &format!("{n}"), LONG, LONG));
    let mut line = Vec::new();
    for n in 1..=waiters {
        line.push(wait(n));
        if n <= HANDOFFS {
            eventually("it is the next in line", || client.waiters("k") == n);
        }
    }
    eventually("all wait", || client.waiters("k") == waiters);
    let before = operations(&client);
    for next in line.iter_mut().take(usize::try_from(HANDOFFS).unwrap()) {
        client.call(RELEASE, &naming(&holder), 200);
        holder = next.answer().unwrap().expect(200);
    }
    operations(&client) - before
}

#[test]
fn c08_a_handoff_costs_the_store_the_same_however_many_wait() {
    let (few, many) = (cost(HANDOFFS), cost(500));
    assert!(few >= 2 * HANDOFFS, "a release and a grant for each are counted: {few}");
    // The reaper may have come by, once in ten seconds.
    assert!(many <= few + HANDOFFS / 2, "{many} with 500 in line, {few} with {HANDOFFS}");
}
