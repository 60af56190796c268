//! Traps 27 and 31, C41 and C43: what a role, a database or a server sets does not reach our
//! transactions.

use dlock_conformance::kit::{key, long, millis, of, private, private_for};

use crate::kit::{Place, bytes};

/// Whatever a role may set that could matter.
pub(crate) const ODD: &[&str] = &[
    "TimeZone TO 'Asia/Kolkata'",
    "default_transaction_isolation TO 'serializable'",
    "default_transaction_read_only TO 'on'",
    "default_transaction_deferrable TO 'on'",
    "statement_timeout TO '1s'",
    "lock_timeout TO '1ms'",
    "idle_in_transaction_session_timeout TO '1s'",
    "search_path TO 'pg_temp'",
    "DateStyle TO 'SQL, DMY'",
    "IntervalStyle TO 'sql_standard'",
    "bytea_output TO 'escape'",
    "standard_conforming_strings TO 'off'",
    "quote_all_identifiers TO 'on'",
    "row_security TO 'off'",
    "enable_indexscan TO 'off'",
    "client_min_messages TO 'debug5'",
];

/// Notes what is in force in transactions that write, as they see it themselves.
async fn note_settings(place: &Place) {
    place
        .eye
        .run(
            "CREATE TABLE noted (what text, here text); \
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO noted SELECT s, current_setting(s) FROM unnest(ARRAY[ \
             'synchronous_commit', 'transaction_isolation', 'transaction_read_only', 'TimeZone']) s; \
             RETURN NULL; END $$; \
             CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON dlock_sessions \
             EXECUTE FUNCTION note()",
        )
        .await;
    // A trigger's function finds its table by the path of its own.
    let schema = &place.schema;
    place.eye.run(&format!("ALTER FUNCTION note() SET search_path TO \"{schema}\"")).await;
}

/// Each setting as it was noted, once.
async fn noted(place: &Place) -> Vec<String> {
    let mut noted = place.eye.texts("SELECT DISTINCT what || '=' || here FROM noted").await;
    // In our own order, not in that of the database's language.
    noted.sort();
    noted
}

/// Everything that writes.
async fn write_everything(a: &dlock_conformance::kit::Caller) {
    let session = a.open("worker", long()).await;
    let again = a.try_open("worker", long(), Some(session.id)).await.unwrap();
    assert_eq!(again.id, session.id);
    let handle = a.take(&key("k"), &of(&session)).await;
    assert!(a.extend(&handle).await.is_some());
    assert_eq!(a.keep(&session.id, &[&handle]).await.unwrap().lost, []);
    assert!(a.release(&handle).await);
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(a.extend(&handle).await.is_some());
    a.revoke(&key("k"), Some(handle.token)).await;
    let attempt = dlock_conformance::kit::attempt();
    a.take_as(&key("k"), &private("worker"), attempt).await;
    assert!(a.forget(&key("k"), &private("worker"), attempt).await);
    a.take(&key("k"), &private("worker")).await;
    let floors = a.backend.floors.clone().unwrap();
    floors
        .raise(&Default::default(), dlock_domain::TokenFloor::new(0).unwrap(), a.by())
        .await
        .unwrap();
    a.reap(10).await;
    assert!(a.close(&session.id).await);
}

/// The naive one leaves it to the role (and loses what it acknowledged when the server is killed:
/// `durability`); a stronger wish is left as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_27_every_commit_waits_for_the_disk_whatever_the_role_says() {
    for (wish, here) in [
        ("off", "on"),
        ("local", "on"),
        ("remote_write", "on"),
        ("on", "on"),
        ("remote_apply", "remote_apply"),
    ] {
        let mut place = Place::new().await;
        note_settings(&place).await;
        let (role, url) = place.role(&[&format!("synchronous_commit TO '{wish}'")]).await;
        let naive = crate::kit::Raw::connect(&url, &place.schema).await;
        naive
            .run(
                "INSERT INTO dlock_sessions VALUES \
                 (decode(repeat('ab', 16), 'hex'), 'x', 1000, clock_timestamp(), false)",
            )
            .await;
        assert!(noted(&place).await.contains(&format!("synchronous_commit={wish}")));
        place.eye.run("TRUNCATE noted").await;
        let a = place.caller_with(place.config_at(&url)).await;
        write_everything(&a).await;
        let noted = noted(&place).await;
        let of_commits: Vec<_> = noted.iter().filter(|one| one.starts_with("sync")).collect();
        assert_eq!(of_commits, [&format!("synchronous_commit={here}")], "{wish}");
        drop((a, naive));
        place.drop_role(&role).await;
    }
}

/// C41, C43, trap 31: a role with the oddest defaults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c41_c43_a_roles_defaults_do_not_reach_our_transactions() {
    let mut place = Place::new().await;
    note_settings(&place).await;
    let (role, url) = place.role(ODD).await;
    let a = place.caller_with(place.config_at(&url)).await;
    write_everything(&a).await;
    assert_eq!(
        noted(&place).await,
        [
            "TimeZone=UTC",
            "synchronous_commit=on",
            "transaction_isolation=read committed",
            "transaction_read_only=off",
        ]
    );

    // What one role's zone writes another role's zone reads, also while it is being changed.
    let b = place.caller().await;
    let handle = a.take(&key("zone"), &private_for("east", millis(60_000))).await;
    b.meet(&key("zone"), &private("west")).await;
    let info = b.read(&key("zone")).await.unwrap();
    let left = info.server_expiry.since(b.wall());
    assert!(left.as_millis() <= 60_000 && left.as_millis() > 1_000, "{left:?}");
    place.eye.run(&format!("ALTER ROLE {role} SET TimeZone TO 'America/St_Johns'")).await;
    let c = place.caller_with(place.config_at(&url)).await;
    c.meet(&key("zone"), &private("north")).await;
    assert!(c.extend(&handle).await.is_some());
    assert!(a.release(&handle).await);
    drop((a, c));
    place.drop_role(&role).await;
}

