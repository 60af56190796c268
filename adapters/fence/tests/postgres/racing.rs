//! Writers at the same time: the row's lock puts them in order.

use std::sync::Arc;

use dlock_fence::postgres::FenceError;
use dlock_servers::PostgresVersion;
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    on_both,
    support::{Place, Writer, assert_stale, token},
};

on_both! {
    a_lower_token_waits_behind_a_higher_one_and_is_refused_by_its_commit
    a_lower_token_waits_behind_a_higher_one_and_passes_by_its_rollback
    a_higher_token_waits_behind_a_lower_one_and_writes_after_it
    writers_of_other_resources_do_not_wait
    inv05_forty_writers_at_once_commit_in_the_order_of_their_tokens
}

/// A writer that has passed with one token and keeps its transaction open, and another that waits
/// for it with its own. Whether the resource has a mark already makes two cases: an update waits
/// for a row, an insert for another insert.
async fn behind(
    version: PostgresVersion,
    marked: bool,
    waits: u64,
    open: u64,
) -> (Place, Writer, WaitingWriter) {
    let place = Place::new(version).await;
    let mut first = place.writer().await;
    if marked {
        first.write(1).await.unwrap();
    }
    first.begin().await;
    first.pass(open).await.unwrap();
    let mut second = place.writer().await;
    let pid = second.pid().await;
    let waiting = tokio::spawn(async move {
        let ended = second.write(waits).await;
        (second, ended)
    });
    place.writer().await.until_waits(pid).await;
    assert!(!waiting.is_finished());
    (place, first, waiting)
}

type WaitingWriter = tokio::task::JoinHandle<(Writer, Result<(), FenceError>)>;

async fn a_lower_token_waits_behind_a_higher_one_and_is_refused_by_its_commit(
    version: PostgresVersion,
) {
    for marked in [false, true] {
        let (_place, mut first, waiting) = behind(version, marked, 4, 5).await;
        first.commit().await;
        let (mut second, ended) = waiting.await.unwrap();
        // It names the mark that came while it waited.
        assert_stale(ended, 4, 5);
        assert_eq!(second.mark().await, 5);
    }
}

async fn a_lower_token_waits_behind_a_higher_one_and_passes_by_its_rollback(
    version: PostgresVersion,
) {
    for marked in [false, true] {
        let (_place, mut first, waiting) = behind(version, marked, 4, 5).await;
        first.roll_back().await;
        let (mut second, ended) = waiting.await.unwrap();
        ended.unwrap();
        assert_eq!(second.mark().await, 4);
    }
}

async fn a_higher_token_waits_behind_a_lower_one_and_writes_after_it(version: PostgresVersion) {
    for marked in [false, true] {
        let (_place, mut first, waiting) = behind(version, marked, 5, 4).await;
        first.run("INSERT INTO written (token) VALUES (4)").await;
        first.commit().await;
        let (mut second, ended) = waiting.await.unwrap();
        ended.unwrap();
        assert_eq!(second.written().await.last_chunk(), Some(&[4, 5]));
    }
}

async fn writers_of_other_resources_do_not_wait(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut first = place.writer().await;
    first.begin().await;
    first.pass(5).await.unwrap();
    let mut second = place.writer().await;
    second.run("SET lock_timeout TO '1ms'").await;
    second.begin().await;
    let other = dlock_fence::Resource::new("payments/batch-18").unwrap();
    place.fence.pass(&mut second.connection, &other, token(1)).await.unwrap();
    // For whom that is too long, the wait ends as the caller says, and nothing passes.
    let ended = second.pass(9).await;
    assert!(matches!(&ended, Err(FenceError::Database(_))), "{ended:?}");
    second.roll_back().await;
    first.commit().await;
}

async fn inv05_forty_writers_at_once_commit_in_the_order_of_their_tokens(version: PostgresVersion) {
    const WRITERS: u64 = 40;
    let place = Place::new(version).await;
    let mut connected = Vec::new();
    for _ in 0..WRITERS {
        connected.push(place.writer().await);
    }
    let barrier = Arc::new(Barrier::new(connected.len()));
    let mut running = JoinSet::new();
    for (at, mut writer) in (0..).zip(connected) {
        // Each number once, far from its neighbours; 7 and 40 have no common divisor.
        let number = at * 7 % WRITERS + 1;
        let barrier = barrier.clone();
        running.spawn(async move {
            barrier.wait().await;
            (number, writer.write(number).await)
        });
    }
    let mut passed = Vec::new();
    while let Some(ended) = running.join_next().await {
        match ended.unwrap() {
            (number, Ok(())) => passed.push(i64::try_from(number).unwrap()),
            (number, Err(FenceError::Stale(stale))) => {
                assert_eq!(stale.presented, token(number));
                assert!(stale.highest > stale.presented);
            }
            (number, other) => panic!("{number}: {other:?}"),
        }
    }
    // Their numbers in the table are drawn while the resource is theirs, up to the commit.
    let written = place.writer().await.written().await;
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written.last(), Some(&i64::try_from(WRITERS).unwrap()));
    passed.sort_unstable();
    assert_eq!(written, passed, "whoever was told that it passed has written, and nobody else");
}
