//! THE test command: builds the `dlock` binary, sees to servers, runs every test, and says how many
//! passed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::backends::choice::{Server, Version};
use crate::backends::orphans::Ending;
use crate::backends::shared::{Shared, Starting};
use crate::backends::{self, Backends, runner};
use crate::counts::Counts;
use crate::graph::{self, Graph};
use crate::house::{self, SourceFile};
use crate::parity::results::{self, Results};
use crate::stopwatch::Stopwatch;
use crate::{cargo, output, parity, say};

/// Where tests find the binary they run.
pub const TEST_DLOCK_BIN: &str = "TEST_DLOCK_BIN";

/// Members whose dependents' tests need servers.
const NEED_SERVERS: &[&str] = &["dlock-etcd", "dlock-postgres", "dlock-servers"];

/// Builds the binary, runs `cargo test` with these further arguments, prints the sums as the last
/// line; whether everything passed, and the parity page says nothing else. With `-p` among the
/// arguments only those packages are tested, else the whole workspace is. Servers are started if what
/// is tested may need them, and are gone when this returns or ends in any other way.
///
/// # Errors
/// If the workspace cannot be read or cargo cannot be started.
pub fn run(args: &[String]) -> anyhow::Result<bool> {
    let root = graph::metadata()?.workspace_root.into_std_path_buf();
    let (passed, _) = collect(args, Some(&house::read_files(&root)?))?;
    Ok(passed)
}

/// The same, with what the suites said; they are compared with the parity page if there are sources
/// to read it from.
///
/// # Errors
/// Like [`run`].
pub fn collect(args: &[String], sources: Option<&[SourceFile]>) -> anyhow::Result<(bool, Results)> {
    let watch = Stopwatch::start();
    let metadata = graph::metadata()?;
    let root = metadata.workspace_root.as_std_path();
    let debug = metadata.target_directory.join("debug");
    let program = |name: &str| debug.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let me = std::env::current_exe().context("this program cannot be found")?;
    let mut ending = Ending::start(&me).context("nobody would end the tests")?;

    let servers = needs_servers(args, &Graph::of(&metadata));
    let mut build = vec!["build", "--workspace", "--bin", "dlock"];
    for server in Server::ALL.into_iter().filter(|_| servers) {
        build.extend(["--bin", server.program()]);
    }
    let (mut counts, mut remarks) = (Counts::default(), Vec::new());
    let mut results = Results::default();
    let notes = tempfile::NamedTempFile::new().context("there is no room for notes")?;
    let mut succeeded = if cargo::succeeds(&mut cargo::command(root, build))? {
        let backends = if servers { backends::make_sure() } else { Backends::default() };
        remarks.extend(backends.remarks.iter().cloned());
        let shared = share(&|name| program(name).into_std_path_buf(), &backends, &mut remarks);
        let runner = format!("target.'cfg(all())'.runner=['{}','{}']", me.display(), runner::VERB);
        let mut command = cargo::command(root, ["--config", &runner]);
        command.args(arguments(args, &backends.left_out));
        command.env(TEST_DLOCK_BIN, program("dlock")).envs(backends.env);
        command.envs(variables(&shared)).env(results::NOTES, notes.path());
        let mut echo = |line: &[u8]| {
            say::raw(line);
            results.add(&String::from_utf8_lossy(line));
        };
        let all_started = shared.iter().all(|(_, shared)| shared.is_some());
        tested(&mut command, &mut ending, &mut counts, &mut echo)? && all_started
    } else {
        say::line(format_args!("dlock could not be built, so no test was run"));
        false
    };
    fs::read_to_string(notes.path())?.lines().for_each(|line| results.add(line));
    let contradictions = sources.map(|files| parity::contradictions(files, &results));
    let contradictions = contradictions.unwrap_or_default();
    succeeded &= contradictions.is_empty();
    remarks.extend(contradictions);
    if counts.ignored > 0 {
        say::line(format_args!("{} ignored", counts.ignored));
    }
    remarks.iter().for_each(|remark| say::line(format_args!("{remark}")));
    say::line(format_args!("elapsed {:.1} s", watch.seconds()));
    say::line(format_args!("{} passed, {} failed", counts.passed, counts.failed));
    Ok((succeeded && counts.failed == 0, results))
}

/// Whether what is tested may need servers: everything does, and so do packages that depend on what
/// speaks to them. Whatever is not understood needs them too.
fn needs_servers(args: &[String], graph: &Graph) -> bool {
    let names = packages(args);
    names.is_empty()
        || names.iter().any(|name| {
            graph.member(name).is_none_or(|member| {
                let mut named = member.deps.iter().map(|dep| dep.name.as_str()).chain([*name]);
                named.any(|name| NEED_SERVERS.contains(&name))
            })
        })
}

/// The packages that are named to cargo.
fn packages(args: &[String]) -> Vec<&str> {
    let mut words = args.iter().map(String::as_str).take_while(|arg| *arg != "--");
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-p" | "--package" => names.extend(words.next()),
            word => {
                let short = word.strip_prefix("-p").filter(|_| !word.starts_with("--"));
                names.extend(word.strip_prefix("--package=").or(short));
            }
        }
    }
    names
}

