//! C34: bodies that are too much, or more than was asked for.

use dlock_e2e::{
    client::{Client, is_problem},
    peak_memory_kib,
    raw::Raw,
};
use serde_json::json;

use crate::{ACQUIRE, LONG, World, acquire};

const MIB: usize = 1 << 20;

#[track_caller]
fn refused(client: &Client, body: &str, status: u16, kind: &str) -> serde_json::Value {
    let problem = client.post_bytes(ACQUIRE, body.as_bytes()).unwrap().expect(status);
    assert!(is_problem(&problem, kind), "{problem}");
    assert_eq!(problem["applied"], json!("no"), "{problem}");
    problem
}

#[test]
fn c34_what_has_no_end_or_no_bottom_is_refused_within_bounds() {
    let world = World::new();
    let client = world.client();
    acquire(&client, "k", "a", LONG);
    let before = peak_memory_kib(world.server.pid()).unwrap();

    // A hundred megabytes in pieces, from each of a few: nobody goes on reading them.
    let head = format!(
        "POST {ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    let piece = format!("{MIB:x}\r\n{}\r\n", " ".repeat(MIB));
    for _ in 0..4 {
        let mut endless = Raw::connect(world.address());
        endless.write(&head);
        let taken = (0..100).take_while(|_| endless.try_write(piece.as_bytes())).count();
        assert!(taken < 100, "{taken} MiB were read");
    }
    // Only as much as is surely read before its refusal: then the refusal is surely read, too.
    let mut endless = Raw::connect(world.address());
    endless.write(&head);
    endless.write(&format!("{:x}\r\n{}\r\n", 65_537, " ".repeat(65_537)));
    let problem = endless.answer().unwrap().expect(413);
    assert!(is_problem(&problem, "body-too-large"), "{problem}");

    // What is packed is not unpacked, however much might be in it.
    let mut bomb = Raw::connect(world.address());
    bomb.write(&format!(
        "POST {ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-encoding: gzip\r\ncontent-length: 10\r\n\r\n"
    ));
    assert!(bomb.try_write(b"\x1f\x8b\x08\0\0\0\0\0\0\x03"));
    let problem = bomb.answer().unwrap().expect(415);
    assert!(is_problem(&problem, "unsupported-media-type"), "{problem}");

    // As deep as fits, and a hundred thousand levels; at the front, and in a field.
    for open in ["[", "{\"a\":"] {
        refused(&client, &open.repeat(10_000), 400, "malformed-body");
        // Refused for what it announces, before any of it is sent.
        let mut deep = Raw::connect(world.address());
        let length = open.repeat(100_000).len();
        deep.write(&format!(
            "POST {ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        ));
        assert!(is_problem(&deep.answer().unwrap().expect(413), "body-too-large"));
    }
    let deep = format!(r#"{{"name":{}"x"{}}}"#, "[".repeat(30_000), "]".repeat(30_000));
    refused(&client, &deep, 400, "malformed-body");

    let after = peak_memory_kib(world.server.pid()).unwrap();
    assert!(after < before + 64 * 1_024, "it grew from {before} to {after} KiB");
    assert!(client.inspect("k").is_some());
}

#[test]
fn c34_fields_too_many_and_what_comes_behind_the_end_are_refused() {
    let world = World::new();
    let client = world.client();
    let rest = r#""owner":"a","ttl_ms":60000"#;
    for (body, field) in [
        (format!(r#"{{"name":"k",{rest},"surprise":1}}"#), "surprise"),
        (format!(r#"{{"name":"k",{rest},"Name":"k"}}"#), "Name"),
        (format!(r#"{{"name":"k","name":"k",{rest}}}"#), "name"),
        (format!(r#"{{"name":"k",{rest},"ttl_ms":60000}}"#), "ttl_ms"),
        (format!(r#"{{"name":"k",{rest},"\u006eame":"j"}}"#), "name"),
    ] {
        let problem = refused(&client, &body, 422, "invalid-argument");
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    let whole = format!(r#"{{"name":"k",{rest}}}"#);
    for behind in ["x", "{}", "]", "\0", ",", "null"] {
        refused(&client, &format!("{whole}{behind}"), 400, "malformed-body");
    }
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        refused(&client, &whole[..cut], 400, "malformed-body");
    }
    assert_eq!((client.inspect("k"), client.inspect("j")), (None, None));
    // Blanks are nothing.
    client.post_bytes(ACQUIRE, format!("\n {whole}\r\n\t ").as_bytes()).unwrap().expect(200);
}