/// C41: a time without a zone means another moment in another zone, so a lease written by one
/// server has ended, for another one, before it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c41_times_carry_their_zone() {
    let place = Place::new().await;
    let (east, west) = (place.raw().await, place.raw().await);
    east.run("CREATE TABLE naive_sessions (expires_at timestamp)").await;
    east.run("SET TimeZone TO 'America/St_Johns'").await;
    west.run("SET TimeZone TO 'Asia/Kolkata'").await;
    east.run("INSERT INTO naive_sessions VALUES (clock_timestamp() + '1 hour')").await;
    let ended = "SELECT count(*) FROM naive_sessions WHERE expires_at <= clock_timestamp()";
    assert_eq!((east.number(ended).await, west.number(ended).await), (0, 1));

    let zoneless = format!(
        "SELECT count(*) FROM information_schema.columns WHERE table_schema = '{}' \
         AND table_name LIKE 'dlock_%' AND data_type LIKE 'time%' \
         AND data_type <> 'timestamp with time zone'",
        place.schema
    );
    assert_eq!(place.eye.number(&zoneless).await, 0);
}

/// C43: under a strict default two that meet on a row fail, naively.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_a_strict_default_fails_nobody() {
    let mut place = Place::new().await;
    let strict = "default_transaction_isolation TO 'serializable'";
    let (role, url) = place.role(&[strict]).await;
    let a = place.caller_with(place.config_at(&url)).await;
    let handle = a.take(&key("k"), &private("worker")).await;
    let id = bytes(handle.session);
    let other = place.raw().await;
    let naive = crate::kit::Raw::connect(&url, &place.schema).await;
    let move_it = format!("UPDATE dlock_sessions SET ttl_ms = ttl_ms WHERE id = {id}");
    let move_and_hold = format!("BEGIN; {move_it}");

    other.run(&move_and_hold).await;
    let refused = naive.client.batch_execute(&move_it);
    let commit = async {
        place.waiting(1).await;
        other.run("COMMIT").await;
    };
    let (refused, ()) = tokio::join!(refused, commit);
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "40001");

    other.run(&move_and_hold).await;
    let (extends, of_it) = (a.clone(), handle.clone());
    let extended = tokio::spawn(async move { extends.extend(&of_it).await });
    place.waiting(1).await;
    other.run("COMMIT").await;
    assert_eq!(extended.await.unwrap().unwrap().token, handle.token);
    drop((a, naive));
    place.drop_role(&role).await;
}

/// C43: an extend has its session and waits for the lock's row; whoever has that wants the session.
/// One of the two must give way. It is ours, and it is made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_who_gave_way_in_a_deadlock_begins_again() {
    let mut place = Place::new().await;
    // Ours looks for deadlocks, after the other has begun to wait; the other never does.
    let (role, url) = place.role(&["deadlock_timeout TO '3s'"]).await;
    let a = place.caller_with(place.config_at(&url)).await;
    let handle = a.take(&key("k"), &private("worker")).await;
    let id = bytes(handle.session);
    let deadlocks =
        "SELECT pg_stat_get_db_deadlocks(oid) FROM pg_database WHERE datname = current_database()";
    let before = place.eye.number(deadlocks).await;
    let other = place.raw().await;
    other.run("BEGIN; SET LOCAL deadlock_timeout = '1h'").await;
    other.run("SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let (extends, of_it) = (a.clone(), handle.clone());
    let extended = tokio::spawn(async move { extends.extend(&of_it).await });
    place.waiting(1).await;
    // It gets the session's row as soon as ours has given way.
    other.run(&format!("SELECT FROM dlock_sessions WHERE id = {id} FOR UPDATE")).await;
    assert!(!extended.is_finished(), "it is at it again");
    other.run("COMMIT").await;
    assert_eq!(extended.await.unwrap().unwrap().token, handle.token);
    place.eye.becomes(&format!("SELECT (({deadlocks}) > {before})::int::bigint"), 1).await;
    drop(a);
    place.drop_role(&role).await;
}

/// C43: a deadlock that comes back every time is an answer in the end, and nothing was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_who_always_gives_way_is_told_so_after_five_times() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    place
        .eye
        .run(
            "CREATE SEQUENCE counted; \
             CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             PERFORM nextval(TG_TABLE_SCHEMA || '.counted'); \
             RAISE EXCEPTION 'it gives way' USING ERRCODE = 'deadlock_detected'; END$$; \
             CREATE TRIGGER give_way BEFORE DELETE ON dlock_sessions \
             FOR EACH ROW EXECUTE FUNCTION give_way()",
        )
        .await;
    let refused = a.backend.locks.delete_if_owner(&handle.key, handle.token, a.by()).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), dlock_domain::ErrorKind::Contention);
    assert_eq!(refused.applied(), dlock_domain::Applied::No, "{refused:?}");
    assert_eq!(place.eye.number("SELECT last_value FROM counted").await, 5);
    assert!(a.extend(&handle).await.is_some(), "it is held as before");
}