/// The arguments of cargo. `--workspace` would silently win over `-p`. What is left out is so by
/// parts of tests' names.
fn arguments(extra: &[String], left_out: &[&'static str]) -> Vec<String> {
    let all = if packages(extra).is_empty() { Some("--workspace") } else { None };
    let base = std::iter::once("test").chain(all).chain(["--no-fail-fast"]).map(str::to_owned);
    let mut arguments: Vec<_> = base.chain(extra.iter().cloned()).collect();
    if !left_out.is_empty() && !extra.iter().any(|arg| arg == "--") {
        arguments.push("--".to_owned());
    }
    arguments.extend(left_out.iter().flat_map(|part| ["--skip".to_owned(), (*part).to_owned()]));
    arguments
}

/// A server that all suites share, if it could be started.
type Sharing = (Version, Option<Shared>);

/// Starts a server of each version for all suites to share, but of those that they were given.
fn share(
    program: &dyn Fn(&str) -> PathBuf,
    backends: &Backends,
    remarks: &mut Vec<String>,
) -> Vec<Sharing> {
    let given = |server: Server| {
        server.variables().iter().any(|variable| std::env::var_os(variable).is_some())
    };
    let wanted = backends.versions.iter().copied().filter(|version| !given(version.server()));
    let begin = |version: Version| {
        (version, Starting::begin(&program(version.server().program()), version, &backends.env))
    };
    let starting: Vec<_> = wanted.map(begin).collect();
    let ready = starting.into_iter().map(|(version, starting)| {
        let shared = starting.and_then(Starting::ready);
        let shared = shared.inspect_err(|error| {
            remarks.push(format!("{version} DOES NOT START: {error:#}"));
        });
        (version, shared.ok())
    });
    ready.collect()
}

/// What tells the suites of the servers: the first of each for everybody, and all for those that are
/// run on each version.
fn variables(shared: &[Sharing]) -> Vec<(&'static str, String)> {
    let mut told = Vec::new();
    for server in Server::ALL {
        let running = shared.iter().filter(|(version, _)| version.server() == server);
        let running: Vec<_> = running
            .filter_map(|(version, shared)| Some((version.number(), &shared.as_ref()?.endpoints)))
            .collect();
        if let Some((_, endpoints)) = running.first() {
            let each = server.variables().iter().zip(endpoints.split_whitespace());
            told.extend(each.map(|(variable, endpoint)| (*variable, endpoint.to_owned())));
        }
        let runs: Vec<_> = running.iter().map(|(number, at)| runner::told(number, at)).collect();
        told.push((runner::runs(server), runs.join(" ")));
    }
    told
}

/// Runs a command, passes its output on line by line, and sums up what the tests say in it.
fn tested(
    command: &mut Command,
    ending: &mut Ending,
    counts: &mut Counts,
    echo: &mut dyn FnMut(&[u8]),
) -> anyhow::Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    ending.watch(child.id())?;
    output::follow(&mut child, &mut |line| {
        echo(line);
        counts.add(&String::from_utf8_lossy(line));
    })?;
    ending.forget(child.id())?;
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::graph::Kind;
    use crate::testing::{member, tree};

    fn owned(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn the_whole_workspace_is_tested_unless_packages_are_named() {
        assert_eq!(arguments(&[], &[]), ["test", "--workspace", "--no-fail-fast"]);
        let named = owned(&["-p", "dlock"]);
        assert_eq!(arguments(&named, &[]), ["test", "--no-fail-fast", "-p", "dlock"]);
        let harness = owned(&["--", "-p"]);
        assert_eq!(arguments(&harness, &[]), ["test", "--workspace", "--no-fail-fast", "--", "-p"]);
    }

    #[test]
    fn what_is_left_out_is_left_out_by_the_harness() {
        let skipped = arguments(&owned(&["-p", "x"]), &["new_etcd"]);
        assert_eq!(skipped, ["test", "--no-fail-fast", "-p", "x", "--", "--skip", "new_etcd"]);
        let skipped = arguments(&owned(&["-p", "x", "--", "--exact"]), &["new_etcd"]);
        assert_eq!(skipped[4..], ["--", "--exact", "--skip", "new_etcd"]);
    }

    #[test]
    fn packages_are_read_however_they_are_named() {
        let args = owned(&["-p", "a", "-pb", "--package", "c", "--package=d", "--", "-p", "e"]);
        assert_eq!(packages(&args), ["a", "b", "c", "d"]);
        assert!(packages(&owned(&["--test", "x", "--profile", "y"])).is_empty());
    }

    #[test]
    fn servers_are_seen_to_where_something_may_need_them() {
        let members = vec![
            member("dlock-domain", "domain", &[]),
            member("dlock-etcd", "adapters/etcd", &[]),
            member("dlock-conformance", "tests/conformance", &[("dlock-etcd", Kind::Normal)]),
            member("dlock-x", "tests/x", &[("dlock-servers", Kind::Dev)]),
        ];
        let graph = Graph { members, ..Graph::default() };
        let needs = |args: &[&str]| needs_servers(&owned(args), &graph);
        assert!(!needs(&["-p", "dlock-domain"]));
        for name in ["dlock-etcd", "dlock-conformance", "dlock-x", "dlock-*"] {
            assert!(needs(&["-p", name]) && needs(&["-p", "dlock-domain", "-p", name]), "{name}");
        }
        assert!(needs(&[]) && needs(&["--test", "etcd"]));
    }

    #[test]
    fn the_exit_code_of_the_command_is_kept_beside_the_sums() {
        let folder = tree(&[("watcher", "#!/bin/sh\nexec cat >/dev/null\n")]);
        let watcher = folder.path().join("watcher");
        fs::set_permissions(&watcher, Permissions::from_mode(0o755)).unwrap();
        let mut ending = Ending::start(&watcher).unwrap();
        let mut counts = Counts::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: FAILED. 2 passed; 3 failed; 0 ignored'; exit 3"]);
        // Not to standard output, where the run that this test is part of would count it.
        let mut said = Vec::new();
        let mut echo = |line: &[u8]| said.extend_from_slice(line);
        assert!(!tested(&mut command, &mut ending, &mut counts, &mut echo).unwrap());
        assert!(said.ends_with(b"0 ignored\n"));
        assert_eq!(counts, Counts { passed: 2, failed: 3, ignored: 0 });
    }
}
