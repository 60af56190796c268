//! `list`: pages, prefixes, cursors.

use serde_json::Value;

use crate::everywhere;

fn names(page: &Value) -> Vec<&str> {
    page["locks"].as_array().unwrap().iter().map(|lock| lock["name"].as_str().unwrap()).collect()
}

#[test]
fn pages_follow_each_other_and_miss_nothing() {
    everywhere(|world| {
        let mut all = ["a", "a/", "a/b", "b", "é", "%2F", "x y"];
        for name in all {
            world.acquire(name);
        }
        all.sort_unstable();
        let whole = world.json(&["list"], 0);
        assert_eq!((names(&whole), &whole["next_cursor"]), (all.to_vec(), &Value::Null));

        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut words = vec!["list", "--limit", "3"];
            words.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
            let page = world.json(&words, 0);
            let found = names(&page);
            seen.extend(found.iter().map(|name| (*name).to_owned()));
            match &page["next_cursor"] {
                Value::Null => break,
                next => {
                    assert_eq!(found.len(), 3);
                    cursor = next.as_str().map(str::to_owned);
                }
            }
        }
        assert_eq!(seen, all);
        assert_eq!(names(&world.json(&["list", "--prefix", "a/"], 0)), ["a/", "a/b"]);
        assert_eq!(names(&world.json(&["list", "--namespace", "elsewhere"], 0)), [""; 0]);

        // For people: a head, a row a lock, and how to go on.
        let said = world.dlock(&["list", "--limit", "2"]);
        let lines: Vec<_> = said.out.lines().collect();
        assert_eq!(lines.len(), 4, "{said:?}");
        assert!(lines[0].starts_with("NAME"), "{said:?}");
        let cursor = lines[3].strip_prefix("more: --cursor ").unwrap();
        let rest = world.json(&["list", "--cursor", cursor], 0);
        assert_eq!(names(&rest), all[2..]);
    });
}

#[test]
fn a_list_is_longer_than_any_page_of_a_store() {
    // 502 is one more than the client and the command ask for at once, and one again.
    everywhere(|world| {
        let count = 502;
        std::thread::scope(|scope| {
            for part in 0..2 {
                scope.spawn(move || {
                    for at in (part..count).step_by(2) {
                        world.acquire(&format!("{at:03}"));
                    }
                });
            }
        });
        let page = world.json(&["list", "--limit", "501"], 0);
        assert_eq!(names(&page).len(), 501);
        let cursor = page["next_cursor"].as_str().unwrap();
        assert_eq!(names(&world.json(&["list", "--cursor", cursor], 0)), ["501"]);
        assert_eq!(names(&world.json(&["list"], 0)).len(), count);
    });
}

#[test]
fn what_is_no_cursor_prefix_or_limit_is_64() {
    everywhere(|world| {
        for bad in [
            ["--cursor", "6"],
            ["--cursor", "zz"],
            ["--cursor", "6A"],
            ["--prefix", "a\n"],
            ["--limit", "0"],
            ["--limit", "1000001"],
        ] {
            let said = world.dlock(&["list", bad[0], bad[1]]);
            assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{bad:?}");
            assert!(said.err.contains(bad[0]), "{said:?}");
        }
    });
}
