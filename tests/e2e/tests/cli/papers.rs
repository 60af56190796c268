//! The contract papers and the program say the same (C3, C5).

use std::{collections::BTreeMap, path::Path};

use dlock::config::{Kind, TABLE};
use dlock::run::exit;

use crate::World;

fn paper(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

const C3: &str = "tasks/contracts/C3-http-and-command-line.md";
const C5: &str = "tasks/contracts/C5-configuration-and-modules.md";

/// The rows of the one table of a page that has this head; a cell is text.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let at = page.find(head).unwrap_or_else(|| panic!("no table begins with {head:?}"));
    assert!(page[at + 1..].find(head).is_none(), "two tables begin with {head:?}");
    let lines = page[at..].lines().skip(2).take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What `--help` of a command lists: its arguments, and its options besides `--help`.
fn help(world: &World, command: &str) -> (Vec<String>, Vec<String>) {
    let mut words: Vec<_> = command.split_whitespace().collect();
    words.push("--help");
    let said = world.dlock(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (mut arguments, mut options) = (Vec::new(), Vec::new());
    for line in said.out.lines() {
        let line = line.trim_start();
        if let Some(word) = line.strip_prefix(['<', '[']) {
            arguments.push(word.split(['>', ']']).next().unwrap().to_owned());
        }
        let long = line.strip_prefix("-h, ").or_else(|| line.strip_prefix("-V, ")).unwrap_or(line);
        if long.starts_with("--") {
            options.push(long.split_whitespace().next().unwrap().to_owned());
        }
    }
    options.retain(|option| option != "--help" && option != "--version");
    options.sort();
    arguments.sort();
    (arguments, options)
}

/// The commands that `--help` of a command lists.
fn commands(world: &World, command: &str) -> Vec<String> {
    let mut words: Vec<_> = command.split_whitespace().collect();
    words.push("--help");
    let said = world.dlock(&words).out;
    let lines = said.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn c3_commands_arguments_and_options_are_those_of_the_program() {
    let world = World::embedded();
    let mut table = BTreeMap::new();
    let mut place = Vec::new();
    for row in rows(&paper(C3), "| command | arguments | options |") {
        let [command, arguments, options] = row.as_slice() else { panic!("{row:?}") };
        let mut named = quoted(options);
        if command == "*place*" {
            place = named;
            continue;
        }
        if options.contains("*place*") {
            named.extend(place.clone());
        }
        let mut arguments = quoted(arguments);
        named.sort();
        arguments.sort();
        table.insert(quoted(command).join(" "), (arguments, named));
    }
    let mut found = BTreeMap::new();
    for command in commands(&world, "") {
        let inner = commands(&world, &command);
        let whole = inner.iter().map(|inner| format!("{command} {inner}"));
        let all: Vec<_> = if inner.is_empty() { vec![command.clone()] } else { whole.collect() };
        found.extend(all.into_iter().map(|command| (command.clone(), help(&world, &command))));
    }
    assert_eq!(table, found, "left: C3; right: --help");
}

#[test]
fn c3_exit_codes_are_those_of_the_program() {
    let codes = |page: &str, head: &str| {
        let rows = rows(page, head).into_iter();
        let numbers = rows.flat_map(|row| {
            let parts: Vec<_> = row[0].split(", ").map(|part| part.parse::<u8>().ok()).collect();
            parts.into_iter().flatten()
        });
        numbers.collect::<Vec<_>>()
    };
    let failures = [
        exit::USAGE,
        exit::UNREACHABLE,
        exit::INCIDENT,
        exit::NOT_GRANTED,
        exit::DENIED,
        exit::LOST,
        exit::CANNOT_EXECUTE,
        exit::NOT_FOUND,
    ];
    let all = [&[0, 1], &failures[..]].concat();
    assert_eq!(codes(&paper(C3), "| code | `run` | the other commands |"), all);
    assert_eq!(codes(&paper("README.md"), "| exit code | meaning |"), failures);
}

#[test]
fn c3_defaults_of_run_are_those_of_the_program() {
    let help = World::embedded().dlock(&["run", "--help"]).out;
    for (option, default) in [("--wait <", "1h"), ("--conflict-exit-code", "75"), ("--ttl", "30s")]
    {
        let after = &help[help.find(option).unwrap()..];
        let text = after.find("[default: ").map(|at| &after[at + "[default: ".len()..]).unwrap();
        assert_eq!(text.split(']').next(), Some(default), "{option}");
    }
    let page = paper(C3);
    for words in ["`--wait` (1 h)", "`--ttl` (30 s)", "`--conflict-exit-code` (75)"] {
        assert!(page.contains(words), "C3 does not say {words}");
    }
}

/// A bound as the paper writes it, in milliseconds, bytes or ones.
fn amount(text: &str) -> u64 {
    let text = text.trim_matches('`').replace([',', ' '], "");
    if let Some(power) = text.strip_prefix("10^") {
        return 10_u64.pow(power.parse().unwrap());
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        other => panic!("{other:?} is no unit"),
    };
    number.parse::<u64>().unwrap() * unit
}

#[test]
fn c5_keys_defaults_ranges_and_flags_are_those_of_the_program() {
    let world = World::embedded();
    let mut named = Vec::new();
    for row in rows(&paper(C5), "| key | default | range | flag |") {
        let [keys, defaults, range, flag] = row.as_slice() else { panic!("{row:?}") };
        let keys = quoted(keys);
        let defaults = defaults.split(',').map(|default| default.trim().replace('`', ""));
        for (name, default) in keys.iter().zip(defaults) {
            let key = TABLE.iter().find(|key| key.name == name);
            let key = key.unwrap_or_else(|| panic!("C5 names {name}, which is no key"));
            named.push(key.name);
            // A remark may follow.
            let default = default.split(' ').next().unwrap_or_default();
            let none = default == "–" || default.starts_with('[');
            assert_eq!((!none).then_some(default), key.default, "{name}");
            match key.kind {
                Kind::Choice(words) => {
                    let before_remarks = range.replace("(text on a terminal, else JSON)", "");
                    assert_eq!(quoted(&before_remarks), words, "{name}");
                }
                Kind::Span(least, most) | Kind::Count(least, most) | Kind::Bytes(least, most) => {
                    let range = range.split(';').next().unwrap();
                    let (from, to) = range.split_once(" to ").unwrap();
                    assert_eq!((amount(from), amount(to)), (least, most), "{name}");
                }
                _ => assert!(!range.is_empty(), "{name}"),
            }
            let flag = quoted(flag).into_iter().next();
            assert_eq!(flag.as_deref().and_then(|flag| flag.split(' ').next_back()), key.flag);
            // And the commands have it.
            if let Some(flag) = flag {
                let (command, option) = flag.rsplit_once(' ').unwrap_or(("acquire", &flag));
                assert!(help(&world, command).1.contains(&option.to_owned()), "{flag}");
            }
        }
    }
    let all: Vec<_> = TABLE.iter().map(|key| key.name).collect();
    assert_eq!(named, all, "left: C5; right: the table");
}

#[test]
fn c5_every_key_has_its_variable_and_is_shown() {
    let world = World::embedded();
    let mut command = world.command(&["config", "show"]);
    command.env_remove("DLOCK_EMBEDDED_PATH");
    // As C5 says them: DLOCK_ and the key in capitals, dots as underscores.
    let variable = |name: &str| format!("DLOCK_{}", name.to_uppercase().replace('.', "_"));
    for key in TABLE.iter() {
        let database = key.kind == Kind::Database;
        let some = if database { "postgres://me@127.0.0.1:1/x" } else { "http://127.0.0.1:1" };
        let value = key.default.unwrap_or(some);
        command.env(variable(key.name), value);
    }
    let said = crate::said(&mut command);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let shown: Vec<_> = said
        .out
        .lines()
        .skip(1)
        .map(|line| {
            let mut words = line.split_whitespace();
            (words.next().unwrap().to_owned(), words.next_back().unwrap().to_owned())
        })
        .collect();
    let all: Vec<_> = TABLE.iter().map(|key| (key.name.to_owned(), variable(key.name))).collect();
    assert_eq!(shown, all);
}
