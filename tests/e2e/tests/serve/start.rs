//! What a server refuses to start with.

use std::{net::TcpListener, path::Path, process::Output};

use dlock_e2e::server::serve;

use crate::{LONG, World, acquire};

/// A start that must end by itself.
fn refused(data_dir: &Path, listen: &str, options: &[&str]) -> (Option<i32>, String) {
    let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
    let Output { status, stdout, stderr } = serve(data_dir, listen, &options).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&stdout), "", "it never says that it serves");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn it_does_not_listen_beyond_this_machine_unless_told_twice() {
    let place = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let (code, said) = refused(place.path(), listen, &[]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains("--insecure"), "{said}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is made before");
}

#[test]
fn a_port_in_use_is_69_with_the_address() {
    let place = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = refused(place.path(), &address, &[]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains(&format!("cannot listen on {address}")), "{said}");

    // Beside a server, on the same data: the running one is not disturbed.
    let world = World::new();
    let (code, said) = refused(world.place.path(), &world.address().to_string(), &[]);
    assert_eq!(code, Some(69), "{said}");
    acquire(&world.client(), "k", "a", LONG);
}

#[test]
fn bad_options_are_64_and_a_data_folder_that_cannot_be_is_69() {
    let place = tempfile::tempdir().unwrap();
    for options in [&["--drain", "5"][..], &["--namespace", "A"], &["--backend", "x"], &["--x"]] {
        let (code, said) = refused(place.path(), "127.0.0.1:0", options);
        assert_eq!(code, Some(64), "{options:?}: {said}");
        assert!(said.contains(options[0]), "{options:?}: {said}");
    }
    let (code, said) = refused(place.path(), "localhost", &[]);
    assert_eq!(code, Some(64), "{said}");
    let file = place.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let (code, said) = refused(&file, "127.0.0.1:0", &[]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("file"), "{said}");
}
